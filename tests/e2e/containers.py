"""Podman behind the interface of Docker, and a Hub whose servers run in its containers."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from lab.waiting import eventually
from other_hubs import ChangedHub

SETTINGS = """
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
netns = "host"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
IMAGE = "localhost/gpu-culler-empty:1"
FOLDERS = "bin dev etc home lib lib64 opt proc root run sbin sys tmp usr var".split()


class Podman:
    """A service of its own, with a store of its own that goes with the test."""

    def __init__(self, directory):
        if not shutil.which("podman") or not shutil.which("runc") or os.geteuid() != 0:
            pytest.skip("containers need podman and runc, and root: run tests/make-podman.sh")
        self.directory = Path(directory)
        self.socket = self.directory / "podman.sock"
        settings = self.directory / "containers.conf"
        settings.write_text(SETTINGS)
        self._environment = {**os.environ, "CONTAINERS_CONF": str(settings)}
        self._run = tempfile.TemporaryDirectory(prefix="gc")  # podman takes no long path for it
        store = [f"--root={self.directory}/store", f"--runroot={self._run.name}", "--storage-driver=vfs"]
        self._podman = ["podman", *store]
        self._service = None

    def __enter__(self):
        empty = self.directory / "empty"
        for folder in FOLDERS:
            (empty / folder).mkdir(parents=True)
        archive = self.directory / "empty.tar"
        subprocess.run(["tar", "-C", empty, "-cf", archive, "."], check=True)
        self.run("import", "-q", str(archive), IMAGE)
        log = open(self.directory / "podman.log", "w")
        command = [*self._podman, "system", "service", "--time=0", f"unix://{self.socket}"]
        self._service = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        eventually("podman's service is there", self.socket.exists)
        return self

    def run(self, *words):
        done = subprocess.run([*self._podman, *words], env=self._environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def __exit__(self, *_):
        try:
            self.run("rm", "--all", "--force", "--time=0")
        finally:
            self._service.terminate()
            self._service.wait(20)
            self._run.cleanup()


def process_in(container, name):
    """The process with this name in a container, under its number on this machine; None if there is none."""
    for process in psutil.process_iter():
        try:
            if container in Path(f"/proc/{process.pid}/cgroup").read_text() and process.name() == name:
                return process
        except (OSError, psutil.NoSuchProcess):
            pass
    return None


class DockerHub(ChangedHub):
    """Each server in a container of its own: an image of empty folders, with this machine's programs in them."""

    lines = f"""
bin_directory = Path({os.path.realpath(sys.prefix)!r}) / "bin"
c.DockerSpawner.cmd = [str(bin_directory / "jupyterhub-singleuser")]
os.environ["DOCKER_HOST"] = "unix://" + str(directory / "podman.sock")
from jupyterhub.utils import random_port
c.JupyterHub.spawner_class = "dockerspawner.DockerSpawner"
c.DockerSpawner.image = "{IMAGE}"
c.DockerSpawner.pull_policy = "never"
c.DockerSpawner.network_name = "host"
c.DockerSpawner.use_internal_ip = True
c.DockerSpawner.remove = True
c.DockerSpawner.args = ["--allow-root"]
here = [p for p in ("/usr", "/lib", "/lib64", "/bin", "/etc") if os.path.exists(p)]
c.DockerSpawner.read_only_volumes = {{p: p for p in [*here, {os.path.realpath(sys.prefix)!r}]}}
c.DockerSpawner.environment = {{"HOME": "/tmp", "PATH": f"{{bin_directory}}:/usr/bin:/bin"}}
c.DockerSpawner.extra_create_kwargs = {{"user": "root", "working_dir": "/tmp"}}
c.DockerSpawner.host_ip = "127.0.0.1"
c.JupyterHub.hub_connect_url = lab["hub_url"]
def port_of_its_own(spawner):
    spawner.port = random_port()
c.Spawner.pre_spawn_hook = port_of_its_own
from dockerspawner import DockerSpawner
async def where(self):
    return "127.0.0.1", self.port
DockerSpawner.get_ip_and_port = where
"""
