"""A notebook left open in a browser is presence and not use; running a cell in it is use."""

import time

import pytest
from browser import NOTEBOOK, Browser, LabUser
from lab import mail
from lab.waiting import eventually, holds
from other_hubs import LabHub

WARN_AFTER, CONNECTED, GRACE, LATE = 8, 25, 20, 10  # seconds


@pytest.fixture
def browser(tmp_path):
    with Browser(tmp_path / "chromium") as window:
        yield window


def test_an_open_notebook_postpones_the_warning_and_a_cell_takes_it_back(
    start_hub, culler_config, mailbox, browser
):
    limits = {
        "warn_after": f"{WARN_AFTER}s",
        "connected_warn_after": f"{CONNECTED}s",
        "grace": f"{GRACE}s",
    }
    hub = start_hub(culler_config(policy=limits), LabHub)
    nora = LabUser(hub, "nora", browser).arrive()
    used_at = nora.run_cell(1)

    quiet = used_at + CONNECTED - 3 - time.time()
    holds("an open notebook is no reason to warn", lambda: not mailbox.mails, during=quiet)
    eventually("nora is warned", lambda: mailbox.to(nora.address), within=LATE)
    (warning,) = mailbox.mails
    assert warning.received_at - used_at >= CONNECTED - 1
    text = " ".join(mail.plain_text(warning).split())
    assert "Somebody is still connected, but an open browser tab alone does not count as use." in text
    assert "Having the notebook open in a browser tab is not enough." in text
    assert f"{NOTEBOOK} holds 35.4 GiB on GPU-fake-0" in text

    nora.run_cell(1)
    eventually("the warning is taken back", lambda: '"unmarked"' in hub.log_tail(400), within=LATE)
    # Warned again after CONNECTED at the earliest, and stopped GRACE later.
    holds("her server runs past the old deadline", nora.is_running, during=GRACE + 3)
    assert not hub.metrics("gpu_culler_stops_total")
