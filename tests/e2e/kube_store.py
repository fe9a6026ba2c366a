"""The objects of a Kubernetes API server in memory: selectors, patches, resource versions, and what happened."""

import asyncio
import copy
import datetime
import re
import uuid

from aiohttp import web

# (group/version, resource): (kind, whether it stands in a namespace)
KINDS = {
    ("v1", "pods"): ("Pod", True),
    ("v1", "events"): ("Event", True),
    ("v1", "services"): ("Service", True),
    ("v1", "secrets"): ("Secret", True),
    ("v1", "configmaps"): ("ConfigMap", True),
    ("v1", "persistentvolumeclaims"): ("PersistentVolumeClaim", True),
    ("v1", "serviceaccounts"): ("ServiceAccount", True),
    ("v1", "nodes"): ("Node", False),
    ("v1", "namespaces"): ("Namespace", False),
    ("apps/v1", "deployments"): ("Deployment", True),
    ("apps/v1", "daemonsets"): ("DaemonSet", True),
    ("networking.k8s.io/v1", "networkpolicies"): ("NetworkPolicy", True),
    ("rbac.authorization.k8s.io/v1", "roles"): ("Role", True),
    ("rbac.authorization.k8s.io/v1", "rolebindings"): ("RoleBinding", True),
    ("rbac.authorization.k8s.io/v1", "clusterroles"): ("ClusterRole", False),
    ("rbac.authorization.k8s.io/v1", "clusterrolebindings"): ("ClusterRoleBinding", False),
    ("authorization.k8s.io/v1", "selfsubjectaccessreviews"): ("SelfSubjectAccessReview", False),
}
FIELDS = {  # by which they can be selected; everything can be by name and namespace
    "pods": {
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
        *("status.phase", "status.podIP", "status.nominatedNodeName"),
    },
    "events": {*(f"involvedObject.{field}" for field in ("kind", "namespace", "name", "uid")), "reason", "type"},
    "nodes": {"spec.unschedulable"},
}


class Refused(Exception):
    """An answer that is no success, in the words of a real server."""

    def __init__(self, code, reason, message, retry_after=None):
        headers = {"Retry-After": str(retry_after)} if retry_after else {}
        details = {"retryAfterSeconds": retry_after} if retry_after else {}
        body = status_of("Failure", message=message, reason=reason, code=code, details=details)
        self.answer = web.json_response(body, status=code, headers=headers)


def status_of(status, **more):
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": status, **more}


def now(later=0):
    instant = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=later)
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def at(thing, path):
    """What stands at a dotted path, or None."""
    for key in path.split("."):
        thing = thing.get(key) if isinstance(thing, dict) else None
    return thing


# Selectors.


def has_fields(thing, selector, resource):
    known = FIELDS.get(resource, set()) | {"metadata.name", "metadata.namespace"}
    for term in filter(None, selector.split(",")):
        found = re.fullmatch(r"([^=!]+)(!=|==|=)(.*)", term)
        if not found or found[1] not in known:
            raise Refused(400, "BadRequest", f"field label not supported: {term}")
        if (str(at(thing, found[1]) or "") == found[3]) == (found[2] == "!="):
            return False
    return True


def has_labels(thing, selector):
    labels = at(thing, "metadata.labels") or {}
    return all(has_label(labels, term.strip()) for term in re.split(r",(?![^(]*\))", selector) if term.strip())


def has_label(labels, term):
    if among := re.fullmatch(r"(\S+)\s+(in|notin)\s+\((.*)\)", term):
        return (labels.get(among[1]) in [value.strip() for value in among[3].split(",")]) == (among[2] == "in")
    if compared := re.fullmatch(r"([^=!\s]+)\s*(!=|==|=)\s*(.*)", term):
        return (labels.get(compared[1]) == compared[3]) == (compared[2] != "!=")
    return term[1:].strip() not in labels if term.startswith("!") else term in labels


# Patches.


def merged(old, patch):
    """A merge patch; strategic ones are taken as such, so their lists replace."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def patched(thing, operations):
    """A JSON patch of the operations add, replace, remove and test."""
    for operation in operations:
        *way, last = [k.replace("~1", "/").replace("~0", "~") for k in operation["path"].split("/")[1:]]
        place = thing
        for key in way:
            place = place[int(key)] if isinstance(place, list) else place[key]
        key = (len(place) if last == "-" else int(last)) if isinstance(place, list) else last
        if operation["op"] == "test":
            if place[key] != operation["value"]:
                raise Refused(422, "Invalid", "the server rejected our request due to an error in our request")
        elif operation["op"] == "remove":
            place.pop(key)
        elif isinstance(place, list) and operation["op"] == "add":
            place.insert(key, operation["value"])
        else:
            place[key] = operation["value"]
    return thing


class Store:
    """The objects of each resource, and what happened to them."""

    def __init__(self):
        self.version, self.floor = 100, 0
        self.objects = {kind: {} for kind in KINDS}
        self.events = []  # (version, type, kind, object, the object before)
        self.news = asyncio.Condition()

    async def tell(self, event, kind, thing, before=None):
        self.version += 1
        thing["metadata"]["resourceVersion"] = str(self.version)
        async with self.news:
            self.events.append((self.version, event, kind, copy.deepcopy(thing), before))
            self.news.notify_all()

    async def create(self, kind, namespace, thing):
        meta = thing.setdefault("metadata", {})
        meta["name"] = meta.get("name") or meta.get("generateName", "unnamed-") + uuid.uuid4().hex[:5]
        if (namespace, meta["name"]) in self.objects[kind]:
            raise Refused(409, "AlreadyExists", f'{kind[1]} "{meta["name"]}" already exists')
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": now()}
        if namespace:
            meta["namespace"] = namespace
        thing |= {"kind": KINDS[kind][0], "apiVersion": kind[0]}
        if kind[1] == "pods":
            with_defaults(thing)
        self.objects[kind][namespace, meta["name"]] = thing
        await self.tell("ADDED", kind, thing)
        return thing

    async def replace(self, kind, key, new, status_only):
        old = self.objects[kind][key]
        wanted = at(new, "metadata.resourceVersion")
        if wanted and wanted != old["metadata"]["resourceVersion"]:
            message = f'Operation cannot be fulfilled on {kind[1]} "{key[1]}": the object has been modified'
            raise Refused(409, "Conflict", message)
        new = {**old, "status": new.get("status", {})} if status_only else {**new, "status": old.get("status", {})}
        new["metadata"] = {**new["metadata"], "uid": old["metadata"]["uid"]}
        self.objects[kind][key] = new
        await self.tell("MODIFIED", kind, new, copy.deepcopy(old))
        return new

    async def delete(self, kind, key, grace):
        thing = self.objects[kind][key]
        if kind[1] == "pods" and grace and at(thing, "spec.nodeName"):  # its kubelet has the last word
            before = copy.deepcopy(thing)
            thing["metadata"] |= {"deletionTimestamp": now(grace), "deletionGracePeriodSeconds": grace}
            await self.tell("MODIFIED", kind, thing, before)
        else:
            del self.objects[kind][key]
            await self.tell("DELETED", kind, thing, copy.deepcopy(thing))
        return thing

    async def compact(self):
        self.floor = self.version
        self.events.clear()


def with_defaults(pod):
    """What admission adds to a new pod."""
    pod["status"] = {"phase": "Pending", "qosClass": "BestEffort", **(pod.get("status") or {})}
    pod["spec"].setdefault("terminationGracePeriodSeconds", 30)
    for container in pod["spec"]["containers"]:
        resources = container.setdefault("resources", {})
        if limits := resources.get("limits"):
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
