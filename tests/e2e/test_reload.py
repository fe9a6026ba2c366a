"""New settings while somebody is warned: what was promised stands, and what is more generous holds at once."""

import signal
from time import time

from lab.stories import forget_and_leave
from lab.waiting import eventually, holds

GRACE = 40  # seconds


def test_a_promise_outlives_a_shorter_grace_and_a_longer_limit_holds_at_once(
    start_hub, culler_config, arrive, mailbox
):
    def settings(**policy):
        return culler_config(policy={"warn_after": "10s", **policy}, safety={"min_uptime": "1s"})

    hub = start_hub(settings(grace=f"{GRACE}s"))
    nora, mara = arrive(hub, "nora", "mara")
    forget_and_leave(nora)
    eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)

    settings(grace="5s")
    gone_at = eventually("nora's server is gone", lambda: not nora.is_running() and time(), within=GRACE + 30)
    warned_at = mailbox.to(nora.address)[0].received_at
    assert gone_at - warned_at >= GRACE

    settings(grace="20s")
    forget_and_leave(mara)
    eventually("mara is warned", lambda: mailbox.to(mara.address), within=60)
    settings(grace="20s", warn_after="10m")
    hub.culler_process().send_signal(signal.SIGHUP)
    holds("mara's server runs on", mara.is_running, during=35)
    _, taken_back = mailbox.to(mara.address)
    assert "not going to be stopped" in taken_back["Subject"]
