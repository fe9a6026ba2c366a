"""A Hub with internal_ssl, where everything inside shows certificates."""

from keeping import log_in_and_keep
from lab.stories import forget_and_leave, train_and_leave
from lab.waiting import eventually
from other_hubs import TlsHub


def test_an_idle_owner_is_warned_and_the_server_stopped(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config(cycle="3s"), TlsHub)  # each of its questions costs the server a handshake
    nora, tina, mia = arrive(hub, "nora", "tina", "mia")
    forget_and_leave(nora)
    forget_and_leave(mia)
    train_and_leave(tina)

    eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)
    assert nora.is_running()
    log_in_and_keep(hub, mia, another=nora)
    assert hub.metrics("gpu_culler_problems") == 0
    eventually("nora's server is gone", lambda: not nora.is_running(), within=60)
    eventually("so are its processes", lambda: not nora.processes())
    eventually("that is counted", lambda: hub.metrics("gpu_culler_stops_total", outcome="stopped") == 1)
    assert tina.is_running() and mia.is_running()
