"""What keeps the use clock moving although nobody works: after long only the card counts, and `explain` names it."""

import time

from lab import mail
from lab.stories import forget_and_leave
from lab.waiting import eventually, holds
from other_hubs import LabHub
from working import Repeating, Terminal, explain, get, hold

WARN_AFTER, CARD_UNUSED, LATE = 5, 25, 15  # seconds
LIMITS = {
    "warn_after": f"{WARN_AFTER}s",
    "connected_warn_after": f"{WARN_AFTER}s",
    "card_unused_warn_after": f"{CARD_UNUSED}s",
    "grace": "60s",
}


def test_an_extension_that_polls_a_kernel_and_a_loop_in_a_terminal(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config(policy=LIMITS), LabHub)
    pia, walt = arrive(hub, "pia", "walt")
    forget_and_leave(pia)
    hold(walt, card=1)
    walt.leave()
    terminal = Terminal(walt)
    terminal.type("while sleep 1; do clear; echo card $((1 + 1)); done", until="card 2")
    terminal.leave()
    left_at = time.time()

    # As the panel of jupyter-resource-usage does it.
    panel = f"api/metrics/v1/kernel_usage/get_usage/{pia.kernel.id}"
    assert "kernel_cpu" in get(pia, panel).json()["content"]
    with Repeating(lambda: get(pia, panel)):
        holds("neither is warned yet", lambda: not mailbox.mails, during=CARD_UNUSED - 10)
        signs = {pia: f"kernel {pia.kernel.id}", walt: f"terminal {terminal.name}"}
        for person, sign in signs.items():
            assert explain(hub, person)["use clock"].endswith(f"; moved by {sign}")
        for person, sign in signs.items():
            eventually("the warning", lambda: mailbox.to(person.address), within=CARD_UNUSED + LATE)  # noqa: B023
            (warning,) = mailbox.to(person.address)
            assert warning.received_at - left_at >= CARD_UNUSED - 10
            text = " ".join(mail.plain_text(warning).split())
            assert "After this long only the GPU counts" in text
            assert f"just now, " in text and sign in text
