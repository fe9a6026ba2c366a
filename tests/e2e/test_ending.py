"""The service ends when it is told to, and when its Hub is gone."""

from lab.processes import is_alive
from lab.waiting import eventually


def test_sigterm_ends_it_within_a_second(start_hub, culler_config):
    hub = start_hub(culler_config())
    culler = hub.culler_process()
    culler.terminate()
    eventually("it ended", lambda: not is_alive(culler), within=1, every=0.02)
    assert hub.process.poll() is None


def test_it_does_not_outlive_a_hub_that_was_killed(start_hub, culler_config):
    hub = start_hub(culler_config())
    culler = hub.culler_process()
    assert is_alive(culler)
    hub.process.kill()
    hub.process.wait()
    eventually("it ended", lambda: not is_alive(culler), within=10)


def test_the_hub_shuts_down_without_waiting_for_it(start_hub, culler_config):
    hub = start_hub(culler_config())
    assert hub.stop(patience=15) == []
    log = hub.log_tail(200)
    assert "...done" in log
    assert "panicked" not in log
