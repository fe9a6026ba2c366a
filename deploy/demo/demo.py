"""Three people on a real JupyterHub, and what gpu-culler does about them. Needs no GPU, no Node and no accounts.

Tina trains in a silent cell with the browser closed, Nora's forgotten notebook holds memory, Carl computes on the
processor while his card waits. Only Nora's server may be stopped, and not before she was warned.
"""

import argparse
import shutil
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from string import Template

import fake_card
import requests
from lab import mail, processes
from lab.hub import PROXY_IN_PYTHON, REPOSITORY, Hub
from lab.page import visible_text
from lab.people import Person
from lab.stories import crunch_and_leave, forget_and_leave, train_and_leave

DIRECTORY = REPOSITORY / "target" / "demo"
STORIES = {
    "tina": (train_and_leave, "trains in a silent cell, browser closed"),
    "nora": (forget_and_leave, "ran a notebook, it holds 38 GB, and she left"),
    "carl": (crunch_and_leave, "computes on the processor while his card waits"),
}
PATIENCE = 120  # seconds from the people's leaving to the end of the story
AFTERWARDS = 8  # seconds that the others must outlive Nora's server
VERDICTS = ("busy", "idle", "unknown", "protected")
GONE = "gone, with all its processes"
RULE = "-" * 100
BEGAN = time.monotonic()


class Failed(Exception):
    """Something did not go as it must."""


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--once", action="store_true", help="end when the story has ended")
    once = options.parse_args().once
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    prepare()
    hub = make_hub()
    try:
        tell(hub)
        if not once:
            stay_open(hub)
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except Exception as error:  # whatever broke, show where to look
        say(f"FAILED: {type(error).__name__}: {error}")
        show_trouble(hub)
        return 1
    finally:
        clean_up(hub)
    return 0


def prepare():
    """An empty directory, and nothing left of an earlier demo that was killed."""
    mark = DIRECTORY / "run"
    if mark.exists():
        processes.end_all(mark.read_text())
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    (DIRECTORY / "mail").mkdir(parents=True)
    fake_card.new_scene(DIRECTORY / "scene.json")
    names = {
        "library": REPOSITORY / "target/debug/libfake_nvml.so",
        "mail": DIRECTORY / "mail",
        "store": DIRECTORY / "gpu-culler.sqlite",
    }
    template = Template(Path(__file__).with_name("gpu-culler.toml").read_text())
    (DIRECTORY / "gpu-culler.toml").write_text(template.safe_substitute(names))


def make_hub():
    culler = [REPOSITORY / "target/debug/gpu-culler", "run", "--config", DIRECTORY / "gpu-culler.toml"]
    environment = {"FAKE_NVML_SCENE": str(DIRECTORY / "scene.json")}
    hub = Hub(DIRECTORY, culler, proxy=PROXY_IN_PYTHON, environment=environment)
    (DIRECTORY / "run").write_text(hub.mark)
    return hub


def tell(hub):
    say("starting a JupyterHub with gpu-culler as its service")
    hub.start()
    say(f"it is up: {hub.public_url}")
    people = bring_people(hub)
    watch(hub, people)
    show_mails()
    check(people)
    say("as it must be: Nora was warned, then stopped, then told; Tina and Carl go on computing")


def bring_people(hub):
    say("three people log in, start their servers and open notebooks")
    with ThreadPoolExecutor() as pool:
        people = list(pool.map(lambda name: Person(hub, name).arrive(), STORIES))
    for person in people:
        act, words = STORIES[person.name]
        act(person)
        say(f"{person.name} {words} (server {person.server.pid}, kernel {person.kernel.process.pid})")
    return people


def watch(hub, people):
    """Says each change until Nora's server has been gone for a while."""
    last, gone_at, end = {}, None, time.monotonic() + PATIENCE
    while time.monotonic() < end:
        fake_card.forget_the_dead(DIRECTORY / "scene.json")
        now = observe(hub, people)
        for what, state in now.items():
            if last.get(what) != state:
                say(f"{what}: {state}")
        last = now
        if now["nora's server"] == GONE and len(letters()) > 1:
            gone_at = gone_at or time.monotonic()
            if time.monotonic() - gone_at > AFTERWARDS:
                return
        time.sleep(1)
    raise Failed(f"{PATIENCE} s after she left, Nora's server was not gone or she was not told")


