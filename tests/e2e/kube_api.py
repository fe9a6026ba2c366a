"""A small Kubernetes API server that keeps its objects in memory.  usage: kube_api.py PORT [TOKENS.json]

It does what clients rely on: resource versions, lists in pages, watches that resume, bookmarks, 410 for what is
forgotten, selectors, patches, the subresources of pods, graceful deletion, and RBAC from the roles stored in it.
TOKENS.json: {"TOKEN": {"user": "NAME", "rules": [RULE, ...]}}; a rule is one of RBAC's and holds everywhere, beside
what the roles bound to that user allow. Without the file everybody may do everything.

For tests: PUT /_faults takes [{"match": "GET /api/v1/.*pods", "times": 2, "status": 429, "retry_after": 1}], or "delay"
in seconds, or "drop": true; POST /_compact forgets old events, POST /_hang_up ends all watches, GET /_requests lists
who asked for what.
"""

import asyncio
import base64
import copy
import json
import re
import sys
from pathlib import Path

from aiohttp import web
from kube_access import Access
from kube_store import KINDS, Refused, Store, at, has_fields, has_labels, merged, patched, status_of

REVIEW = ("authorization.k8s.io/v1", "selfsubjectaccessreviews")
BOOKMARK_EVERY = 5  # seconds; a real server takes a minute
VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.2-in-memory"}


class Asked:
    """One request, taken apart."""

    def __init__(self, request):
        self.http, self.query = request, request.query
        words = request.path.strip("/").split("/")
        self.group_version = "v1" if words[0] == "api" else "/".join(words[1:3])
        rest = words[2:] if words[0] == "api" else words[3:]
        self.namespace = None
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            self.namespace, rest = rest[1], rest[2:]
        self.resource, self.name, self.sub = (rest + [None, None])[:3]
        self.kind = (self.group_version, self.resource)
        if self.kind not in KINDS or len(rest) > 3:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        self.watch = self.query.get("watch", "").lower() in ("1", "true")
        self.verb = self._verb()

    def _verb(self):
        if self.http.method == "GET":
            return "watch" if self.watch else "get" if self.name else "list"
        if self.http.method == "DELETE":
            return "delete" if self.name else "deletecollection"
        return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(self.http.method, "")

    def needs(self):
        """What RBAC is asked for."""
        return {
            "verb": self.verb,
            "group": self.group_version.rpartition("/")[0],
            "resource": self.resource + (f"/{self.sub}" if self.sub else ""),
            "namespace": self.namespace or "",
            "name": self.name or "",
        }

    def selects(self, thing):
        return (
            (not self.namespace or thing["metadata"].get("namespace") == self.namespace)
            and has_labels(thing, self.query.get("labelSelector", ""))
            and has_fields(thing, self.query.get("fieldSelector", ""), self.resource)
        )


class Watch:
    """One open watch."""

    def __init__(self, store, asked, answer):
        self.store, self.asked, self.answer = store, asked, answer
        self.version = int(asked.query.get("resourceVersion") or 0)

    async def send(self, event, thing):
        await self.answer.write(json.dumps({"type": event, "object": thing}).encode() + b"\n")

    async def run(self):
        initial = self.asked.query.get("sendInitialEvents") == "true"
        if self.version and self.version < self.store.floor and not initial:
            message = f"too old resource version: {self.version} ({self.store.floor})"
            return await self.send("ERROR", status_of("Failure", message=message, reason="Expired", code=410))
        if initial or not self.version:
            self.version = self.store.version
            for thing in [*self.store.objects[self.asked.kind].values()]:
                if self.asked.selects(thing):
                    await self.send("ADDED", thing)
            if initial:
                await self.bookmark({"k8s.io/initial-events-end": "true"})
        loop = asyncio.get_running_loop()
        end = loop.time() + float(self.asked.query.get("timeoutSeconds", 1800))
        while (left := end - loop.time()) > 0:
            await self._send_news()
            try:
                async with self.store.news:
                    fresh = self.store.news.wait_for(lambda: self.store.version > self.version)
                    await asyncio.wait_for(fresh, min(left, BOOKMARK_EVERY))
            except asyncio.TimeoutError:
                if self.asked.query.get("allowWatchBookmarks", "").lower() in ("1", "true"):
                    await self.bookmark()

    async def bookmark(self, annotations=None):
        meta = {"resourceVersion": str(self.version)} | ({"annotations": annotations} if annotations else {})
        kind = KINDS[self.asked.kind][0]
        await self.send("BOOKMARK", {"kind": kind, "apiVersion": self.asked.group_version, "metadata": meta})

    async def _send_news(self):
        for version, event, kind, thing, before in [e for e in self.store.events if e[0] > self.version]:
            if kind == self.asked.kind and (event := self._seen_as(event, thing, before)):
                await self.send(event, thing)
            self.version = version

    def _seen_as(self, event, thing, before):
        """What enters or leaves the selection is added or deleted for whoever watches the selection."""
        was, is_ = before is not None and self.asked.selects(before), self.asked.selects(thing)
        if event == "MODIFIED":
            return "MODIFIED" if was and is_ else "ADDED" if is_ else "DELETED" if was else None
        return event if is_ or was else None


