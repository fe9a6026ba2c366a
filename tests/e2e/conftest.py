"""A real Hub, real kernels, a fake card and a real mail server for each test."""

import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fake_card
import pytest
from culler_config import BASE, merged, to_toml
from lab.hub import REPOSITORY, Hub
from lab.people import Person
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

    def write(**changes):
        paths = {
            "telemetry": {"nvml": {"library": str(LIBRARY)}},
            "mail": mailbox.settings(),
            "store": {"path": str(tmp_path / "gpu-culler.sqlite")},
        }
        file = tmp_path / "gpu-culler.toml"
        file.write_text(to_toml(merged(merged(BASE, paths), changes)))
        return file

    return write


@pytest.fixture
def start_hub(tmp_path, card, request):
    """Starts a Hub whose gpu-culler has this configuration file; ends every process of it after the test."""
    started = []

    def start(config):
        assert CULLER.exists(), f"{CULLER} is missing: run `make build`"
        return start_with([CULLER, "run", "--config", config])

    def start_with(command):
        hub = Hub(tmp_path, command, environment={"FAKE_NVML_SCENE": str(card)})
        started.append(hub)
        return hub.start()

    start.with_service = start_with
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


@pytest.fixture
def silent_server():
    """The port of a server that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
