"""A real agent by itself: what it says where it cannot see everybody's processes, and a certificate that changes."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import fake_card
import pytest
import requests
import trustme
from conftest import CULLER, LIBRARY
from lab.ports import free_ports
from lab.waiting import eventually

HIDEPID = 'mount -t proc -o hidepid=invisible proc /proc && exec "$@"'


@pytest.fixture
def folder():
    """A folder that every account may read, with the program in it."""
    with tempfile.TemporaryDirectory(prefix="gpu-culler-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


class Agent:
    """An agent with one card, started below the given command."""

    def __init__(self, folder, below=(), more=""):
        (port,) = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        scene, config = folder / "scene.json", folder / "agent.toml"
        fake_card.new_scene(scene, cards=1)
        scene.chmod(0o644)
        config.write_text(f'[agent]\nlisten = "{self.address}"\n{more}\n[telemetry.nvml]\nlibrary = "{folder}/nvml.so"\npoll = "1s"\n')
        for file, name in ((CULLER, "gpu-culler"), (LIBRARY, "nvml.so")):
            shutil.copy(file, folder / name)
        command = [*below, str(folder / "gpu-culler"), "agent", "--config", str(config)]
        environment = {**os.environ, "FAKE_NVML_SCENE": str(scene)}
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.STDOUT, stdout=open(folder / "log", "w"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def evidence(self):
        """Its answer once the card is read."""

        def asked():
            try:
                answer = requests.get(f"http://{self.address}/v1/evidence", timeout=5, proxies={"http": ""})
            except requests.RequestException:
                return None
            told = json.loads(answer.text)
            return told if "known" in told["cards"] else None

        return eventually("the agent tells of its card", asked)


def below(*command):
    """The command, or a skip where this machine does not permit it."""
    tried = subprocess.run([*command, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"{command[0]} is not permitted here: {tried.stderr.strip()}")
    return command


def test_where_proc_hides_others_nobody_is_guessed_and_it_says_so(folder):
    hidden = ("unshare", "--mount", "sh", "-c", HIDEPID, "sh")
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    with Agent(folder, below(*hidden, *nobody)) as agent:
        told = agent.evidence()
    assert "hidepid" in told["processes"]["unknown"] and "CAP_SYS_PTRACE" in told["processes"]["unknown"]
    assert len(told["cards"]["known"]) == 1, "the card itself is told all the same"
    with Agent(folder, below(*hidden)) as agent:
        assert agent.evidence()["processes"]["known"]["list"], "root sees everybody all the same"


def test_in_a_pid_namespace_of_its_own_nobody_is_guessed_and_it_says_so(folder):
    with Agent(folder, below("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")) as agent:
        told = agent.evidence()
    assert "run it in the host's pid namespace" in told["processes"]["unknown"]


def test_a_certificate_is_exchanged_under_it(folder):
    first, second = trustme.CA(), trustme.CA()
    cert, key = folder / "agent.crt", folder / "agent.key"

    def install(authority):
        issued = authority.issue_cert("127.0.0.1")
        issued.private_key_pem.write_to_path(key)
        issued.cert_chain_pems[0].write_to_path(cert)
        authority.cert_pem.write_to_path(folder / "ca.pem")

    def answers():
        try:
            return requests.get(f"https://{agent.address}/health", verify=str(folder / "ca.pem"), timeout=5, proxies={"https": ""}).ok
        except requests.RequestException:
            return False

    install(first)
    with Agent(folder, more=f'tls_cert_file = "{cert}"\ntls_key_file = "{key}"') as agent:
        eventually("it answers with the first one", answers)
        install(second)
        assert not answers(), "the old one is in force until it looks again"
        eventually("it answers with the second one", answers, within=40)
        key.write_text("not a key")
        eventually("it says that the third is none", lambda: "the old one stays" in (folder / "log").read_text(), within=40)
        assert answers()
