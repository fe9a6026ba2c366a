"""People who work otherwise than in a notebook's cells, and what gpu-culler says about them."""

import json
import subprocess
import threading

import requests
import websocket
from lab.waiting import eventually

# About half of one core, so that several of them fit on a small machine.
BURN = "import time\nwhile True:\n    end = time.time() + 0.05\n    while time.time() < end: pass\n    time.sleep(0.05)"


def hold(person, card):
    """The person's kernel holds memory on this card and rests."""
    person.kernel.run(f"import fake_card; fake_card.hold(gigabytes=20, card={card})")


def get(person, path, **arguments):
    """A request of the person's own, through the proxy."""
    return request("GET", person, path, **arguments)


class Terminal:
    """A terminal in the person's server."""

    def __init__(self, person):
        self.name = request("POST", person, "api/terminals").json()["name"]
        url = f"{person.hub.public_url}/user/{person.name}/terminals/websocket/{self.name}"
        self._socket = websocket.create_connection(
            url.replace("http", "ws", 1),
            header=_authorization(person),
            timeout=30,
            http_no_proxy=["127.0.0.1"],
        )

    def type(self, line, until):
        """Types a line and waits until this text is on the screen."""
        self._socket.send(json.dumps(["stdin", f"{line}\r"]))
        screen = ""

        def shown():
            nonlocal screen
            kind, *text = json.loads(self._socket.recv())
            screen += text[0] if kind == "stdout" else ""
            return until in screen

        eventually(f"the terminal shows {until}", shown, every=0)

    def leave(self):
        """Closes the browser; the terminal goes on."""
        self._socket.close()


class Repeating:
    """Does something every so many seconds until the block ends."""

    def __init__(self, act, every=1):
        self._act, self._every, self._over = act, every, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _run(self):
        while not self._over.wait(self._every):
            try:
                self._act()
            except requests.RequestException:
                pass  # its server may be gone by now


def explain(hub, person):
    """What `gpu-culler explain` says about the person's server, run beside the service with what the Hub gave it."""
    service = hub.culler_process()
    command = [hub.culler[0], "explain", person.name, "--format", "json", *hub.culler[2:]]
    done = subprocess.run(command, env=service.environ(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout)["evidence"])


def _authorization(person):
    return {"Authorization": f"token {person.token}"}


def request(method, person, path, **arguments):
    url = f"{person.hub.public_url}/user/{person.name}/{path}"
    answer = person.hub.http.request(method, url, headers=_authorization(person), timeout=30, **arguments)
    answer.raise_for_status()
    return answer
