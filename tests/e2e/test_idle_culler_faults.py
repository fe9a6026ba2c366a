"""The faults that were measured in jupyterhub-idle-culler 2.0.0, and the test that shows each of them absent here.

What needs a real Hub is tested elsewhere, and what is no behaviour has no test; the table names both.
"""

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from conftest import CULLER, LIBRARY
from fake_hub import Culler, FakeHub
from lab.hub import REPOSITORY
from lab.waiting import eventually, holds
from synthetic_hub import stamp

HERE = "tests/e2e/test_idle_culler_faults.py::"
FAULTS = {
    1: ("users are stopped one after another, whatever --concurrency says", HERE + "test_01_users_are_stopped_side_by_side"),
    2: ("a page that fails loses the whole round", HERE + "test_02_a_failing_page_costs_that_page"),
    3: ("the recommended HTTP client is loaded and then not used", None),  # there is one client, nothing to choose
    4: ("more than ten requests wait in a queue that times out", HERE + "test_04_forty_slow_servers_of_one_user_all_stop"),
    5: ("a server that was never active crashes the default arbiter", HERE + "test_05_a_server_without_activity_crashes_nothing"),
    6: ("who came back during a long round is culled on old data", HERE + "test_06_who_came_back_meanwhile_is_left_alone"),
    7: ("names are quoted wrongly, or not at all", HERE + "test_07_odd_names_are_quoted_whole"),
    8: ("--timeout=1 or 0 without --cull-every ends at start, for ever", HERE + "test_08_tiny_timeouts_neither_crash_nor_cull_everybody"),
    9: ("unknown flags lose their effect, a missing config file is ignored", HERE + "test_09_what_is_not_understood_is_said_loudly"),
    10: ("bare booleans are rejected", HERE + "test_10_bare_booleans_and_underscores_work"),
    11: ("the documented example for profiles needs a scope and a key that are not there", "src/hub/tests/listing.rs::every_field_arrives_in_the_domain"),
    12: ("the hook gets no user, group or name", "src/policy/tests/rules.rs::every_condition_given_must_be_met"),
    13: ("internal_ssl uses the Hub's own private key", "tests/e2e/test_internal_ssl.py::test_an_idle_owner_is_warned_and_the_server_stopped"),
    14: ("a 202 is never followed up, a 204 never verified", "tests/e2e/test_stops.py::test_a_stop_that_failed_is_told_and_a_slow_one_is_followed_up"),
    15: ("a Hub that is out gives a traceback each round and no sign of health", HERE + "test_15_a_hub_that_refuses_is_said_once_and_waited_for"),
    16: ("no memory: no warning, dry run, metrics or log", "tests/e2e/test_restart.py::test_killed_between_warning_and_stop_it_mails_once_and_stops_on_time"),
    17: ("clocks that differ are not handled", "src/policy/tests/stamps.rs::a_stamp_from_the_future_counts_as_just_now"),
    18: ("the token is written to the log", HERE + "test_18_the_token_is_in_no_log"),
}
BY_TIMEOUT = ("--timeout=600", "--cull-every=1")


@pytest.fixture
def culler(tmp_path):
    """Starts gpu-culler on a fake Hub; every log that a test leaves is searched for the token."""
    return lambda hub, *arguments, **options: Culler(tmp_path, CULLER, LIBRARY, hub, *arguments, **options)


@pytest.mark.parametrize("number", FAULTS)
def test_each_fault_has_its_test(number):
    _, where = FAULTS[number]
    if where:
        file, name = where.split("::")
        assert re.search(rf"\b(def|fn) {name}\(", (REPOSITORY / file).read_text())


def test_01_users_are_stopped_side_by_side(culler):
    with FakeHub({f"user{n}": [""] for n in range(12)}, stop_seconds=1) as hub, culler(hub, *BY_TIMEOUT):
        eventually("all are stopped", lambda: not hub.left(), within=20)
        assert max(done for _, done in hub.stops) - min(asked for asked, _ in hub.stops) < 4


def test_02_a_failing_page_costs_that_page(culler):
    names = [f"user{n:03}" for n in range(30)]
    with FakeHub({name: [""] for name in names}) as hub:
        hub.broken_pages = {10}
        with culler(hub, *BY_TIMEOUT, "--api-page-size=10") as culler:
            eventually("the other pages' servers stop", lambda: hub.left() == {f"{name}/" for name in names[10:20]}, within=30)
            assert "users 10 to 20" in culler.log()


def test_04_forty_slow_servers_of_one_user_all_stop(culler):
    with FakeHub({"ann": [f"n{n}" for n in range(40)]}, stop_seconds=4) as hub, culler(hub, *BY_TIMEOUT):
        eventually("all are stopped", lambda: not hub.left(), within=40)
        assert max(done for _, done in hub.stops) - min(asked for asked, _ in hub.stops) < 12


def test_05_a_server_without_activity_crashes_nothing(culler):
    with FakeHub({"never": [""], "unborn": [""], "other": [""]}) as hub:
        hub.users["never"]["servers"][""]["last_activity"] = None
        hub.users["unborn"]["servers"][""] |= {"last_activity": None, "started": None}
        with culler(hub, *BY_TIMEOUT):
            eventually("those who can be judged are stopped", lambda: hub.left() == {"unborn/"}, within=20)
            holds("who cannot be judged stays", lambda: hub.left() == {"unborn/"}, during=3)


