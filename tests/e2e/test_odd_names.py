"""Names that need care in an address, and thousands of them: a real Hub of each kind, and one that takes anything."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
import requests
from conftest import CULLER, LIBRARY
from fake_hub import Culler, FakeHub
from lab.people import Person
from lab.stories import forget_and_leave
from lab.waiting import eventually
from other_hubs import Hub5, UsersMayGo
from synthetic_hub import user_model
from test_cull_users import last_seen

ODD = [
    "anna maria schmidt",
    "ö@x.org",
    "50%off",
    "%2e%2e",
    "..dots",
    "a.b.",
    "q?x#y&z=1",
    "plus+sign;semi,colon",
    "quote'\"s",
    "back\\slash",
    "名前",
    "-dash",
    "x" * 150,
    "a/b",
    "..",
]


def odd(number):
    return f"{ODD[number % (len(ODD) - 1)]} {number}"


class OldHub(Hub5):
    """JupyterHub 5, whose service may delete users."""

    lines = Hub5.lines + UsersMayGo.lines


@pytest.mark.parametrize("kind", [UsersMayGo, OldHub])
def test_whoever_a_real_hub_takes_is_listed_asked_warned_stopped_and_deleted(kind, start_hub, culler_config, mailbox, tmp_path):
    people = ["anna maria schmidt", "50%off", "ö@x.org"]
    addresses = tmp_path / "addresses.toml"
    addresses.write_text("".join(f"{json.dumps(name)} = \"p{n}@example.org\"\n" for n, name in enumerate(people)))
    wanted = {"cull": True, "idle_after": "600s", "cull_users": True}
    limits = {"warn_after": "12s", "grace": "15s"}
    config = culler_config(mail={"address": [f"map:{addresses}"]}, policy=limits, cpu_servers=wanted, cycle="2s")
    hub = start_hub(config, kind)
    taken = [name for name in ODD if name not in people and is_taken(hub, name)]
    assert len(taken) >= 8, taken
    thousands = sorted({odd(n) for n in range(1200) if "/" not in odd(n)} - set(taken))
    for at in range(0, len(thousands), 50):  # the Hub does nothing else meanwhile
        hub.api("POST", "/users", json={"usernames": thousands[at : at + 50]})

    here = [Person(hub, name) for name in people]
    with ThreadPoolExecutor() as pool:
        list(pool.map(Person.arrive, here))
    for person in here:
        forget_and_leave(person)
    for number, person in enumerate(here):
        eventually(f"{person.name} is warned", lambda: mailbox.to(f"p{number}@example.org"), within=60)  # noqa: B023
    for person in here:
        eventually(f"{person.name}'s server is gone", lambda: not person.is_running(), within=60)  # noqa: B023
        eventually("so are its processes", lambda: not person.processes())  # noqa: B023

    gone = taken + thousands[::300]
    for name in gone:
        last_seen(hub, quote(name, safe=""), seconds_ago=6000)
    hub.culler_process().terminate()  # the list of everybody is read seldom, and at each start
    eventually("who was away is deleted", lambda: not any(exists(hub, name) for name in gone), within=90)
    assert all(exists(hub, name) for name in [*people, *thousands[1:4]])


def is_taken(hub, name):
    try:
        hub.api("POST", f"/users/{quote(name, safe='')}")
    except requests.HTTPError:
        return False
    return exists(hub, name)


def exists(hub, name):
    try:
        return hub.api("GET", f"/users/{quote(name, safe='')}")["name"] == name
    except requests.HTTPError:
        return False


def test_thousands_of_odd_names_are_listed_and_only_those_meant_are_stopped(tmp_path):
    here = [name for name in ODD if name not in ("..", "x" * 150)]
    with FakeHub({name: [""] for name in here}) as hub:
        for number in range(3000):
            hub.users[odd(number)] = user_model(number, hub.now, None) | {"name": odd(number)}
        hub.users[".."] = user_model(0, hub.now, None) | {"name": ".."}
        everybody = hub.left()
        running = Culler(tmp_path, CULLER, LIBRARY, hub, "--timeout=600", "--cull-every=1")
        plan = [running.command[0], "plan", *running.command[2:], "--format=json"]
        planned = subprocess.run(plan, env=running.environment, capture_output=True, text=True, timeout=60)
        lines = [json.loads(line) for line in planned.stdout.splitlines()]
        assert {line["server"] for line in lines} == everybody
        assert {line["server"] for line in lines if line["action"] == "stop"} == {f"{name}/" for name in here}
        with running:
            eventually("theirs are stopped", lambda: hub.left() == everybody - {f"{name}/" for name in here}, within=60)
        expected = {f"/users/{quote(name, safe='@~')}/server" for name in here}
        assert set(hub.targets) == expected and len(hub.targets) == len(here)
