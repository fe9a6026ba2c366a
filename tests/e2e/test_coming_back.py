"""A warned owner who comes back keeps everything, and a later warning promises as much time as the first."""

from time import time

from lab.stories import forget_and_leave, wait_and_leave
from lab.waiting import eventually, holds

GRACE = 20  # seconds, as in culler_config


def test_a_cell_run_before_the_deadline_saves_the_server(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config())
    (nora,) = arrive(hub, "nora")
    forget_and_leave(nora)
    (first,) = eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)

    nora.kernel.run("1 + 1")
    nora.leave()

    left = first.received_at + GRACE + 5 - time()
    holds("her server runs past the old deadline", nora.is_running, during=left)
    assert len(nora.processes()) == 2
    assert not hub.metrics("gpu_culler_stops_total")

    gone_at = eventually("she forgets it again, and it goes", lambda: not nora.is_running() and time(), within=90)
    _, second = mailbox.warnings()
    withdrawn = [m for m in mailbox.mails if "not going to be stopped" in m["Subject"]]
    assert [m["In-Reply-To"] for m in withdrawn] == [first["Message-ID"]], "she is told once that it no longer holds"
    assert withdrawn[0].received_at < first.received_at + GRACE + 5
    assert second["Message-ID"] != first["Message-ID"]
    assert gone_at - second.received_at >= GRACE


def test_a_server_restarted_after_the_warning_is_another_one(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config())
    (nora,) = arrive(hub, "nora")
    forget_and_leave(nora)
    (warning,) = eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)

    nora.stop_server()
    nora.start_server()
    forget_and_leave(nora)

    left = warning.received_at + GRACE + 5 - time()
    holds("the new server runs past the old deadline", nora.is_running, during=left)
    assert len(nora.processes()) == 2
    assert not hub.metrics("gpu_culler_stops_total")
    assert not [m for m in mailbox.mails if m["In-Reply-To"]], "she was told of a stop that was none"


def test_a_cell_that_waits_in_silence_is_work(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config(policy={"warn_after": "8s", "grace": "8s"}))
    (will,) = arrive(hub, "will")
    wait_and_leave(will)
    holds("will's cell goes on", lambda: will.is_running() and len(will.processes()) == 2, during=30)
    assert hub.metrics("gpu_culler_sessions", verdict="busy") == 1
    assert mailbox.mails == []


def test_a_cell_that_waits_for_long_is_told_once(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config(policy={"warn_after": "8s", "grace": "8s", "busy_kernel_limit": "12s"}))
    (will,) = arrive(hub, "will")
    wait_and_leave(will)
    (told,) = eventually("will is told", lambda: mailbox.to(will.address), within=60)
    assert told["Subject"].startswith("[gpu-culler] will: your cell has waited ")
    holds("his cell goes on, and no other mail comes", will.is_running, during=25)
    assert mailbox.mails == [told]
    assert hub.metrics("gpu_culler_sessions", verdict="busy") == 1


def test_a_cell_that_waits_for_long_is_stopped_where_the_admin_says_so(
    start_hub, culler_config, arrive, mailbox
):
    policy = {"warn_after": "8s", "grace": "8s", "busy_kernel_limit": "12s", "busy_kernel_action": "stop"}
    hub = start_hub(culler_config(policy=policy))
    (will,) = arrive(hub, "will")
    wait_and_leave(will)
    gone_at = eventually("will's server is stopped", lambda: not will.is_running() and time(), within=90)
    warning = mailbox.to(will.address)[0]
    assert "a cell has waited for long" in warning["Subject"]
    assert gone_at - warning.received_at >= 8
