"""Servers that SudoSpawner starts run as their users, below a helper that is gone at once."""

import os
import secrets
import shutil
import subprocess

import fake_card
import pytest
from lab.waiting import eventually
from other_hubs import ChangedHub
from working import explain


class SudoHub(ChangedHub):
    """Its servers run as accounts of this machine."""

    lines = """
c.JupyterHub.spawner_class = "sudospawner.SudoSpawner"
c.SudoSpawner.sudospawner_path = str(bin_directory / "sudospawner")
"""


@pytest.fixture
def accounts():
    """Two accounts of this machine, which go with the test."""
    if os.geteuid() != 0 or not shutil.which("sudo") or not shutil.which("useradd"):
        pytest.skip("accounts and sudo need root: run tests/make-sudo.sh")
    names = [f"{name}-{secrets.token_hex(3)}" for name in ("nora", "tina")]
    for name in names:
        subprocess.run(["useradd", "--create-home", "--user-group", name], check=True)
    yield names
    for name in names:
        # The helper that waits for a server ends shortly after it.
        remove = ["userdel", "--remove", name]
        eventually(f"{name} is gone", lambda remove=remove: subprocess.run(remove, capture_output=True).returncode == 0)


def hold(person, card):
    """The person's kernel, which may not write here, holds a card."""
    fake_card.hold(20, pid=person.kernel.process.pid, path=card)


def test_a_server_of_another_uid_is_found_warned_and_stopped(accounts, start_hub, culler_config, arrive, mailbox, card):
    hub = start_hub(culler_config(), SudoHub)
    nora, tina = arrive(hub, *accounts)
    assert nora.server.username() == nora.name and nora.kernel.process.username() == nora.name
    hold(nora, card)
    hold(tina, card)
    tina.kernel.start("while True: pass")
    nora.leave()
    tina.leave()

    eventually("nora's card is known", lambda: any(key.startswith("card GPU-fake-") for key in explain(hub, nora)))
    eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)
    eventually("nora's server is gone", lambda: not nora.is_running(), within=60)
    eventually("so are its processes", lambda: not nora.processes())
    eventually("that is counted", lambda: hub.metrics("gpu_culler_stops_total", outcome="stopped") == 1)
    assert tina.is_running() and not mailbox.to(tina.address)
