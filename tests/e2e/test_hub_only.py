"""Without the scopes `tokens` and `access:servers` only the Hub's activity and the processor tell: it says so, and
holds sessions longer, never shorter."""

import time

from lab.page import visible_text
from lab.stories import crunch_and_leave, forget_and_leave
from lab.waiting import eventually, holds
from other_hubs import NoTokens
from working import Repeating, explain, get

WARN_AFTER, CONNECTED, GRACE, LATE = 12, 15, 15, 15  # seconds
LIMITS = {"warn_after": f"{WARN_AFTER}s", "connected_warn_after": f"{CONNECTED}s", "grace": f"{GRACE}s"}


def test_the_hubs_activity_and_the_processor_alone(start_hub, culler_config, arrive, mailbox, gpu_culler):
    config = culler_config(policy=LIMITS, telemetry={"cpu_busy_threshold": 0.1})
    hub = start_hub(config, NoTokens)
    nora, tab, carl = arrive(hub, "nora", "tab", "carl")
    crunch_and_leave(carl)  # a silent cell: no kernel may be asked, the Hub sees nobody
    forget_and_leave(tab)
    with Repeating(lambda: get(tab, "api/contents")):  # a tab left open
        forget_and_leave(nora)
        left_at = time.time()

        checked = gpu_culler(hub, config, "check")
        assert checked.code == 0, checked.out + checked.errors
        for told in (checked.out, visible_text(hub.page().text)):
            assert "Kernels are not asked" in told and "the scope tokens is missing" in told

        (warning,) = eventually("nora is warned", lambda: mailbox.to(nora.address), within=WARN_AFTER + LATE)
        assert warning.received_at - left_at >= WARN_AFTER - 2
        gone_at = eventually("nora is stopped", lambda: not nora.is_running() and time.time(), within=GRACE + LATE)
        assert gone_at - warning.received_at >= GRACE
        holds("the others go on", lambda: tab.is_running() and carl.is_running(), during=5)
        assert {mail.recipients[0] for mail in mailbox.mails} == {nora.address}

        told = explain(hub, tab)
        assert "not asked" in told["kernels"]
        assert told["use clock"].endswith("; moved by the Hub's stamp"), told
        told = explain(hub, carl)
        assert told["use clock"].endswith("; moved by CPU work of its processes"), told
