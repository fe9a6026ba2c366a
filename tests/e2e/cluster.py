"""A cluster on one machine: a Kubernetes API server, nodes with cards, dcgm-exporter's series in a real Prometheus,
and a Hub with KubeSpawner."""

import json
import secrets
import shutil
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests
import yaml
from kube_store import KINDS
from kubelet import Kubelets, Node
from lab.hub import REPOSITORY
from lab.people import Kernel
from lab.ports import free_ports
from lab.waiting import eventually
from other_hubs import ChangedHub

NAMESPACE = "jhub"
ADMIN = {"user": "admin", "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
CULLER = {"user": f"system:serviceaccount:{NAMESPACE}:gpu-culler"}  # what it may is said by its role
HERE = Path(__file__).parent
MANIFESTS = REPOSITORY / "deploy/kubernetes/gpu-culler.yaml"
VALUES = REPOSITORY / "deploy/kubernetes/z2jh-values.yaml"


class Exporter:
    """What dcgm-exporter of one node answers, in the text format of its version 4."""

    def __init__(self, node):
        self.node = node
        self.activity = {}  # by the name of the pod whose cards work
        self.dead = self.stalled = False
        self.label_delay = {}  # seconds by the name of the pod
        self._scrapes = 0

    def __enter__(self):
        exporter = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802
                if exporter.dead:
                    return self.connection.close()
                text = exporter.text().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def text(self):
        self._scrapes += not self.stalled
        cards = [(number, uuid, holder) for number, (uuid, holder) in enumerate(self.node.cards.items())]
        shown = [(self._labels(*card), self.activity.get(card[2] and card[2][1], 0)) for card in cards]
        return "".join(
            f"# HELP {name} {name}.\n# TYPE {name} {kind}\n"
            + "".join(f"{name}{{{labels}}} {value(share, self._scrapes)}\n" for labels, share in shown)
            for name, kind, value in METRICS
        )

    def _labels(self, number, uuid, holder):
        labels = {
            **{"gpu": number, "UUID": uuid, "pci_bus_id": f"00000000:0{number}:00.0", "device": f"nvidia{number}"},
            **{"modelName": "NVIDIA A100-SXM4-80GB", "Hostname": self.node.name},
        }
        if holder and time.monotonic() - holder[3] >= self.label_delay.get(holder[1], 0):
            labels |= dict(zip(("namespace", "pod", "container"), holder))
        return ",".join(f'{name}="{value}"' for name, value in labels.items())


METRICS = [  # those that are exported by default
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", lambda share, _: f"{share:f}"),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", lambda share, _: f"{share / 2:f}"),
    ("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", lambda share, _: f"{share / 3:f}"),
    ("DCGM_FI_DEV_GPU_UTIL", "gauge", lambda share, _: f"{share * 100:.0f}"),
    ("DCGM_FI_DEV_FB_USED", "gauge", lambda *_: "20480"),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", lambda share, scrapes: f"{10**6 + scrapes * 60_000}"),
]


class Prometheus:
    """A real one that scrapes the exporters every second and keeps its data over a restart."""

    def __init__(self, directory, exporters):
        if not shutil.which("prometheus"):
            pytest.skip("a cluster needs Prometheus: run tests/make-prometheus.sh")
        self.directory = Path(directory)
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        # The operator's way: the exporter's own pod takes the label, and the workload is in exported_pod.
        targets = [
            {"targets": [f"127.0.0.1:{each.port}"], "labels": {"pod": f"dcgm-{n}", "namespace": "gpu-operator"}}
            for n, each in enumerate(exporters)
        ]
        scrape = [{"job_name": "dcgm", "scrape_interval": "1s", "scrape_timeout": "1s", "static_configs": targets}]
        (self.directory / "prometheus.yml").write_text(yaml.dump({"scrape_configs": scrape}))

    def __enter__(self):
        words = [
            *("setpriv", "--pdeathsig", "KILL", "prometheus", f"--web.listen-address=127.0.0.1:{self.port}"),
            f"--config.file={self.directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.directory / 'prometheus'}",
        ]
        with open(self.directory / "prometheus.log", "a") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log)
        eventually("Prometheus is ready", lambda: answers(f"{self.url}/-/ready"))
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(20)

    def restart(self, after):
        """It is away for a while."""
        self.__exit__()
        time.sleep(after)
        self.__enter__()