def observe(hub, people):
    """What can be seen from outside, in words."""
    state = {f"{person.name}'s server": server_state(person) for person in people}
    state["gpu-culler says"] = verdicts(hub)
    for letter in letters():
        state[f"mail to {letter['To']}"] = letter["Subject"]
    return state


def server_state(person):
    model, living = person.server_model(), person.processes()
    if model and model["pending"]:
        return f"pending: {model['pending']}"
    if model and model["ready"]:
        return f"runs, {len(living)} processes"
    return f"gone from the Hub, {len(living)} processes left" if living else GONE


def verdicts(hub):
    """How many sessions it calls what."""
    try:
        counts = {word: hub.metrics("gpu_culler_sessions", verdict=word) for word in VERDICTS}
    except requests.RequestException as error:
        return f"nothing: {error}"
    return ", ".join(f"{count:.0f} {word}" for word, count in counts.items() if count) or "no session yet"


def letters():
    """The mails so far, first one first."""
    files = sorted((DIRECTORY / "mail").glob("*.eml"), key=lambda file: file.stat().st_mtime)
    return [mail.parse(file.read_bytes()) for file in files]


def check(people):
    """The three outcomes, each by what the Hub, the process table and the mails say."""
    check_letters(letters())
    for person in people:
        lives = person.is_running() and processes.is_alive(person.kernel.process)
        if person.name == "nora" and (lives or person.processes()):
            raise Failed("Nora's server or its processes are still there")
        if person.name != "nora" and not lives:
            raise Failed(f"{person.name}'s server or kernel is gone, and it was computing")


def check_letters(found):
    """One warning to Nora, then one that tells her of the stop and answers it; none to anybody else."""
    said = [f"{letter['Subject']!r} to {letter['To']}" for letter in found]
    if len(found) != 2 or any("nora@example.org" not in letter["To"] for letter in found):
        raise Failed(f"there should be two mails, both to Nora; there are: {said}")
    warning, stopped = found
    if "stops " not in warning["Subject"] or ": stopped, " not in stopped["Subject"]:
        raise Failed(f"the first mail should warn and the second tell of the stop; there are: {said}")
    if stopped["In-Reply-To"] != warning["Message-ID"]:
        raise Failed("the mail about the stop does not answer the warning")


def show_mails():
    for letter in letters():
        print(f"\n{RULE}\nTo:      {letter['To']}\nSubject: {letter['Subject']}\n")
        print(mail.plain_text(letter).strip())
    print(f"{RULE}\n")


def show_trouble(hub):
    """All that helps to see what went wrong."""
    print(f"\nThe end of {hub.log}:\n{hub.log_tail()}\n")
    show_processes(hub)
    try:
        print(f"The service's page:\n{visible_text(hub.page().text)}\n")
    except requests.RequestException as error:
        print(f"The service's page does not answer: {error}\n")


def show_processes(hub):
    print("\n    pid    parent  memory  command")
    for process in sorted(processes.of_run(hub.mark), key=lambda process: process.pid):
        print(processes.describe(process))
    print()


def stay_open(hub):
    print(f"The Hub stays up: {hub.public_url} (log in as tina, nora, carl or admin with the password demo).")
    print(f"The service's page: {hub.public_url}/services/gpu-culler/. Ctrl-C ends everything.")
    while hub.process.poll() is None:
        fake_card.forget_the_dead(DIRECTORY / "scene.json")
        time.sleep(1)
    raise Failed(f"the Hub ended by itself with status {hub.process.returncode}")


def clean_up(hub):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not leave processes behind
    count = len(processes.of_run(hub.mark))
    left = hub.stop()
    say(f"ended {count - len(left)} processes, {len(left)} left")
    for process in left:
        print(processes.describe(process))


def say(words):
    print(f"[{time.monotonic() - BEGAN:4.0f} s] {words}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
