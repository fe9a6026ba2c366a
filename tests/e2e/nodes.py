"""GPU nodes: network namespaces of this machine with a real agent in each."""

import json
import os
import secrets
import subprocess
from pathlib import Path

import fake_card
import pytest
import requests
import trustme
from lab.waiting import eventually

PORT = 9410


def need_namespaces():
    """Skips where network namespaces are not permitted."""
    name = f"gpu-culler-{secrets.token_hex(3)}"
    if os.geteuid() != 0 or subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode != 0:
        pytest.skip("three nodes need network namespaces: run this as root, with iproute2")
    subprocess.run(["ip", "netns", "delete", name], check=True)


class Node:
    """One machine with a card of its own. All nodes share this machine's processes; a server is looked for only on
    the node that its spawner names."""

    def __init__(self, directory, number, network, culler, library, authority, token):
        self.name = f"gc{network}n{number}"
        self.address = f"198.18.{network}.{4 * number + 2}"
        self.url = f"https://{self.address}:{PORT}"
        self.scene = Path(directory) / f"{self.name}.scene.json"
        fake_card.new_scene(self.scene, cards=1)
        scene = json.loads(self.scene.read_text())
        scene["devices"][0]["uuid"] = f"GPU-of-{self.name}"
        self.scene.write_text(json.dumps(scene))
        self._connect(f"198.18.{network}.{4 * number + 1}")
        certificate = authority.issue_cert(self.address)
        cert, key = (Path(directory) / f"{self.name}.{part}" for part in ("crt", "key"))
        certificate.private_key_pem.write_to_path(key)
        certificate.cert_chain_pems[0].write_to_path(cert)
        config = Path(directory) / f"{self.name}.toml"
        config.write_text(
            f'[agent]\nlisten = "{self.address}:{PORT}"\ntoken_file = "{token}"\ntls_cert_file = "{cert}"\n'
            f'tls_key_file = "{key}"\n[telemetry.nvml]\nlibrary = "{library}"\npoll = "1s"\n'
        )
        self.log = Path(directory) / f"{self.name}.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.name, str(culler), "agent", "--config", str(config)],
                env={**os.environ, "FAKE_NVML_SCENE": str(self.scene)},
                stdout=log,
                stderr=log,
            )

    def _connect(self, here):
        def ip(*words):
            subprocess.run(["ip", *words], check=True)

        ip("netns", "add", self.name)
        ip("link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        ip("address", "add", f"{here}/30", "dev", self.name)
        ip("link", "set", self.name, "up")
        ip("-n", self.name, "address", "add", f"{self.address}/30", "dev", "eth0")
        ip("-n", self.name, "link", "set", "eth0", "up")
        ip("-n", self.name, "link", "set", "lo", "up")

    def cut_off(self):
        """Nothing reaches it any more, and nothing says so."""
        subprocess.run(["ip", "link", "set", self.name, "down"], check=True)

    def reconnect(self):
        subprocess.run(["ip", "link", "set", self.name, "up"], check=True)

    def answers(self, ca_file):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return requests.get(f"{self.url}/health", verify=str(ca_file), timeout=2, proxies={"https": ""}).ok
        except requests.RequestException:
            return False

    def end(self):
        self.process.terminate()
        self.process.wait(20)
        subprocess.run(["ip", "netns", "delete", self.name], check=True)


class Nodes:
    """Three nodes with an authority and a token."""

    def __init__(self, directory, culler, library):
        need_namespaces()
        self.token_file = Path(directory) / "agents-token"
        self.token_file.write_text(secrets.token_hex(16) + "\n")
        self.ca_file = Path(directory) / "agents-ca.pem"
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.ca_file)
        network = secrets.randbelow(250)
        self.all = []
        for number in range(3):
            self.all.append(Node(directory, number, network, culler, library, authority, self.token_file))

    def __enter__(self):
        for node in self.all:
            eventually(f"{node.name} answers", lambda node=node: node.answers(self.ca_file))
        return self

    def __exit__(self, *_):
        for node in self.all:
            node.end()

    def settings(self):
        """The section [telemetry.agents]."""
        return {
            "nodes": [node.url for node in self.all],
            "token_file": str(self.token_file),
            "ca_file": str(self.ca_file),
            "timeout": "2s",
        }
