"""What deploy/ holds for the agent is what the tools that take it in accept, and no more rights than it needs."""

import shutil
import subprocess
import tomllib

import kubernetes_validate
import pytest
import yaml
from conftest import CULLER
from lab.hub import REPOSITORY

UNIT = REPOSITORY / "deploy/gpu-culler-agent.service"
MANIFESTS = REPOSITORY / "deploy/gpu-culler-agent.yaml"


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
