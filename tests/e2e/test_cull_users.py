"""Users who were not there for long are deleted where the admin asks for that, and nobody else is."""

from datetime import datetime, timedelta, timezone

from lab.page import visible_text
from lab.stories import forget_and_leave
from lab.waiting import eventually, holds
from other_hubs import UsersMayGo

IDLE_AFTER = 600  # seconds
WANTED = {"cull": True, "idle_after": f"{IDLE_AFTER}s", "cull_users": True}


def was_there(hub, name, seconds_ago):
    """Makes a user who was last active so long ago."""
    hub.api("POST", f"/users/{name}")
    last_seen(hub, name, seconds_ago)


def last_seen(hub, name, seconds_ago):
    """The Hub notes that this user was last active so long ago."""
    at = datetime.now(timezone.utc) - timedelta(seconds=seconds_ago)
    hub.api("POST", f"/users/{name}/activity", json={"last_activity": at.isoformat()})


def users(hub):
    return {user["name"] for user in hub.api("GET", "/users")}


def test_only_who_was_away_for_long_and_has_no_server_is_deleted(start_hub, culler_config, arrive, gpu_culler):
    config = culler_config(cpu_servers=WANTED, cycle="3s")
    hub = start_hub(config, UsersMayGo)
    assert gpu_culler(hub, config, "check").code == 0
    (nora,) = arrive(hub, "nora")
    forget_and_leave(nora)
    was_there(hub, "ina", seconds_ago=IDLE_AFTER - 100)
    last_seen(hub, "admin", seconds_ago=IDLE_AFTER * 9)
    hub.api("POST", "/users/never")  # nothing is known of when
    # Now stale at the Hub, but a server runs.
    was_there(hub, "odd%20name%40x.org", seconds_ago=IDLE_AFTER * 9)
    was_there(hub, "gone", seconds_ago=IDLE_AFTER * 9)
    before = users(hub)
    assert {"gone", "odd name@x.org", "admin"} <= before
    # The list of everybody is read seldom; a new start reads it at once.
    hub.culler_process().terminate()

    eventually("gone is deleted", lambda: "gone" not in users(hub), within=60)
    eventually("so is the odd name", lambda: "odd name@x.org" not in users(hub))
    holds("the others stay", lambda: users(hub) == before - {"gone", "odd name@x.org"}, during=8)
    assert nora.is_running()


def test_in_observe_nobody_is_deleted_and_a_missing_scope_is_named(start_hub, culler_config, gpu_culler):
    config = culler_config(mode="observe", cpu_servers=WANTED)
    hub = start_hub(config)
    was_there(hub, "gone", seconds_ago=IDLE_AFTER * 9)
    cycles = hub.metrics("gpu_culler_cycles_total") or 0
    eventually("it looks a few times", lambda: (hub.metrics("gpu_culler_cycles_total") or 0) > cycles + 3)
    assert "gone" in users(hub)

    config = culler_config(cpu_servers=WANTED)  # enforce, without the scopes
    eventually("the page names the scope", lambda: "delete:users" in visible_text(hub.page().text), within=30)
    checked = gpu_culler(hub, config, "check")
    assert checked.code == 1
    assert "delete:users is missing" in checked.out and "read:users:activity is missing" in checked.out
    assert "gone" in users(hub)
