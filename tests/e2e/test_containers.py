"""A server in a container holds the cards that its processes hold, however they were started."""

import fake_card
import psutil
from containers import IMAGE, DockerHub, Podman, process_in
from lab.people import Kernel
from lab.waiting import eventually
from working import explain

ESCAPE = "import subprocess; subprocess.Popen(['setsid', '--fork', 'sleep', '3600'])"


class Guest:
    """A person whose server runs in a container."""

    def __init__(self, hub, name):
        self.hub, self.name = hub, name
        hub.api("POST", f"/users/{name}")
        self.token = hub.api("POST", f"/users/{name}/tokens", json={"note": "browser"})["token"]
        hub.api("POST", f"/users/{name}/servers/")
        model = eventually(f"{name}'s server is ready", self._ready, within=90)
        self.container = model["state"]["object_id"]
        self.kernel = Kernel(self, model["url"])

    def _ready(self):
        model = self.hub.api("GET", f"/users/{self.name}")["servers"].get("")
        return model if model and model["ready"] else None


def test_a_card_held_in_a_container_is_its_servers_and_no_one_elses(
    start_hub, culler_config, card, tmp_path, gpu_culler
):
    with Podman(tmp_path) as podman:
        config = culler_config(mode="observe")
        hub = start_hub(config, kind=DockerHub)
        ida, max_ = Guest(hub, "ida"), Guest(hub, "max")
        # It leaves its session and its parent, and says that it is somebody else's.
        ida.kernel.run(f"import os; os.environ['JUPYTERHUB_USER'] = 'max'\n{ESCAPE}")
        escaped = eventually("the process that escaped runs", lambda: process_in(ida.container, "sleep"))
        assert psutil.Process(max_pid := process_in(max_.container, "jupyterhub-sing").pid).is_running()
        fake_card.hold(20, card=0, pid=escaped.pid, path=card)
        fake_card.hold(20, card=1, pid=max_pid, path=card)
        mounts = [f"--volume={p}:{p}:ro" for p in ("/usr", "/lib", "/lib64", "/bin")]
        stranger = podman.run("run", "--detach", *mounts, IMAGE, "/usr/bin/sleep", "3600")
        fake_card.hold(20, card=2, pid=process_in(stranger, "sleep").pid, path=card)

        eventually("ida's card is known", lambda: "card GPU-fake-0" in explain(hub, ida))
        cards = {p.name: [key for key in explain(hub, p) if key.startswith("card GPU")] for p in (ida, max_)}
        assert cards == {"ida": ["card GPU-fake-0"], "max": ["card GPU-fake-1"]}
        assert "card GPU-fake-2 is held by pid" in gpu_culler(hub, config, "plan").out
