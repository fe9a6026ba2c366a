"""A warned owner who comes back keeps everything."""

from lab.stories import forget_and_leave
from lab.waiting import eventually, holds


def test_a_cell_run_before_the_deadline_saves_the_server(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config(policy={"warn_after": "15s", "grace": "20s"}))
    (nora,) = arrive(hub, "nora")
    forget_and_leave(nora)
    eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)

    nora.kernel.run("1 + 1")
    nora.leave()

    # The old deadline is 20 s away; a new warning can come after 15 s, and a stop only 20 s after that.
    holds("her server runs past the old deadline", nora.is_running, during=28)
    assert len(nora.processes()) == 2
    assert not hub.metrics("gpu_culler_stops_total")
