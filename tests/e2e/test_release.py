"""SIGUSR1: the service lets go of NVML, so that the driver can be reloaded, and takes it up again."""

import os
import shutil
import signal

import fake_card
from conftest import CULLER, LIBRARY
from fake_hub import Culler, FakeHub
from lab.waiting import eventually, holds


def test_the_service_lets_go_of_nvml_stops_nobody_meanwhile_and_takes_it_up_again(tmp_path):
    library = tmp_path / "libnvidia-ml.so.1"
    shutil.copy(LIBRARY, library)
    scene = tmp_path / "libnvidia-ml.so.1.scene.json"
    fake_card.new_scene(scene, cards=1)
    users = tmp_path / "libnvidia-ml.so.1.users"

    def open_times(wanted):
        return lambda: users.exists() and users.read_text() == wanted

    with FakeHub({"ann": [""]}) as hub:
        with Culler(tmp_path, CULLER, library, hub, "--cull-every=1", FAKE_NVML_SCENE=str(scene)) as culler:
            eventually("NVML is open", open_times("1"))
            os.kill(culler.process.pid, signal.SIGUSR1)
            eventually("NVML is closed", open_times("0"))
            eventually("it says so", lambda: "NVML is let go for 10 minutes" in culler.log())
            os.kill(culler.process.pid, signal.SIGHUP)
            holds("new settings do not take it up", open_times("0"), during=4)
            assert culler.lives() and hub.left() == {"ann/"}
            os.kill(culler.process.pid, signal.SIGUSR1)
            eventually("NVML is open again", open_times("1"))