class ApiServer:
    """tests/e2e/kube_api.py with a token for the Hub and the nodes and one for gpu-culler."""

    def __init__(self, directory):
        self.directory = Path(directory)
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self.admin, self.culler = secrets.token_hex(8), secrets.token_hex(8)
        tokens = {self.admin: ADMIN, self.culler: CULLER}
        self._tokens = self.directory / "kube-tokens.json"
        self._tokens.write_text(json.dumps(tokens))
        self.kubeconfig = self._kubeconfig("admin", self.admin)
        self.culler_kubeconfig = self._kubeconfig("culler", self.culler)
        self.http = requests.Session()
        self.http.trust_env = False
        self.http.headers["Authorization"] = f"Bearer {self.admin}"

    def _kubeconfig(self, name, token):
        config = {
            **{"apiVersion": "v1", "kind": "Config", "current-context": "here"},
            "clusters": [{"name": "here", "cluster": {"server": self.url}}],
            "users": [{"name": "here", "user": {"token": token}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here", "namespace": NAMESPACE}}],
        }
        file = self.directory / f"{name}.kubeconfig"
        file.write_text(yaml.dump(config))
        return file

    def __enter__(self):
        words = ["setpriv", "--pdeathsig", "KILL", sys.executable, str(HERE / "kube_api.py"), str(self.port)]
        with open(self.directory / "kube-api.log", "a") as log:
            self.process = subprocess.Popen([*words, str(self._tokens)], stdout=log, stderr=log)
        eventually("the Kubernetes API answers", lambda: answers(f"{self.url}/readyz"))
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ask(self, method, path, **arguments):
        answer = self.http.request(method, f"{self.url}{path}", timeout=10, **arguments)
        answer.raise_for_status()
        return answer.json() if answer.text.startswith(("{", "[")) else answer.text

    def requests_of_the_culler(self):
        """What it asked for and was given or refused."""
        return [one for one in self.ask("GET", "/_requests") if one["user"] == CULLER["user"]]

    def create(self, manifest):
        """What `kubectl create --namespace` does with a manifest."""
        places = [place for place, (kind, _) in KINDS.items() if kind == manifest["kind"]]
        assert places and places[0][0] == manifest["apiVersion"], f"no such kind: {manifest['kind']}"
        (group_version, resource), *_ = places
        prefix = "/api" if group_version == "v1" else "/apis"
        return self.ask("POST", f"{prefix}/{group_version}/namespaces/{NAMESPACE}/{resource}", json=manifest)

    def pods(self):
        """The pods by name."""
        listed = self.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return {pod["metadata"]["name"]: pod for pod in listed}


def answers(url):
    try:
        return requests.get(url, timeout=2, proxies={"http": ""}).ok
    except requests.RequestException:
        return False


class Cluster:
    """All of it but the Hub. `nodes` says how many cards each node has."""

    def __init__(self, directory, nodes):
        self.directory = Path(directory)
        self.nodes = [Node(f"gpu-node-{number}", cards) for number, cards in enumerate(nodes, start=1)]
        network = f"127.{secrets.randbelow(200) + 20}.{secrets.randbelow(250)}"  # none that another test has
        self.exporters = [Exporter(node) for node in self.nodes]
        self.api = ApiServer(directory)
        self.kubelets = Kubelets(directory, self.api.url, self.api.admin, self.nodes, network)
        self._open = []

    def __enter__(self):
        for part in (*self.exporters, self.api, self.kubelets):
            self._open.append(part.__enter__())
        self.prometheus = Prometheus(self.directory, self.exporters)
        self._open.append(self.prometheus.__enter__())
        return self

    def __exit__(self, *_):
        while self._open:
            self._open.pop().__exit__()

    def deploy(self):
        """What deploy/ has for a cluster, with all the rights that gpu-culler gets."""
        for manifest in yaml.safe_load_all(MANIFESTS.read_text()):
            self.api.create(manifest)

    def work(self, person, share):
        """From now on the person's cards show this share of activity."""
        for exporter in self.exporters:
            exporter.activity[person.pod] = share

    def exporter_of(self, person):
        return next(each for each in self.exporters if person.pod in [h and h[1] for h in each.node.cards.values()])

    def settings(self, **changes):
        """The sections that read it, with seconds for minutes."""
        prometheus = {"url": self.prometheus.url, "collect_interval": "2s", "label_delay": "5s", **changes}
        card = {"source": "prometheus", "warm_up": "3s", "max_gap": "15s", "min_coverage": 0.7}
        # A card is read every 3 s at most, and nobody is stopped on a reading that is older than a cycle.
        return {"cycle": "4s", "telemetry": {**card, "prometheus": prometheus}, "safety": {"min_uptime": "2s"}}


class KubeHub(ChangedHub):
    """Each server in a pod with a card; the service and its roles are those that deploy/ gives to zero-to-jupyterhub."""

    lines = f"""
import yaml
values = yaml.safe_load(Path({str(VALUES)!r}).read_text())["hub"]
for name, service in values["services"].items():
    culler.update({{**service, "name": name, "url": lab["culler_url"], "command": lab["culler_command"]}})
    culler["environment"] = lab["environment"]
given = [{{"name": name, **role}} for name, role in values["loadRoles"].items()]
c.JupyterHub.load_roles[:] = [*given, *(role for role in c.JupyterHub.load_roles if role["name"] == "lab")]
os.environ["KUBECONFIG"] = str(directory / "admin.kubeconfig")
c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.KubeSpawner.namespace = "{NAMESPACE}"
c.KubeSpawner.image = "example.org/notebook:1"
c.KubeSpawner.cmd = [str(bin_directory / "jupyterhub-singleuser")]
c.KubeSpawner.extra_resource_limits = {{"nvidia.com/gpu": "1"}}
c.KubeSpawner.start_timeout = 180  # seconds that a pod may wait for a card
c.JupyterHub.hub_connect_url = lab["hub_url"]
"""


class Tenant:
    """A person whose server runs in a pod."""

    def __init__(self, hub, name):
        self.hub, self.name = hub, name
        self.address = f"{name}@example.org"
        self.pod = f"jupyter-{name}"
        self.hub.api("POST", f"/users/{name}")
        self.token = self.hub.api("POST", f"/users/{name}/tokens", json={"note": "browser"})["token"]

    def ask_for_a_server(self):
        self.hub.api("POST", f"/users/{self.name}/servers/")
        return self

    def arrive(self):
        """Starts the server, runs a cell in a notebook and closes the browser."""
        self.ask_for_a_server()
        model = eventually(f"{self.name}'s server is ready", self.is_running, within=90)
        self.kernel = Kernel(self, model["url"])
        self.kernel.run("import os")
        self.kernel.disconnect()
        return self

    def is_running(self):
        model = self.hub.api("GET", f"/users/{self.name}")["servers"].get("")
        return model if model and model["ready"] else None
