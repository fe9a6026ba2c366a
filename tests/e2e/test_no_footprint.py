"""Looking at a server, even every second, neither moves the Hub's clock nor passes for somebody's presence."""

import time
from datetime import datetime

from lab.stories import forget_and_leave
from lab.waiting import eventually, holds
from routes import ForgetfulFront, hide_servers

WARN_AFTER, GRACE = 12, 6  # seconds
LIMITS = {"warn_after": f"{WARN_AFTER}s", "grace": f"{GRACE}s"}
LATE = 8  # seconds that a loaded machine may need more


def stamp(person):
    """The Hub's last activity of the person's server."""
    return datetime.fromisoformat(person.server_model()["last_activity"]).timestamp()


def leave(nora):
    forget_and_leave(nora)
    return time.time()


def is_warned_and_stopped_on_time(nora, left_at, mailbox):
    eventually("nora is warned", lambda: mailbox.to(nora.address), within=WARN_AFTER + LATE)
    warned_at = mailbox.to(nora.address)[0].received_at
    assert warned_at - left_at >= WARN_AFTER - 2
    at_warning = stamp(nora)
    gone_at = eventually("she is stopped", lambda: not nora.is_running() and time.time(), within=GRACE + LATE)
    assert gone_at - warned_at >= GRACE
    return at_warning


def test_asked_at_its_own_address_every_second(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config(policy=LIMITS))
    (nora,) = arrive(hub, "nora")
    left_at = leave(nora)
    assert is_warned_and_stopped_on_time(nora, left_at, mailbox) <= left_at + 2


def test_asked_through_the_proxy_every_second(start_hub, culler_config, arrive, mailbox, tmp_path):
    hide_servers(tmp_path)
    hub = start_hub(culler_config(policy=LIMITS))
    (nora,) = arrive(hub, "nora")
    left_at = leave(nora)
    assert is_warned_and_stopped_on_time(nora, left_at, mailbox) <= left_at + 2


def test_a_command_that_asks_through_the_proxy_is_nobody(start_hub, culler_config, arrive, mailbox, tmp_path, gpu_culler):
    hide_servers(tmp_path)
    config = culler_config(policy=LIMITS)
    hub = start_hub(config)
    (nora,) = arrive(hub, "nora")
    left_at = leave(nora)
    holds("she is not warned yet", lambda: not mailbox.mails, during=WARN_AFTER - 3)
    assert gpu_culler(hub, config, "explain", "nora").code == 0
    eventually("its look moved the Hub's stamp", lambda: stamp(nora) > left_at + 4, within=5)
    is_warned_and_stopped_on_time(nora, left_at, mailbox)


def test_its_own_traces_are_not_taken_for_somebody(start_hub, culler_config, arrive, mailbox, tmp_path):
    hide_servers(tmp_path)
    with ForgetfulFront() as front:
        config = culler_config(policy=LIMITS, hub={"public_url": front.url})
        hub = start_hub(config)
        front.target = hub.public_url
        (nora,) = arrive(hub, "nora")
        left_at = leave(nora)
        at_warning = is_warned_and_stopped_on_time(nora, left_at, mailbox)
        assert front.passed > 3 * WARN_AFTER
        assert at_warning > left_at + WARN_AFTER / 2, "here every look moves the Hub's stamp, or nothing is proven"
