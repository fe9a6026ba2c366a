"""People who use the Hub: they log in, start a server, run cells in a kernel, and go away."""

import json
import uuid
from urllib.parse import quote

import psutil
import websocket

from . import processes
from .waiting import eventually


class Person:
    """A user of the Hub with one server, the default or a named one, and one kernel."""

    def __init__(self, hub, name, server_name="", options=None):
        self.hub = hub
        self.name = name
        self.server_name = server_name
        self.address = f"{name}@example.org"
        self.options = options  # what is chosen at the start
        self.kernel = None
        self.server = None
        self._user = f"/users/{quote(name, safe='')}"
        self._server = f"{self._user}/servers/{quote(server_name, safe='')}"
        self._had = []

    def arrive(self):
        """Logs in, starts the server, and opens a notebook's kernel."""
        self.hub.api("POST", self._user)
        self.token = self.hub.api("POST", f"{self._user}/tokens", json={"note": "browser"})["token"]
        return self.start_server()

    def start_server(self):
        """Starts the server and opens a notebook's kernel."""
        self.hub.api("POST", self._server, json=self.options)
        model = eventually(f"{self.name}'s server is ready", self._ready_server, within=90)
        self.server = psutil.Process(model["state"]["pid"])
        self.kernel = Kernel(self, model["url"])
        self.kernel.process = psutil.Process(int(self.kernel.run("import os; print(os.getpid())")))
        self._had = processes.family(self.server)
        return self

    def stop_server(self):
        """Stops the server and waits until it is gone."""
        self.hub.api("DELETE", self._server)
        eventually(f"{self.name}'s server is gone", lambda: self.server_model() is None)

    def leave(self):
        """Closes the browser; server and kernel go on."""
        self.kernel.disconnect()

    def is_running(self):
        """Whether the Hub has a ready server of this person."""
        return self._ready_server() is not None

    def server_model(self):
        """What the Hub says about the server; None if it has none."""
        return self.hub.api("GET", self._user)["servers"].get(self.server_name)

    def processes(self):
        """The living processes of the server: the single-user server, its kernel, and what belongs to it."""
        return [process for process in self._had if processes.is_alive(process)]

    def _ready_server(self):
        model = self.server_model()
        return model if model and model["ready"] else None


class Kernel:
    """A kernel of a person's server, reached as a browser reaches it: through the proxy, over a WebSocket."""

    def __init__(self, person, server_url):
        self.process = None
        self._url = f"{person.hub.public_url}{server_url}api/kernels"
        self._authorization = {"Authorization": f"token {person.token}"}
        self._http = person.hub.http
        answer = self._http.post(self._url, headers=self._authorization, timeout=60)
        answer.raise_for_status()
        self.id = answer.json()["id"]
        self._socket = None

    def run(self, code, timeout=60):
        """Runs a cell to its end and returns what it printed."""
        printed = []
        request = self._send(code)
        for kind, content in self._answers(request, timeout):
            if kind == "stream":
                printed.append(content["text"])
            elif kind == "error":
                raise RuntimeError(f"the cell failed: {content['ename']}: {content['evalue']}")
            elif kind == "status" and content["execution_state"] == "idle":
                return "".join(printed)

    def start(self, code, timeout=60):
        """Starts a cell and returns when the kernel is busy with it."""
        request = self._send(code)
        for kind, content in self._answers(request, timeout):
            if kind == "status" and content["execution_state"] == "busy":
                return

    def disconnect(self):
        """Closes the WebSocket, as a browser does when its tab is closed."""
        if self._socket:
            self._socket.close()
            self._socket = None

    def state(self):
        """The kernel's state as its server tells it. Through the proxy, so it counts as somebody's presence."""
        answer = self._http.get(f"{self._url}/{self.id}", headers=self._authorization, timeout=10)
        answer.raise_for_status()
        return answer.json()["execution_state"]

    def _connected(self):
        if not self._socket:
            self._socket = websocket.create_connection(
                f"{self._url}/{self.id}/channels".replace("http", "ws", 1),
                header=self._authorization,
                timeout=60,
                http_no_proxy=["127.0.0.1"],
            )
        return self._socket

    def _send(self, code):
        request = uuid.uuid4().hex
        message = {
            "channel": "shell",
            "header": {
                "msg_id": request,
                "msg_type": "execute_request",
                "session": uuid.uuid4().hex,
                "username": "",
                "version": "5.3",
            },
            "parent_header": {},
            "metadata": {},
            "content": {"code": code, "silent": False, "store_history": True, "allow_stdin": False},
            "buffers": [],
        }
        self._connected().send(json.dumps(message))
        return request

    def _answers(self, request, timeout):
        self._connected().settimeout(timeout)
        while True:
            message = json.loads(self._connected().recv())
            if message["parent_header"].get("msg_id") == request and message["channel"] == "iopub":
                yield message["header"]["msg_type"], message["content"]
