"""A real Chromium with a real JupyterLab in it, driven over the DevTools protocol."""

import base64
import json
import shutil
import subprocess
import time

import psutil
import requests
import websocket
from lab import processes
from lab.people import Person
from lab.waiting import eventually

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
    "--window-size=1400,1000",
    "--remote-debugging-port=0",
]
NOTEBOOK = "analysis.ipynb"


class Browser:
    """One window. `directory` is for its profile and must be new."""

    def __init__(self, directory):
        program = shutil.which("chromium")
        assert program, "there is no Chromium: run `make test-env`"
        self._directory = directory
        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={directory}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._count = 0
        self._socket = None

    def __enter__(self):
        try:
            port_file = self._directory / "DevToolsActivePort"
            eventually("Chromium listens", lambda: port_file.exists() and port_file.read_text(), within=60)
            address = f"http://127.0.0.1:{port_file.read_text().split()[0]}/json"
            with requests.Session() as http:
                http.trust_env = False
                pages = eventually("it has a window", lambda: _pages(http.get(address, timeout=10).json()))
            self._socket = websocket.create_connection(
                pages[0]["webSocketDebuggerUrl"], timeout=60, suppress_origin=True, http_no_proxy=["127.0.0.1"]
            )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self._socket:
            self._socket.close()
        try:
            family = processes.family(psutil.Process(self._process.pid))
        except psutil.NoSuchProcess:
            family = []
        for process in family:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                pass
        self._process.wait()

    def go(self, url):
        """Opens a page."""
        self._call("Page.navigate", url=url)

    def ask(self, script):
        """The value of an expression in the page; None while the page is not ready for it."""
        answer = self._call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        return answer.get("result", {}).get("value")

    def screenshot(self, file, width=1200, dark=False):
        """A picture of the whole page as it looks at this width."""
        self._call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        ])
        size = {"width": width, "deviceScaleFactor": 1, "mobile": width < 700}
        self._call("Emulation.setDeviceMetricsOverride", height=900, **size)
        height = self.ask("Math.min(4000, Math.ceil(document.documentElement.scrollHeight))") or 900
        self._call("Emulation.setDeviceMetricsOverride", height=height, **size)
        picture = self._call("Page.captureScreenshot", format="png")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(picture["data"]))

    def press_shift_enter(self):
        """Types Shift+Enter where the cursor is."""
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "modifiers": 8}
        self._call("Input.dispatchKeyEvent", type="rawKeyDown", **key)
        self._call("Input.dispatchKeyEvent", type="keyUp", **key)

    def _call(self, method, **parameters):
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer}"
                return answer["result"]


class LabUser(Person):
    """Somebody who works in JupyterLab with one notebook of two cells: the first holds a card, the second adds."""

    def __init__(self, hub, name, browser):
        super().__init__(hub, name)
        self._browser = browser

    def arrive(self):
        """Starts the server, logs in, opens the notebook and runs both cells."""
        home = self.hub.directory / "home" / self.name
        home.mkdir(parents=True)
        (home / NOTEBOOK).write_text(
            json.dumps(_notebook("import fake_card; fake_card.hold(gigabytes=38)", "1 + 1"))
        )
        self.hub.api("POST", f"/users/{self.name}")
        self.hub.api("POST", f"/users/{self.name}/server")
        model = eventually(f"{self.name}'s server is ready", self._ready_server, within=90)
        self.server = psutil.Process(model["state"]["pid"])
        self._log_in(f"/user/{self.name}/lab/tree/{NOTEBOOK}")
        eventually("the notebook is there and its kernel rests", self._is_ready, within=90)
        self.run_cell(0)
        self.run_cell(1)
        self._had = processes.family(self.server)
        return self

    def run_cell(self, index):
        """Runs a cell as people do, waits for its result and returns when the keys were pressed."""
        before, pressed_at = self._prompt(index), 0

        def ran():
            nonlocal pressed_at
            prompt = self._prompt(index)
            # A page that is still loading may lose the keys, or ask which kernel is meant.
            self._browser.ask("document.querySelector('.jp-Dialog .jp-mod-accept')?.click()")
            if prompt == before and time.time() - pressed_at > 3 and self._browser.ask(_focus(index)):
                pressed_at = time.time()
                self._browser.press_shift_enter()
            return prompt not in (None, before, "[*]:")

        eventually("the cell ran", ran, within=60)
        return pressed_at

    def _log_in(self, then):
        self._browser.go(f"{self.hub.public_url}/hub/login?next={then}")
        fill_in = f"""(() => {{
            const form = document.querySelector("#login-main form, form[action*=login]");
            if (!form) return false;
            form.querySelector("[name=username]").value = {json.dumps(self.name)};
            form.querySelector("[name=password]").value = "demo";
            form.submit();
            return true;
        }})()"""
        eventually("there is a login form", lambda: self._browser.ask(fill_in))

    def _is_ready(self):
        return self._browser.ask(
            """document.querySelectorAll(".jp-Notebook .jp-CodeCell").length >= 2
            && !!document.querySelector(".jp-Notebook-ExecutionIndicator[data-status=idle]")"""
        )

    def _prompt(self, index):
        return self._browser.ask(f"{_cell(index)}?.querySelector('.jp-InputPrompt')?.innerText")


def _cell(index):
    return f"document.querySelectorAll('.jp-Notebook .jp-CodeCell')[{index}]"


def _focus(index):
    return f"""(() => {{
        const editor = {_cell(index)}?.querySelector(".cm-content");
        editor?.focus();
        return !!editor && document.activeElement === editor;
    }})()"""


def _notebook(*cells):
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "cells": [
            {
                "id": f"cell-{index}",
                "cell_type": "code",
                "source": source,
                "metadata": {},
                "outputs": [],
                "execution_count": None,
            }
            for index, source in enumerate(cells)
        ],
    }


def _pages(targets):
    return [target for target in targets if target["type"] == "page"]
