"""A JupyterHub that is only its REST API: many ready servers, paged as the real one pages them.

It answers GET /, GET /user, GET /users (default page 50, at most 200), GET /users/NAME and DELETE of a server, which
takes as long as it is told. What a token's scopes hide in the real Hub is hidden here, too.
"""

import asyncio
import json
import subprocess
import threading
import time
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qs, unquote, urlsplit

DEFAULT_PAGE, LARGEST_PAGE = 50, 200
# Each program gets the scopes that its own documentation asks for.
SCOPES = {
    "gpu-culler": ["list:users", "read:servers", "admin:server_state", "tokens", "read:users:groups", "delete:servers"],
    "idle-culler": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
}


class SyntheticHub:
    """`idle` of its `users` were last active a day ago, the others just now. A stop takes `stop_seconds`.

    The servers of the idle ones are processes of this machine that really end; the others run elsewhere.
    """

    def __init__(self, users, idle=0, stop_seconds=1.0):
        now = datetime.now(timezone.utc)
        self.processes = [subprocess.Popen(["sleep", "3600"]) for _ in range(idle)]
        self.users = {
            f"user{n:05}": user_model(n, now, self.processes[n] if n < idle else None) for n in range(users)
        }
        self.stop_seconds = stop_seconds
        self.on_listing = lambda: None  # called when somebody asks for the first page
        self.stops = []  # when each stop was asked for and when it was done
        self.received = b""  # the body of the request that is being answered
        self._pages = {}
        self._loop = asyncio.new_event_loop()

    def __enter__(self):
        started = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(started,), daemon=True)
        self._thread.start()
        started.wait()
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        for process in self.processes:
            process.kill()
            process.wait()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hub/api"

    def _serve(self, started):
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connection, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        server.close()
        connections = asyncio.all_tasks(self._loop)
        for connection in connections:
            connection.cancel()
        self._loop.run_until_complete(asyncio.gather(*connections, return_exceptions=True))
        self._loop.close()

    async def _connection(self, reader, writer):
        try:
            while line := await reader.readline():
                method, target, _ = line.decode().split(" ", 2)
                headers = {}
                while (header := (await reader.readline()).decode().strip()):
                    name, _, value = header.partition(":")
                    headers[name.lower()] = value.strip()
                self.received = await reader.readexactly(int(headers.get("content-length", 0)))
                client = headers.get("authorization", "").removeprefix("token ")
                status, body = await self._answer(method, urlsplit(target), client)
                head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, method, url, client):
        path = [unquote(part) for part in url.path.removeprefix("/hub/api").strip("/").split("/")]
        if client not in SCOPES and path != [""]:
            return 403, b"{}"
        match method, path:
            case "GET", [""]:
                return 200, b'{"version": "6.1.1"}'
            case "GET", ["user"]:
                return 200, json.dumps({"kind": "service", "name": client, "scopes": SCOPES[client]}).encode()
            case "GET", ["users"]:
                return 200, self._page(client, parse_qs(url.query))
            case "GET", ["users", name] if name in self.users:
                return 200, json.dumps(shown(self.users[name], client)).encode()
            case "DELETE", ["users", name, "server"] if name in self.users:
                asked = time.monotonic()
                await asyncio.sleep(self.stop_seconds)
                server = self.users[name]["servers"].pop("")
                process = next(p for p in self.processes if p.pid == server["state"].get("pid"))
                process.kill()
                process.wait()
                self._pages.clear()
                self.stops.append((asked, time.monotonic()))
                return 204, b""
        return 404, b'{"status": 404, "message": "Not Found"}'

    def _page(self, client, query):
        offset = int(query.get("offset", ["0"])[0])
        limit = min(int(query.get("limit", [DEFAULT_PAGE])[0]), LARGEST_PAGE)
        if offset == 0:
            self.on_listing()
        if (client, offset, limit) not in self._pages:
            running = [user for user in self.users.values() if user["servers"]]
            end = offset + limit
            following = {"offset": end, "limit": limit, "url": f"{self.url}/users?state=ready&offset={end}&limit={limit}"}
            page = {
                "items": [shown(user, client) for user in running[offset:end]],
                "_pagination": {
                    "offset": offset,
                    "limit": limit,
                    "total": len(running),
                    "next": following if end < len(running) else None,
                },
            }
            self._pages[client, offset, limit] = json.dumps(page).encode()
        return self._pages[client, offset, limit]


def user_model(number, now, idle_process):
    """A user as JupyterHub 6 shows one; a server that is in use runs as a systemd unit of another machine."""
    name = f"user{number:05}"
    url = f"/user/{name}/"
    last_activity = stamp(now - timedelta(days=1) if idle_process else now)
    server = {
        "name": "",
        "full_name": f"{name}/",
        "display_name": "",
        "last_activity": last_activity,
        "started": stamp(now - timedelta(days=2)),
        "pending": None,
        "ready": True,
        "stopped": False,
        "url": url,
        "user_options": {"profile": "cpu-small"},
        "progress_url": f"/hub/api/users/{name}/server/progress",
        "full_url": None,
        "full_progress_url": None,
        "state": {"pid": idle_process.pid} if idle_process else {"unit_name": f"jupyter-{name}-singleuser"},
    }
    return {
        "kind": "user",
        "name": name,
        "admin": False,
        "groups": ["students"],
        "user_info": {"email": f"{name}@example.org", "name": f"User {number}"},
        "last_activity": last_activity,
        "servers": {"": server},
    }


def shown(user, client):
    """What the client's scopes let it see."""
    if client == "gpu-culler":
        return {key: value for key, value in user.items() if key != "last_activity"}
    servers = {
        name: {key: value for key, value in server.items() if key != "state"}
        for name, server in user["servers"].items()
    }
    return {**{key: value for key, value in user.items() if key != "groups"}, "servers": servers}


def stamp(instant):
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
