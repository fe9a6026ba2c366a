"""A Hub that is only its REST API, with people who have been away since yesterday, and gpu-culler at work on it."""

import asyncio
import json
import os
import subprocess
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import unquote

from synthetic_hub import SyntheticHub, stamp, user_model

TOKEN = "s3cr3t-t0ken-of-the-service"
SCOPES = [
    "list:users",
    "read:servers",
    "admin:server_state",
    "read:users:groups",
    "delete:servers",
    "read:users:activity",
    "delete:users",
]


class FakeHub(SyntheticHub):
    """Each of `people` (name: names of servers) runs these servers here, as processes that do nothing."""

    def __init__(self, people, stop_seconds=0.0):
        super().__init__(0, stop_seconds=stop_seconds)
        self.now = datetime.now(timezone.utc)
        for number, (name, servers) in enumerate(people.items()):
            self.users[name] = self._user(number, name, servers)
        self.broken_pages = set()  # offsets at which the list fails
        self.refuses = False
        self.on_one = lambda name, user: user  # what the Hub says of one user
        self.targets = []  # of each DELETE, as it was sent
        self.removed = []  # those that were to be removed for good

    def _user(self, number, name, servers):
        user = user_model(number, self.now, None) | {"name": name, "last_activity": stamp(self.now - timedelta(days=1))}
        model = user["servers"].pop("") | {"last_activity": stamp(self.now - timedelta(days=1))}
        for server in servers:
            process = subprocess.Popen(["sleep", "3600"])
            self.processes.append(process)
            user["servers"][server] = model | {"name": server, "state": {"pid": process.pid}}
        return user

    async def _answer(self, method, url, client):
        path = [unquote(part) for part in url.path.removeprefix("/hub/api").split("/")[1:]]
        if self.refuses:
            return 403, b'{"status": 403, "message": "Missing or invalid credentials."}'
        if client != TOKEN and path != [""]:
            return 403, b"{}"
        match method, path:
            case "GET", ["user"]:
                return 200, json.dumps({"kind": "service", "name": "gpu-culler", "scopes": SCOPES}).encode()
            case "GET", ["users", name] if name in self.users:
                return 200, json.dumps(self.on_one(name, self.users[name])).encode()
            case "DELETE", ["users", name, *which] if name in self.users:
                return await self._deleted(url, name, which)
        if (method, path) == ("GET", ["users"]) and any(f"offset={at}&" in url.query for at in self.broken_pages):
            return 500, b'{"status": 500, "message": "the database is locked"}'
        return await super()._answer(method, url, "gpu-culler")

    async def _deleted(self, url, name, which):
        self.targets.append(url.path.removeprefix("/hub/api"))
        if self.received and json.loads(self.received).get("remove"):
            self.removed.append(self.targets[-1])
        if not which:
            del self.users[name]
            return 204, b""
        asked = time.monotonic()
        await asyncio.sleep(self.stop_seconds)
        server = self.users[name]["servers"].pop("" if which == ["server"] else which[1])
        process = next(p for p in self.processes if p.pid == server["state"]["pid"])
        process.kill()
        process.wait()
        self.stops.append((asked, time.monotonic()))
        return 204, b""

    def _page(self, client, query):
        self._pages.clear()
        if query["state"] != ["inactive"]:
            return super()._page(client, query)
        idle = [user for user in self.users.values() if not user["servers"]]
        page = {"offset": 0, "limit": 200, "total": len(idle), "next": None}
        return json.dumps({"items": idle, "_pagination": page}).encode()

    def left(self):
        """The servers that run, as USER/SERVER."""
        return {f"{name}/{server}" for name, user in self.users.items() for server in user["servers"]}


class Culler:
    """gpu-culler with these arguments at work on a fake Hub; its log must never show the token."""

    def __init__(self, folder, binary, library, hub, *arguments, config="", **environment):
        scene = folder / "scene.json"
        scene.write_text(json.dumps({"driver": "580.95.05", "devices": []}))
        file = folder / "gpu-culler.toml"
        file.write_text(
            f'{config}\n[telemetry.nvml]\nlibrary = "{library}"\n[store]\npath = "{folder}/gpu-culler.sqlite"\n'
            '[safety]\nmax_stops_per_cycle = 1000\nmin_uptime = "1s"\n'
        )
        self.command = [str(binary), "run", "--config", str(file), *arguments]
        kept = {key: value for key, value in os.environ.items() if not key.startswith("JUPYTERHUB_")}
        given = {"JUPYTERHUB_API_URL": hub.url, "JUPYTERHUB_API_TOKEN": TOKEN, "FAKE_NVML_SCENE": str(scene)}
        self.environment = kept | given | environment
        self.log_file = Path(folder / "culler.log")

    def __enter__(self):
        with open(self.log_file, "w") as log:
            self.process = subprocess.Popen(self.command, env=self.environment, stdout=log, stderr=log)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        assert TOKEN not in self.log(), "the token is in the log"

    def log(self):
        return self.log_file.read_text()

    def lives(self):
        return self.process.poll() is None
