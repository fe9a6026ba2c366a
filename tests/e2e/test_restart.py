"""A service that dies between the warning and the stop goes on where it was."""

from time import time

from lab.stories import forget_and_leave
from lab.waiting import eventually

BURST = """
import time, fake_card
fake_card.hold(gigabytes=9)
with fake_card.work(sm=87, dram=31):
    time.sleep(3)
fake_card.release()
"""
GRACE = 45  # seconds; the Hub restarts a dead service within 30


def test_killed_between_warning_and_stop_it_mails_once_and_stops_on_time(start_hub, culler_config, arrive, mailbox):
    config = culler_config(
        policy={"grace": f"{GRACE}s"},
        telemetry={"max_gap": "60s", "min_coverage": 0.1, "warm_up": "1s"},
        safety={"min_uptime": "2s"},
    )
    hub = start_hub(config)
    (nora,) = arrive(hub, "nora")
    nora.kernel.run(BURST)
    forget_and_leave(nora)
    eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)

    def her_chart_shows_the_burst():
        return "SM: peak 87 %" in hub.page("session/nora/").text

    eventually("her chart shows it", her_chart_shows_the_burst)
    killed = hub.culler_process()
    killed.kill()

    def replaced():
        process = hub.culler_process()
        return process and process.pid != killed.pid

    eventually("the Hub starts it again", replaced, within=40)
    assert nora.is_running()
    eventually("her chart still shows it", her_chart_shows_the_burst, within=20)
    gone_at = eventually("nora's server is gone", lambda: not nora.is_running() and time(), within=80)
    eventually("so are its processes", lambda: not nora.processes())

    eventually("she is told", lambda: len(mailbox.mails) == 2)
    (warning,) = mailbox.warnings()
    assert GRACE <= gone_at - warning.received_at <= GRACE + 10