def test_06_who_came_back_meanwhile_is_left_alone(culler):
    def came_back(name, user):
        now = stamp(datetime.now(timezone.utc))
        servers = {key: server | {"last_activity": now} for key, server in user["servers"].items()}
        return user | {"servers": servers} if name == "back" else user

    with FakeHub({"back": [""], "away": [""]}) as hub:
        hub.on_one = came_back  # the list is older than that
        with culler(hub, *BY_TIMEOUT):
            eventually("away's server is stopped", lambda: hub.left() == {"back/"}, within=20)
            holds("back's is not", lambda: hub.left() == {"back/"}, during=3)
            assert hub.targets == ["/users/away/server"]


def test_06_who_restarted_meanwhile_is_left_alone(culler):
    def restarted(name, user):
        started = stamp(datetime.now(timezone.utc) - timedelta(days=1))  # another run, and no younger activity
        servers = {key: server | {"started": started} for key, server in user["servers"].items()}
        return user | {"servers": servers} if name == "back" else user

    with FakeHub({"back": [""], "away": [""]}) as hub:
        hub.on_one = restarted
        with culler(hub, *BY_TIMEOUT) as running:
            eventually("away's server is stopped", lambda: hub.left() == {"back/"}, within=20)
            eventually("it says why back's is not", lambda: "it was restarted" in running.log(), within=10)
            assert hub.targets == ["/users/away/server"]


def test_07_odd_names_are_quoted_whole(culler):
    people = {"a b": [""], "a/b": ["n 1"], "50%25": [""], "é@x.org": [""], "x?y#z": ["ü&=+"]}
    with FakeHub(people) as hub, culler(hub, *BY_TIMEOUT, "--cull-users"):
        eventually("all users are gone", lambda: not hub.users, within=60)
    assert set(hub.targets) == {
        "/users/a%20b/server", "/users/a%20b",
        "/users/a%2Fb/servers/n%201", "/users/a%2Fb",
        "/users/50%2525/server", "/users/50%2525",
        "/users/%C3%A9@x.org/server", "/users/%C3%A9@x.org",
        "/users/x%3Fy%23z/servers/%C3%BC%26%3D%2B", "/users/x%3Fy%23z",
    }  # fmt: skip


def test_08_tiny_timeouts_neither_crash_nor_cull_everybody(culler):
    with FakeHub({"away": [""]}) as hub:
        with culler(hub, "--timeout=1"):
            eventually("away's server is stopped", lambda: not hub.left(), within=20)
    with FakeHub({"away": [""]}) as hub, culler(hub, "--timeout=0") as running:
        eventually("it says why", lambda: "--timeout" in running.log(), within=10)
        holds("it lives and stops nobody", lambda: running.lives() and hub.left(), during=3)


def test_09_what_is_not_understood_is_said_loudly(culler, tmp_path):
    with FakeHub({"away": [""]}) as hub:
        with culler(hub, "--timeuot=600") as running:
            eventually("it ends as misused", lambda: running.process.poll() == 2, within=10)
            assert "--timeuot" in running.log() and "--timeout" in running.log()
        with culler(hub, "--timeuot=600", JUPYTERHUB_SERVICE_NAME="gpu-culler") as running:
            eventually("it says so", lambda: "--timeuot" in running.log(), within=10)
            holds("as a service it lives and stops nobody", lambda: running.lives() and hub.left(), during=3)
        missing = str(tmp_path / "nowhere.toml")
        running = culler(hub, "--timeout=600")
        running.command[running.command.index("--config") + 1] = missing
        with running:
            eventually("it names the file", lambda: missing in running.log(), within=10)
            holds("it lives and stops nobody", lambda: running.lives() and hub.left(), during=3)


def test_10_bare_booleans_and_underscores_work(culler):
    # As z2jh and TLJH write it.
    flags = ("--timeout=600", "--cull_every=1", "--concurrency=10", "--max_age=0", "--cull-users", "--remove-named-servers")
    with FakeHub({"away": ["", "named"]}) as hub, culler(hub, *flags):
        eventually("servers and user are gone", lambda: not hub.users, within=30)
        assert hub.targets[-1] == "/users/away"
        assert hub.removed == ["/users/away/servers/named"]


def test_15_a_hub_that_refuses_is_said_once_and_waited_for(culler):
    with FakeHub({"away": [""]}) as hub, culler(hub, *BY_TIMEOUT) as running:
        hub.refuses = True
        eventually("it says so", lambda: "JUPYTERHUB_API_TOKEN" in running.log(), within=20)
        holds("it lives on", running.lives, during=8)
        assert running.log().count("nothing is culled") <= 1 and "panicked" not in running.log()
        hub.refuses = False
        eventually("it goes to work by itself", lambda: not hub.left(), within=30)


def test_18_the_token_is_in_no_log(culler):
    with FakeHub({"away": [""]}) as hub:
        with culler(hub, *BY_TIMEOUT, GPU_CULLER_LOG="trace") as running:
            eventually("away's server is stopped", lambda: not hub.left(), within=20)
            hub.refuses = True
            eventually("it fails", lambda: "403" in running.log(), within=20)
        # The fixture has looked for the token in all of it.
        assert len(running.log()) > 1000
