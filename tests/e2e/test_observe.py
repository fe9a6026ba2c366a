"""In observe mode it decides as it would when in force, and does nothing."""

from lab.stories import forget_and_leave, train_and_leave
from lab.waiting import eventually, holds


def test_observe_mode_decides_but_neither_mails_nor_stops(start_hub, culler_config, arrive, mailbox, gpu_culler):
    config = culler_config(mode="observe")
    hub = start_hub(config)
    tina, nora = arrive(hub, "tina", "nora")
    train_and_leave(tina)
    forget_and_leave(nora)

    eventually("nora's session is idle", lambda: hub.metrics("gpu_culler_sessions", verdict="idle") == 1, within=60)
    assert hub.metrics("gpu_culler_sessions", verdict="busy") == 1
    assert hub.metrics("gpu_culler_mode", mode="observe") == 1

    cycles = hub.metrics("gpu_culler_cycles_total")
    holds("nora's server runs on", nora.is_running, during=30)  # longer than the grace it would have had
    assert hub.metrics("gpu_culler_cycles_total") > cycles
    assert hub.metrics("gpu_culler_sessions", verdict="idle") == 1
    assert mailbox.mails == []
    assert not hub.metrics("gpu_culler_warnings_total")
    assert not hub.metrics("gpu_culler_stops_total")
    assert len(nora.processes()) == 2 and tina.is_running()

    plan = gpu_culler(hub, config, "plan", "--format", "json")
    assert plan.code == 0, plan.errors
    planned = {line["server"]: line for line in plan.lines()}
    assert (planned["nora/"]["verdict"], planned["nora/"]["action"]) == ("idle", None)
    assert "observe" in planned["nora/"]["held_back"] and "warn its owner" in planned["nora/"]["held_back"]
    assert (planned["tina/"]["verdict"], planned["tina/"]["held_back"]) == ("busy", None)
