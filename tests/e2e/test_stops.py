"""What the Hub says of a stop is not believed: the processes must be gone."""

from lab.stories import forget_and_leave
from lab.waiting import eventually, holds
from other_hubs import FailingStops


def test_a_stop_that_failed_is_told_and_a_slow_one_is_followed_up(start_hub, culler_config, arrive):
    hub = start_hub(culler_config(), FailingStops)
    olga, sam = arrive(hub, "olga", "sam")
    forget_and_leave(olga)
    forget_and_leave(sam)

    # The Hub forgets olga's server although her spawner could not stop it.
    eventually("the Hub has forgotten olga's server", lambda: not olga.is_running(), within=90)
    eventually("that is told", lambda: hub.metrics("gpu_culler_stops_total", outcome="orphaned") == 1, within=60)
    assert str(olga.server.pid) in hub.page().text
    assert hub.stranger().status_code == 302

    # It answers "still stopping" for sam's after ten seconds, and his ends two seconds later.
    eventually("sam's server is gone", lambda: not sam.is_running(), within=60)
    eventually("so are its processes", lambda: not sam.processes())
    eventually("that is counted", lambda: hub.metrics("gpu_culler_stops_total", outcome="stopped") == 1, within=30)

    holds("olga's processes are left alone", lambda: len(olga.processes()) == 2, during=5)
    assert hub.metrics("gpu_culler_stops_total", outcome="orphaned") == 1
