"""What people declare at the start: their idle card is left alone for as long, and shown as what it is."""

import time

from lab import mail
from lab.people import Person
from lab.stories import forget_and_leave
from lab.waiting import eventually

DECLARED = 60  # seconds


def test_a_declared_time_protects_until_it_ends(start_hub, culler_config, mailbox, gpu_culler):
    config = culler_config()
    hub = start_hub(config)
    options = {"expected_duration": f"{DECLARED}s", "project": "tides", "team": ["vision"], "token": "hunter2"}
    nora = Person(hub, "nora", options=options)
    began = time.time()
    nora.arrive()
    forget_and_leave(nora)

    def planned():
        lines = gpu_culler(hub, config, "plan", "--format", "json").lines()
        (line,) = [line for line in lines if line.get("server") == "nora/"]
        return line if line["verdict"] == "protected" else None

    plan = eventually("its idle card is shown as declared", planned, within=DECLARED - 10)
    assert plan["reason"].startswith("idle for ")
    assert "declared until" in plan["reason"]
    assert (plan["intent"]["project"], plan["intent"]["team"]) == ("tides", "vision")
    assert not mailbox.mails
    explained = gpu_culler(hub, config, "explain", "nora").out
    assert "declared to be needed until" in explained
    assert "hunter2" not in explained

    (warning,) = eventually("she is warned", lambda: mailbox.to(nora.address), within=DECLARED + 30)
    assert warning.received_at >= began + DECLARED, "within the declared time"
    text = mail.plain_text(warning)
    assert "Project: tides" in text
    assert "which has passed" in text
    eventually("her server is gone", lambda: not nora.is_running(), within=60)


def test_a_time_that_cannot_be_read_is_told_in_the_warning(start_hub, culler_config, mailbox):
    hub = start_hub(culler_config())
    nora = Person(hub, "nora", options={"expected_duration": "3 bananas"}).arrive()
    forget_and_leave(nora)
    (warning,) = eventually("she is warned", lambda: mailbox.to(nora.address), within=60)
    assert "expected_duration `3 bananas` cannot be read, so it protects nothing" in mail.plain_text(warning)
