"""The service ends when it is told to, and when its Hub is gone."""

import signal

import pytest
from lab.processes import is_alive
from lab.stories import forget_and_leave
from lab.waiting import eventually, holds


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_within_a_second(start_hub, culler_config, told):
    hub = start_hub(culler_config())
    culler = hub.culler_process()
    culler.send_signal(told)
    eventually("it ended", lambda: not is_alive(culler), within=1, every=0.02)
    assert hub.process.poll() is None


def test_a_hub_that_was_killed_takes_it_along_and_can_start_again(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config(policy={"grace": "10m"}))
    (nora,) = arrive(hub, "nora")
    forget_and_leave(nora)
    culler = hub.culler_process()
    hub.crash()
    eventually("it ended", lambda: not is_alive(culler), within=5)

    hub.start(attempts=1)  # with the same ports
    assert hub.culler_process().pid != culler.pid
    eventually("its page answers", lambda: hub.stranger().ok)
    assert nora.is_running(), "a Hub that starts again finds the servers it left"
    eventually("the new one warns nora", lambda: mailbox.to(nora.address), within=60)
    holds("nobody is stopped for that", nora.is_running, during=5)


def test_the_hub_shuts_down_without_waiting_for_it(start_hub, culler_config):
    hub = start_hub(culler_config())
    assert hub.stop(patience=15) == []
    log = hub.log_tail(200)
    assert "...done" in log
    assert "panicked" not in log
