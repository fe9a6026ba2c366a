"""What deploy/ holds is what the tools that take it in accept, and gives no more rights than are needed."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import kubernetes_validate
import pytest
import requests
import yaml
from conftest import CULLER
from lab.hub import REPOSITORY
from lab.ports import free_ports
from lab.waiting import eventually
from other_hubs import ChangedHub, Hub5

UNIT = REPOSITORY / "deploy/gpu-culler-agent.service"
MANIFESTS = REPOSITORY / "deploy/gpu-culler-agent.yaml"
KUBERNETES = REPOSITORY / "deploy/kubernetes"


def test_the_unit_is_one_that_systemd_takes_and_that_may_do_little(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here: the unit is not verified")
    text = UNIT.read_text()
    assert "/usr/local/bin/gpu-culler" in text
    installed = tmp_path / UNIT.name
    installed.write_text(text.replace("/usr/local/bin/gpu-culler", str(CULLER)))
    verified = subprocess.run(["systemd-analyze", "verify", installed], capture_output=True, text=True)
    assert (verified.returncode, verified.stderr) == (0, "")
    exposed = ["systemd-analyze", "security", "--offline=yes", "--threshold=30", installed]
    judged = subprocess.run(exposed, capture_output=True, text=True)
    assert judged.returncode == 0, judged.stdout


def test_the_manifests_follow_the_schema_and_ask_for_no_right_but_the_hosts_processes():
    manifests = list(yaml.safe_load_all(MANIFESTS.read_text()))
    assert [manifest["kind"] for manifest in manifests] == ["ConfigMap", "Service", "DaemonSet"]
    for manifest in manifests:
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
    pod = manifests[2]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["hostPID"] and not pod.get("hostNetwork") and not pod["automountServiceAccountToken"]
    rights = container["securityContext"]
    assert rights["capabilities"] == {"drop": ["ALL"]} and "privileged" not in rights
    assert [volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume] == ["/var/log/pods"]
    assert all(mount["readOnly"] for mount in container["volumeMounts"])


def test_the_agent_starts_with_the_settings_of_the_manifests(tmp_path):
    config = next(yaml.safe_load_all(MANIFESTS.read_text()))["data"]["agent.toml"]
    mounted = {"/run/secrets/agent/token", "/run/secrets/tls/tls.crt", "/run/secrets/tls/tls.key"}
    agent = tomllib.loads(config)["agent"]
    assert {agent["token_file"], agent["tls_cert_file"], agent["tls_key_file"]} == mounted
    file = tmp_path / "agent.toml"
    file.write_text(config)
    ran = subprocess.run([CULLER, "agent", "--config", file], capture_output=True, text=True, timeout=20)
    # Its keys are all known; the first thing it misses is the Secret.
    assert ran.returncode == 1
    assert "the token cannot be read from /run/secrets/agent/token" in ran.stderr


def test_every_yaml_parses_and_every_manifest_follows_the_schema():
    files = sorted((REPOSITORY / "deploy").rglob("*.yaml"))
    documents = {file.name: list(yaml.safe_load_all(file.read_text())) for file in files}
    assert all(all(document for document in parts) for parts in documents.values())
    manifests = documents["gpu-culler.yaml"]
    kinds = ["ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Secret", "PersistentVolumeClaim"]
    assert [each["kind"] for each in manifests] == [*kinds, "Service", "Deployment", "NetworkPolicy"]
    for manifest in manifests:
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
    found = {each["kind"]: each for each in manifests}
    assert found["Role"]["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
    deployment = found["Deployment"]["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    (container,) = deployment["template"]["spec"]["containers"]
    rights = container["securityContext"]
    assert rights["capabilities"] == {"drop": ["ALL"]} and rights["readOnlyRootFilesystem"]
    mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert [path for path, read_only in mounts.items() if not read_only] == ["/var/lib/gpu-culler"]


def test_the_settings_in_the_manifests_and_in_the_values_are_all_known_and_on_mounted_paths(tmp_path):
    manifests = list(yaml.safe_load_all((KUBERNETES / "gpu-culler.yaml").read_text()))
    values = yaml.safe_load((KUBERNETES / "z2jh-values.yaml").read_text())["hub"]
    beside = next(each for each in manifests if each["kind"] == "ConfigMap")["data"]["gpu-culler.toml"]
    inside = values["extraFiles"]["gpu-culler"]["stringData"]
    for text, ledger in ((beside, "/var/lib/gpu-culler"), (inside, "/srv/jupyterhub")):
        settings = tomllib.loads(text)
        assert settings["mode"] == "observe" and settings["store"]["path"].startswith(f"{ledger}/")
        assert settings["mail"]["password_file"].startswith("/run/secrets/gpu-culler/")
        (tmp_path / "password").write_text("secret")
        file = tmp_path / "gpu-culler.toml"
        file.write_text(text.replace("/run/secrets/gpu-culler/mail-password", str(tmp_path / "password")))
        previewed = subprocess.run([CULLER, "mail-preview", "--config", file], capture_output=True, text=True)
        assert previewed.returncode == 0, previewed.stderr
    assert values["extraFiles"]["gpu-culler"]["mountPath"] == values["services"]["gpu-culler"]["command"][-1]


def test_the_rules_alert_when_they_should_and_name_metrics_that_exist(start_hub, culler_config, tmp_path):
    if not shutil.which("promtool"):
        pytest.skip("no promtool here: run tests/make-prometheus.sh")
    rules = REPOSITORY / "deploy/prometheus-rules.yaml"
    for file in (rules, Path(__file__).parent / "prometheus-rules.test.yaml"):
        shutil.copy(file, tmp_path)
    ran = subprocess.run(["promtool", "test", "rules", "prometheus-rules.test.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    hub = start_hub(culler_config(mode="observe"))
    eventually("a cycle is over", lambda: hub.metrics("gpu_culler_cycles_total"))
    named = set(re.findall(r"gpu_culler_\w+", rules.read_text()))
    assert len(named) > 5 and [name for name in named if hub.metrics(name) is None] == []


class Tljh(ChangedHub):
    """JupyterHub 5 with what TLJH loads from its folder jupyterhub_config.d."""

    python = Hub5.python
    lines = f"""
