"""A real JupyterHub with its proxy and gpu-culler as managed service."""

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import requests

from . import processes
from .ports import free_ports
from .visitor import Visitor
from .waiting import eventually

REPOSITORY = Path(__file__).resolve().parents[3]
DEMO = REPOSITORY / "deploy" / "demo"
PROXY_IN_PYTHON = [str(Path(sys.executable).parent / "configurable-http-proxy")]
PROXY_IN_NODE = [str(REPOSITORY / "target/node/node_modules/.bin/configurable-http-proxy")]

WENT_WELL = re.compile(r"JupyterHub log:\d+\] [23]\d\d |\[ConfigProxy\].*info.*: 2\d\d |ServerApp\] [23]\d\d ")


class Hub:
    """One Hub in one directory. `culler` is the service's command, `environment` what service and kernels get."""

    python = sys.executable  # whose jupyterhub it is
    config = DEMO / "jupyterhub_config.py"

    def __init__(self, directory, culler, proxy=PROXY_IN_NODE, environment=None):
        self.directory = Path(directory).resolve()
        self.culler = [str(word) for word in culler]
        self.proxy = proxy
        self.mark = f"{self.directory}-{secrets.token_hex(4)}"
        self.token = secrets.token_hex(16)
        self.environment = {**(environment or {}), "PYTHONPATH": str(DEMO), processes.MARK: self.mark}
        self.log = self.directory / "hub.log"
        self.process = None
        self.admin = None
        self.ports = None
        self.http = requests.Session()
        self.http.trust_env = False  # no proxy from the environment between this machine and itself

    def start(self, attempts=2):
        """Starts it and waits until it is up. A loaded machine may lose a start or a port, hence the second try."""
        for attempt in range(1, attempts + 1):
            try:
                self._start_once()
                return self
            except (AssertionError, OSError) as error:
                reason = f"start {attempt} of the Hub failed: {error}"
                print(reason, file=sys.stderr)
                self.kill()
                self.ports = None
        raise RuntimeError(reason)

    def crash(self):
        """Kills the Hub and nothing else, as the kernel does when memory is short."""
        self.process.kill()
        self.process.wait()

    def stop(self, patience=20.0):
        """Lets the Hub end its servers and services itself, then ends what is left; returns what would not end."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                pass
        return self.kill()

    def kill(self):
        """Ends every process of this Hub at once; returns what would not end."""
        if self.process and self.process.poll() is None:
            self.process.kill()  # first, or it would replace what ends
            self.process.wait()
        return processes.end_all(self.mark, patience=2.0)

    def api(self, method, path, **arguments):
        """A request to the Hub's API with the lab's token: the JSON of the answer, or None if it has no body."""
        answer = self.http.request(
            method,
            f"{self.hub_url}/hub/api{path}",
            headers={"Authorization": f"token {self.token}"},
            timeout=60,
            **arguments,
        )
        if not answer.ok:
            raise requests.HTTPError(f"{method} {path}: {answer.status_code} {answer.text}", response=answer)
        return answer.json() if answer.content else None

    def page(self, path="admin"):
        """What the service shows the Hub's admin, who is told what does not work."""
        self.admin = self.admin or Visitor(self, "admin")
        return self.admin.page(path)

    def stranger(self, path="", **arguments):
        """The answer of the service to a visitor without a login, through the proxy."""
        url = f"{self.public_url}/services/gpu-culler/{path}"
        return self.http.get(url, timeout=10, **{"allow_redirects": False, **arguments})

    def metrics(self, name, **labels):
        """The sum of all series of this metric that carry these labels; None if there are none."""
        answer = self.stranger("metrics", headers={"Authorization": f"token {self.token}"})
        answer.raise_for_status()
        wanted = {f'{label}="{value}"' for label, value in labels.items()}
        series = re.findall(rf"^{name}(?:\{{(.*?)\}})? (\S+)", answer.text, re.MULTILINE)
        values = [float(value) for given, value in series if wanted <= set(given.split(","))]
        return sum(values) if values else None

    def culler_process(self):
        """The running gpu-culler, or None."""
        return next((p for p in processes.of_run(self.mark) if p.cmdline()[: len(self.culler)] == self.culler), None)

    def log_tail(self, lines=40):
        """The end of the Hub's log, with the service's lines in it and without those about requests that went well."""
        log = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join([line for line in log.splitlines() if not WENT_WELL.search(line)][-lines:])

    def _start_once(self):
        self.ports = self.ports or free_ports(4)  # a Hub that starts again is where it was
        public, hub, proxy_api, culler = (f"http://127.0.0.1:{port}" for port in self.ports)
        self.public_url, self.hub_url = public, hub
        settings = {
            "directory": str(self.directory),
            "example": str(REPOSITORY / "jupyterhub_config_example.py"),
            "public_url": public,
            "hub_url": hub,
            "proxy_api_url": proxy_api,
            "proxy_command": self.proxy,
            "culler_url": culler,
            "culler_command": self.culler,
            "environment": self.environment,
            "token": self.token,
        }
        environment = {**os.environ, **self.environment, "LAB_SETTINGS": json.dumps(settings)}
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                [str(self.python), "-m", "jupyterhub", "-f", str(self.config)],
                cwd=self.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            log_begins = log.tell()
        began = time.monotonic()
        eventually("the Hub is up", lambda: self._is_up_or_ended(log_begins), within=60)
        if self.process.poll() is not None:
            raise AssertionError(f"it ended after {time.monotonic() - began:.0f} s with {self.process.returncode}")

    def _is_up_or_ended(self, log_begins):
        if self.process.poll() is not None:
            return True
        try:
            return self.http.get(f"{self.public_url}/hub/health", timeout=5).status_code == 200 and (
                b"JupyterHub is now running" in self.log.read_bytes()[log_begins:]
            )
        except requests.RequestException:
            return False
