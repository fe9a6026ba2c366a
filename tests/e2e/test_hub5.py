"""JupyterHub 5, which knows no user_info and no extra_user_scopes."""

from keeping import log_in_and_keep
from lab.stories import forget_and_leave
from lab.waiting import eventually
from other_hubs import Hub5


def test_an_idle_owner_is_warned_and_the_server_stopped(start_hub, culler_config, arrive, mailbox, gpu_culler):
    config = culler_config(mail={"address": ["user_info.email", "{user}@example.org"]})
    hub = start_hub(config, Hub5)
    assert hub.api("GET", "/")["version"].startswith("5.")
    nora, mia = arrive(hub, "nora", "mia")

    # As the user, whose role of the example grants the page.
    scopes = hub.http.get(
        f"{hub.hub_url}/hub/api/user", headers={"Authorization": f"token {nora.token}"}, timeout=10
    ).json()["scopes"]
    assert "access:services!service=gpu-culler" in scopes
    checked = gpu_culler(hub, config, "check")
    assert checked.code == 0, checked.out + checked.errors

    forget_and_leave(nora)
    forget_and_leave(mia)
    eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)
    log_in_and_keep(hub, mia, another=nora)
    eventually("nora's server is gone", lambda: not nora.is_running(), within=60)
    eventually("so are its processes", lambda: not nora.processes())
    eventually("that is counted", lambda: hub.metrics("gpu_culler_stops_total", outcome="stopped") == 1)
    assert mia.is_running()
