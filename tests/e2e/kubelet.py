"""Scheduler and kubelets of a cluster on one machine: pods are processes, each on a loopback address of its own."""

import os
import signal
import subprocess
import time
from pathlib import Path

import requests
from working import Repeating

GPU = "nvidia.com/gpu"
MERGE = {"Content-Type": "application/merge-patch+json"}
CONDITIONS = ("PodScheduled", "Initialized", "ContainersReady", "Ready")


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Node:
    """A machine with cards. `cards` says which pod holds each: (namespace, name, container, since), or None."""

    def __init__(self, name, cards):
        self.name = name
        self.cards = {f"GPU-{name}-{number}": None for number in range(cards)}

    def free(self):
        return [card for card, holder in self.cards.items() if holder is None]

    def give(self, pod, wanted):
        meta, container = pod["metadata"], pod["spec"]["containers"][0]["name"]
        for card in self.free()[:wanted]:
            self.cards[card] = (meta["namespace"], meta["name"], container, time.monotonic())

    def take_back(self, pod):
        for card, holder in self.cards.items():
            if holder and holder[:2] == (pod["metadata"]["namespace"], pod["metadata"]["name"]):
                self.cards[card] = None

    def manifest(self):
        amount = {GPU: str(len(self.cards))}
        status = {"capacity": amount, "allocatable": amount, "conditions": [{"type": "Ready", "status": "True"}]}
        return {"metadata": {"name": self.name}, "spec": {}, "status": status}


class Kubelets(Repeating):
    """Gives each pending pod a node with enough free cards and runs it there until it is deleted."""

    def __init__(self, directory, api_url, token, nodes, network):
        self.directory, self.nodes, self.network = Path(directory), nodes, network
        self.hanging = set()  # names of pods that will not go when they are deleted
        self._api = api_url
        self._http = requests.Session()
        self._http.trust_env = False
        self._http.headers["Authorization"] = f"Bearer {token}"
        self._running, self._addresses = {}, 1
        super().__init__(self._look_after_all, every=0.2)

    def __enter__(self):
        for node in self.nodes:
            self._ask("POST", "/api/v1/nodes", json=node.manifest())
        return super().__enter__()

    def __exit__(self, *_):
        super().__exit__()
        for process in self._running.values():
            end(process)

    def _look_after_all(self):
        # Where the API server is away, so are its answers, and the pods run on.
        for pod in self._ask("GET", "/api/v1/pods")["items"]:
            self._look_after(pod)

    def _look_after(self, pod):
        process = self._running.get(pod["metadata"]["uid"])
        if pod["metadata"].get("deletionTimestamp"):
            if pod["metadata"]["name"] not in self.hanging:
                self._remove(pod, process)
        elif not pod["spec"].get("nodeName"):
            self._schedule(pod)
        elif process is None and pod["status"]["phase"] == "Pending":
            self._start(pod)
        elif process is not None and process.poll() is not None and pod["status"]["phase"] == "Running":
            self._set_status(pod, {"phase": "Failed" if process.returncode else "Succeeded"})

    def _schedule(self, pod):
        wanted = cards_of(pod)
        fitting = [node for node in self.nodes if len(node.free()) >= wanted]
        if not fitting:
            count = len(self.nodes)
            said = f"0/{count} nodes are available: {count} Insufficient {GPU}."
            lacking = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}
            if not pod["status"].get("conditions"):
                self._set_status(pod, {"conditions": [{**lacking, "lastTransitionTime": now()}]})
            return
        fitting[0].give(pod, wanted)
        target = {"apiVersion": "v1", "kind": "Node", "name": fitting[0].name}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]}, "target": target}
        self._ask("POST", f"{path(pod)}/binding", json=binding)

    def _start(self, pod):
        container = pod["spec"]["containers"][0]
        self._addresses += 1
        address = f"{self.network}.{self._addresses}"
        home = self.directory / "pods" / pod["metadata"]["name"]
        home.mkdir(parents=True, exist_ok=True)
        given = {one["name"]: (one.get("value") or "").replace("0.0.0.0", address) for one in container.get("env", [])}
        environment = {"PATH": os.environ["PATH"], **given, "HOME": str(home)}
        with open(home / "log", "ab") as log:
            self._running[pod["metadata"]["uid"]] = subprocess.Popen(
                # It ends with this thread, however that ends.
                ["setpriv", "--pdeathsig", "KILL", *container.get("command", []), *container.get("args", [])],
                env=environment,
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._set_status(pod, running(container, address))

    def _remove(self, pod, process):
        if process:
            end(process)
            del self._running[pod["metadata"]["uid"]]
        for node in self.nodes:
            node.take_back(pod)
        self._ask("DELETE", path(pod), params={"gracePeriodSeconds": 0})

    def _set_status(self, pod, status):
        self._ask("PATCH", f"{path(pod)}/status", json={"status": status}, headers=MERGE)

    def _ask(self, method, where, **arguments):
        answer = self._http.request(method, f"{self._api}{where}", timeout=5, **arguments)
        answer.raise_for_status()
        return answer.json()


def path(pod):
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def cards_of(pod):
    return sum(int((c.get("resources", {}).get("limits") or {}).get(GPU, 0)) for c in pod["spec"]["containers"])


def running(container, address):
    began = now()
    state = {"ready": True, "started": True, "restartCount": 0, "state": {"running": {"startedAt": began}}}
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "hostIP": "127.0.0.1",
        "startTime": began,
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": began} for kind in CONDITIONS],
        "containerStatuses": [{"name": container["name"], "image": container["image"], "imageID": "", **state}],
    }


def end(process):
    """The server and its kernels, kindly first."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(5)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            pass