c.JupyterHub.services[:] = [service for service in c.JupyterHub.services if service["name"] != "gpu-culler"]
c.JupyterHub.load_roles[:] = [role for role in c.JupyterHub.load_roles if role["name"] == "lab"]
load_subconfig({str(REPOSITORY / "deploy/tljh/gpu_culler.py")!r})
own = c.JupyterHub.services[-1]
own.update(url=lab["culler_url"], command=lab["culler_command"], environment=lab["environment"])
"""


def test_what_goes_into_tljhs_folder_makes_a_hub_run_the_service(start_hub, culler_config, arrive, gpu_culler):
    config = culler_config(mode="observe")
    hub = start_hub(config, Tljh)
    (nora,) = arrive(hub, "nora")
    checked = gpu_culler(hub, config, "check")
    assert checked.code == 0, checked.out + checked.errors
    token = {"Authorization": f"token {nora.token}"}
    assert hub.http.get(f"{hub.public_url}/services/gpu-culler/api/v1/sessions", headers=token, timeout=10).ok


class Beside(ChangedHub):
    """A Hub that knows the service from deploy/'s values and does not start it: it runs as the Deployment says."""

    service = None
    lines = f"""
import yaml
values = yaml.safe_load(Path({str(KUBERNETES / "z2jh-external-values.yaml")!r}).read_text())["hub"]
known = {{"name": "gpu-culler", "url": lab["culler_url"], "api_token": lab["token"][::-1]}}
c.JupyterHub.services[:] = [service for service in c.JupyterHub.services if service["name"] != "gpu-culler"]
c.JupyterHub.services.append({{**values["services"]["gpu-culler"], **known}})
given = [{{"name": name, **role}} for name, role in values["loadRoles"].items()]
c.JupyterHub.load_roles[:] = [*given, *(role for role in c.JupyterHub.load_roles if role["name"] == "lab")]
"""

    def _start_once(self):
        self.ports = self.ports or free_ports(4)
        self.service = self.service or self._start_service()
        super()._start_once()

    def _start_service(self):
        manifests = yaml.safe_load_all((KUBERNETES / "gpu-culler.yaml").read_text())
        deployment = next(each for each in manifests if each["kind"] == "Deployment")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        here = {
            "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{self.ports[3]}",
            "JUPYTERHUB_API_URL": f"http://127.0.0.1:{self.ports[1]}/hub/api",
            "JUPYTERHUB_API_TOKEN": self.token[::-1],
        }
        given = {variable["name"]: here.get(variable["name"], variable.get("value")) for variable in container["env"]}
        assert here.keys() < given.keys() and container["args"][:2] == self.culler[1:3]
        environment = {"PATH": os.environ["PATH"], **self.environment, **given}
        with open(self.directory / "culler.log", "w") as log:
            return subprocess.Popen(self.culler, env=environment, stdout=log, stderr=log)


def test_the_deployments_environment_makes_a_service_that_outlives_the_hub(start_hub, culler_config):
    hub = start_hub(culler_config(mode="observe"), Beside)
    eventually("it looks", lambda: metrics_of(hub))
    page = hub.page("")
    assert page.ok and "observe" in page.text, page.text
    hub.crash()
    hub.start()
    looked = metrics_of(hub)
    eventually("it goes on", lambda: metrics_of(hub) > looked + 1)
    assert hub.service.poll() is None


def metrics_of(hub):
    try:
        return hub.metrics("gpu_culler_cycles_total")
    except requests.RequestException:
        return None


def test_the_image_is_built_of_what_is_there_and_runs_as_nobody():
    text = (REPOSITORY / "deploy/Containerfile").read_text()
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]
    built = "/source/target/release/gpu-culler"
    assert [stage.splitlines()[0] for stage in stages][1] == "${HUB} AS hub"
    assert all(f"COPY --from=build {built} /usr/local/bin/gpu-culler" in stage for stage in stages[1:])
    assert "USER 65532:65532" in stages[-1]  # the one that is built unless another is asked for
    assert "target" in (REPOSITORY / ".dockerignore").read_text().split()
