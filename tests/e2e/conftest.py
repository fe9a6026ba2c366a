"""A real Hub, real kernels, a fake card and a real mail server for each test."""

import json
import os
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import fake_card
import pytest
from cluster import Cluster
from culler_config import BASE, merged, to_toml
from lab.hub import REPOSITORY, Hub
from lab.people import Person
from lab.waiting import eventually
from mail_server import Mailbox

CULLER = Path(os.environ.get("GPU_CULLER_BIN", REPOSITORY / "target/debug/gpu-culler"))
LIBRARY = Path(os.environ.get("FAKE_NVML_LIB", REPOSITORY / "target/debug/libfake_nvml.so"))


@pytest.fixture
def mailbox(tmp_path):
    """A mail server that takes mail only over TLS and after a login."""
    with Mailbox(tmp_path) as box:
        yield box


@pytest.fixture
def card(tmp_path):
    """The scene of three fake cards; processes that end disappear from it."""
    scene = tmp_path / "scene.json"
    fake_card.new_scene(scene)
    over = threading.Event()

    def watch():
        while not over.wait(0.3):
            fake_card.forget_the_dead(scene)

    watcher = threading.Thread(target=watch)
    watcher.start()
    yield scene
    over.set()
    watcher.join()


@pytest.fixture
def culler_config(tmp_path, mailbox):
    """Writes gpu-culler's configuration with the given changes, and returns its path."""

    def write(name="gpu-culler.toml", **changes):
        paths = {
            "telemetry": {"nvml": {"library": str(LIBRARY)}},
            "mail": mailbox.settings(),
            "store": {"path": str(tmp_path / "gpu-culler.sqlite")},
        }
        file = tmp_path / name
        file.write_text(to_toml(merged(merged(BASE, paths), changes)))
        return file

    return write


@pytest.fixture
def start_cluster(tmp_path):
    """Starts a cluster whose nodes have so many cards each. A test asks for it before `start_hub`, so that it outlives
    the Hub."""
    with ExitStack() as started:
        yield lambda *nodes: started.enter_context(Cluster(tmp_path, nodes))


@pytest.fixture
def start_hub(tmp_path, card, request):
    """Starts a Hub whose gpu-culler has this configuration file; ends every process of it after the test."""
    started = []

    def start(config, kind=Hub):
        assert CULLER.exists(), f"{CULLER} is missing: run `make build`"
        command = [CULLER, "run", "--config", config]
        hub = kind(tmp_path, command, environment={"FAKE_NVML_SCENE": str(card)})
        started.append(hub)
        return hub.start()

    yield start
    left = [process for hub in started for process in hub.kill()]
    for hub in started:
        request.node.add_report_section("teardown", "end of the Hub's log", hub.log_tail(80))
    assert not left, "these processes would not end"


@pytest.fixture
def arrive():
    """Lets people arrive at a Hub, all at the same time."""

    def arrive_together(hub, *names):
        with ThreadPoolExecutor() as pool:
            return list(pool.map(lambda name: Person(hub, name).arrive(), names))

    return arrive_together


class Ran:
    """What a command came to."""

    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout
        self.errors = process.stderr

    def lines(self):
        """The output of `--format json`."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def gpu_culler():
    """Runs a command of gpu-culler with the environment that the Hub gave the service."""

    def run(hub, config, *arguments, **environment):
        given = eventually("the Hub started the service", hub.culler_process).environ()
        command = [CULLER, *arguments, "--config", config]
        return Ran(
            subprocess.run(command, env={**given, **environment}, capture_output=True, text=True, timeout=60)
        )

    return run


@pytest.fixture
def silent_server():
    """The port of a server that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
