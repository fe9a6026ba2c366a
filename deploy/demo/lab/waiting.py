"""Waiting for something to become, or to stay, true."""

import time


def eventually(what, probe, within=30.0, every=0.2):
    """Asks until the answer is truthy and returns it; fails with the last answer when the time is over."""
    deadline = time.monotonic() + within
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} s: {what} (last answer: {answer!r})")
        time.sleep(every)


def holds(what, probe, during, every=0.5):
    """Asks for a while and fails at the first answer that is not truthy."""
    end = time.monotonic() + during
    while time.monotonic() < end:
        answer = probe()
        if not answer:
            left = end - time.monotonic()
            raise AssertionError(f"no longer true, {left:.1f} s before the end: {what} (answer: {answer!r})")
        time.sleep(every)
