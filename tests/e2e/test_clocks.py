"""A single-user server whose clock runs behind: its owner is never stopped early, and `explain` shows the clock."""

import shlex
import sys
from pathlib import Path

import pytest
from lab.stories import forget_and_leave
from lab.waiting import eventually, holds
from working import explain

LIBRARY = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)
WARN_AFTER, CONNECTED = 20, 30  # seconds


def set_servers_clock(directory, offset):
    """Lets the Hub that will start in this directory spawn servers, and kernels, whose clock is wrong by as much."""
    wrong = f"exec env LD_PRELOAD={LIBRARY} FAKETIME={offset} FAKETIME_DONT_FAKE_MONOTONIC=1 {shlex.quote(sys.executable)}"
    command = ["/bin/sh", "-c", f'{wrong} -m jupyterhub.singleuser "$@"', "server"]
    (directory / "more_config.py").write_text(f"c.Spawner.cmd = {command!r}\n")


@pytest.mark.skipif(not LIBRARY, reason="needs Debian's package libfaketime")
def test_a_server_whose_clock_is_wrong_is_warned_on_time(start_hub, culler_config, arrive, mailbox, tmp_path):
    set_servers_clock(tmp_path, "-2h")
    limits = {"warn_after": f"{WARN_AFTER}s", "connected_warn_after": f"{CONNECTED}s", "grace": "60s"}
    hub = start_hub(culler_config(policy=limits))
    (nora,) = arrive(hub, "nora")
    # Cards watched for longer than every limit, so that only the stamps tell that she was there.
    nora.kernel.run("import fake_card; fake_card.hold(gigabytes=20)")
    holds("she works for longer than the limits", lambda: nora.kernel.run("1") is not None, during=CONNECTED + 5)
    assert not mailbox.mails, "warned while she ran cells"
    told = explain(hub, nora)
    clock = told["server's clock"]
    assert clock.startswith(("2h ", "1h 59m ")) and "behind ours" in clock, told
    nora.leave()
    holds("she is not warned early", lambda: not mailbox.mails, during=WARN_AFTER - 5)
    eventually("she is warned", lambda: mailbox.to(nora.address), within=30)