class Api:
    """The server's answers."""

    def __init__(self, tokens):
        self.store = Store()
        self.access = Access(self.store, tokens)
        self.faults, self.requests, self.watches = [], [], set()

    @web.middleware
    async def around(self, request, handler):
        """Faults come before everything, and refusals are answers."""
        try:
            for fault in self.faults:
                if fault.get("times", 1) > 0 and re.match(fault["match"], f"{request.method} {request.path_qs}"):
                    fault["times"] = fault.get("times", 1) - 1
                    await self._fail(fault, request)
            return await handler(request)
        except Refused as refused:
            return refused.answer

    @staticmethod
    async def _fail(fault, request):
        await asyncio.sleep(fault.get("delay", 0))
        if fault.get("drop"):
            request.transport.abort()
            raise Refused(503, "ServiceUnavailable", "never sent")
        if status := fault.get("status"):
            reason = {429: "TooManyRequests", 503: "ServiceUnavailable"}.get(status, "InternalError")
            raise Refused(status, fault.get("reason", reason), "injected by the test", fault.get("retry_after"))

    async def answer(self, request):
        asked = Asked(request)
        user = self.access.user(request)
        body = await body_of(request)
        if asked.kind == REVIEW:
            return self._review(user, body)
        self.requests.append({"user": user["user"], **asked.needs()})
        self.access.check(user, asked.needs())
        key = (asked.namespace, asked.name)
        if asked.name and key not in self.store.objects[asked.kind]:
            raise Refused(404, "NotFound", f'{asked.resource} "{asked.name}" not found')
        return await getattr(self, asked.verb)(asked, key, body)

    def _review(self, user, body):
        wanted = at(body, "spec.resourceAttributes") or {}
        needs = {key: wanted.get(key, "") for key in ("verb", "group", "resource", "namespace", "name")}
        if wanted.get("subresource"):
            needs["resource"] += "/" + wanted["subresource"]
        status = {"allowed": self.access.allows(user, needs)}
        review = {"kind": KINDS[REVIEW][0], "apiVersion": REVIEW[0], "metadata": {}}
        return web.json_response({**review, "spec": body.get("spec"), "status": status}, status=201)

    async def get(self, asked, key, _):
        return web.json_response(self.store.objects[asked.kind][key])

    async def list(self, asked, _key, _body):
        everything = self.store.objects[asked.kind]
        keys = sorted(everything, key=lambda key: (key[0] or "", key[1]))
        version, after = page_start(asked.query.get("continue"), self.store)
        found = [key for key in keys if [key[0] or "", key[1]] > after and asked.selects(everything[key])]
        limit = int(asked.query.get("limit") or 0) or len(found)
        meta = {"resourceVersion": str(version)}
        if found[limit:]:
            meta |= {"continue": page_end(version, found[limit - 1]), "remainingItemCount": len(found) - limit}
        # The items of a real server's list do not say what kind they are.
        items = [{k: v for k, v in everything[key].items() if k not in ("kind", "apiVersion")} for key in found[:limit]]
        kind = KINDS[asked.kind][0] + "List"
        return web.json_response({"kind": kind, "apiVersion": asked.group_version, "metadata": meta, "items": items})

    async def watch(self, asked, _key, _body):
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        answer.enable_chunked_encoding()
        await answer.prepare(asked.http)
        connection = asked.http.transport
        self.watches.add(connection)
        try:
            await Watch(self.store, asked, answer).run()
        except ConnectionError:
            pass  # the client has gone
        finally:
            self.watches.discard(connection)
        return answer

    async def create(self, asked, key, body):
        if asked.sub == "binding":
            pod = copy.deepcopy(self.store.objects[asked.kind][key])
            if at(pod, "spec.nodeName"):
                raise Refused(409, "Conflict", f"pod {key[1]} is already assigned to node {pod['spec']['nodeName']}")
            pod["spec"]["nodeName"] = body["target"]["name"]
            await self.store.replace(asked.kind, key, pod, status_only=False)
            return web.json_response(status_of("Success"), status=201)
        return web.json_response(await self.store.create(asked.kind, asked.namespace, body), status=201)

    async def update(self, asked, key, body):
        return web.json_response(await self.store.replace(asked.kind, key, body, asked.sub == "status"))

    async def patch(self, asked, key, body):
        old = self.store.objects[asked.kind][key]
        in_steps = asked.http.content_type == "application/json-patch+json"
        new = patched(copy.deepcopy(old), body) if in_steps else merged(old, body)
        return await self.update(asked, key, new)

    async def delete(self, asked, key, body):
        thing = self.store.objects[asked.kind][key]
        wanted = at(body, "preconditions.uid")
        if wanted and wanted != thing["metadata"]["uid"]:
            raise Refused(409, "Conflict", f"Precondition failed: UID in precondition: {wanted}")
        grace = asked.query.get("gracePeriodSeconds", body.get("gracePeriodSeconds"))
        grace = at(thing, "spec.terminationGracePeriodSeconds") if grace is None else int(grace)
        return web.json_response(await self.store.delete(asked.kind, key, grace))

    async def deletecollection(self, asked, _key, body):
        for key in [key for key, thing in self.store.objects[asked.kind].items() if asked.selects(thing)]:
            await self.delete(asked, key, body)
        return web.json_response({"kind": KINDS[asked.kind][0] + "List", "apiVersion": "v1", "metadata": {}, "items": []})

    # What everybody may read, and what only tests ask for.

    async def discover(self, request):
        wanted = "/".join(request.path.strip("/").split("/")[1:])
        verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
        found = [
            {"name": name, "singularName": kind.lower(), "namespaced": inside, "kind": kind, "verbs": verbs}
            for (group_version, name), (kind, inside) in KINDS.items()
            if group_version == wanted
        ]
        if not found:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        return web.json_response({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": wanted, "resources": found})

    async def groups(self, _):
        named = sorted({group_version for group_version, _ in KINDS if "/" in group_version})
        versions = [{"groupVersion": name, "version": name.rpartition("/")[2]} for name in named]
        groups = [{"name": v["groupVersion"].partition("/")[0], "versions": [v], "preferredVersion": v} for v in versions]
        return web.json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})

    async def set_faults(self, request):
        self.faults = await request.json()
        return web.Response(text="ok")

    async def compact(self, _):
        await self.store.compact()
        return web.Response(text="ok")

    async def hang_up(self, _):
        for connection in self.watches:
            connection.abort()
        return web.Response(text="ok")

    async def asked_for(self, _):
        return web.json_response(self.requests)


