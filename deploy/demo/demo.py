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
from html.parser import HTMLParser
from pathlib import Path
from string import Template

import fake_card
import requests
from lab import mail, processes
from lab.hub import PROXY_IN_PYTHON, REPOSITORY, Hub
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
        print(f"\nThe end of {hub.log}:\n{hub.log_tail()}")
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
    show_processes(hub)
    nora = next(person for person in people if person.name == "nora")
    watch(hub, people)
    show_mail()
    show_page(hub)
    show_processes(hub)
    check(people, nora)
    say("as it must be: Nora was warned and then stopped; Tina and Carl go on computing")


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
        if now["nora's server"] == "gone, with all its processes":
            gone_at = gone_at or time.monotonic()
            if time.monotonic() - gone_at > AFTERWARDS:
                return
        time.sleep(1)
    raise Failed(f"Nora's server still ran {PATIENCE} s after she left")


def observe(hub, people):
    """What can be seen from outside, in words."""
    state = {f"{person.name}'s server": server_state(person) for person in people}
    for verdict in ("busy", "idle", "unknown", "protected"):
        state[f"sessions that gpu-culler calls {verdict}"] = verdict_count(hub, verdict)
    for letter in letters():
        state[f"mail to {letter['To']}"] = letter["Subject"]
    return state


def server_state(person):
    model, living = person.server_model(), person.processes()
    if model and model["pending"]:
        return f"pending: {model['pending']}"
    if model and model["ready"]:
        return f"runs, {len(living)} processes"
    return f"gone from the Hub, {len(living)} processes left" if living else "gone, with all its processes"


def verdict_count(hub, verdict):
    try:
        return int(hub.metrics("gpu_culler_sessions", verdict=verdict) or 0)
    except requests.RequestException as error:
        return f"not known, {error}"


def letters():
    return [mail.parse(file.read_bytes()) for file in sorted((DIRECTORY / "mail").glob("*.eml"))]


def check(people, nora):
    """The three outcomes, each by what the Hub, the process table and the mails say."""
    to = [letter["To"] for letter in letters()]
    if len(to) != 1 or nora.address not in to[0]:
        raise Failed(f"there should be one mail, to Nora; there are mails to {to}")
    for person in people:
        lives = person.is_running() and processes.is_alive(person.kernel.process)
        if person is nora and (lives or person.processes()):
            raise Failed("Nora's server or its processes are still there")
        if person is not nora and not lives:
            raise Failed(f"{person.name}'s server or kernel is gone, and it was computing")


def show_mail():
    for letter in letters():
        print(f"\n--- mail: To: {letter['To']}, Subject: {letter['Subject']}\n")
        print(mail.plain_text(letter).rstrip())
        print("---\n")


def show_page(hub):
    print(f"--- the service's page, {hub.public_url}/services/gpu-culler/, without a login\n")
    print(text_of(hub.page().text))
    print("---\n")


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


class _Text(HTMLParser):
    """The visible words of a page."""

    def __init__(self):
        super().__init__()
        self.lines, self.hidden = [], 0

    def handle_starttag(self, tag, attributes):
        self.hidden += tag in ("style", "script", "head")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("style", "script", "head")

    def handle_data(self, data):
        if not self.hidden and data.strip():
            self.lines.append(" ".join(data.split()))


def text_of(html):
    page = _Text()
    page.feed(html)
    return "\n".join(page.lines)


if __name__ == "__main__":
    sys.exit(main())