async def body_of(request):
    if not request.can_read_body:
        return {}
    if not request.content_type.endswith("json"):
        raise Refused(415, "UnsupportedMediaType", "the body of the request was in an unknown format")
    try:
        return await request.json()
    except ValueError as error:
        raise Refused(400, "BadRequest", f"the body is no JSON: {error}") from error


def page_start(token, store):
    """The version of the list that a page continues, and the last key before it."""
    if not token:
        return store.version, ["", ""]
    version, *after = json.loads(base64.b64decode(token))
    if version < store.floor:
        raise Refused(410, "Expired", "The provided continue parameter is too old to display a consistent list result.")
    return version, after


def page_end(version, key):
    return base64.b64encode(json.dumps([version, key[0] or "", key[1]]).encode()).decode()


def application(tokens):
    api = Api(tokens)

    async def constant(request):
        texts = {"/version": VERSION, "/api": {"kind": "APIVersions", "versions": ["v1"]}}
        return web.json_response(texts[request.path]) if request.path in texts else web.Response(text="ok")

    app = web.Application(middlewares=[api.around], client_max_size=4 << 20)
    app.router.add_put("/_faults", api.set_faults)
    app.router.add_post("/_compact", api.compact)
    app.router.add_post("/_hang_up", api.hang_up)
    app.router.add_get("/_requests", api.asked_for)
    for path in ("/readyz", "/livez", "/healthz", "/version", "/api"):
        app.router.add_get(path, constant)
    app.router.add_get("/apis", api.groups)
    app.router.add_get("/api/v1", api.discover)
    app.router.add_get("/apis/{group}/{version}", api.discover)
    app.router.add_route("*", "/api/v1/{rest:.+}", api.answer)
    app.router.add_route("*", "/apis/{group}/{version}/{rest:.+}", api.answer)
    return app


if __name__ == "__main__":
    known = json.loads(Path(sys.argv[2]).read_text()) if len(sys.argv) > 2 else {}
    web.run_app(application(known), host="127.0.0.1", port=int(sys.argv[1]), print=None, shutdown_timeout=0.1)
