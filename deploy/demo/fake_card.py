"""Lets a kernel "use" a graphics card that is not there.

The fake NVML library reads a scene, a JSON file, and answers as the driver would. These functions write the calling
process into the scene under its real process id:

    import fake_card
    fake_card.hold(gigabytes=38)            # memory on a free card
    with fake_card.work(sm=90, dram=50):    # and load on it for as long as the block runs
        train()
    fake_card.release()
"""

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path

GIGABYTE = 10**9


def new_scene(path, cards=3, model="NVIDIA A100-SXM4-80GB", memory_gib=80):
    """Writes a scene with some idle cards."""
    devices = [
        {
            "uuid": f"GPU-fake-{index}",
            "name": model,
            "memory_total": memory_gib * 2**30,
            "load": [],
            "processes": [],
        }
        for index in range(cards)
    ]
    _write(Path(path), {"driver": "580.95.05", "devices": devices})


def hold(gigabytes, card=None, pid=None, path=None):
    """Holds memory on the card with this index, or on the first card nobody uses; returns its index."""
    with _editing(path) as scene:
        devices = scene["devices"]
        if card is None:
            card = next(index for index, device in enumerate(devices) if not device["processes"])
        process = {"pid": pid or os.getpid(), "memory": int(gigabytes * GIGABYTE), "load": []}
        devices[card]["processes"].append(process)
    return card


@contextlib.contextmanager
def work(sm=90, dram=50):
    """Loads the cards this process holds, in percent, until the block ends."""
    began = time.time()
    with _editing() as scene:
        for process in _mine(scene):
            process["load"].append({"from": began, "to": None, "sm": sm, "dram": dram})
    try:
        yield
    finally:
        with _editing() as scene:
            for load in (load for process in _mine(scene) for load in process["load"]):
                load["to"] = load["to"] or time.time()


def release():
    """Gives all memory of this process back."""
    with _editing() as scene:
        for device in scene["devices"]:
            device["processes"] = [p for p in device["processes"] if p["pid"] != os.getpid()]


def forget_the_dead(path=None):
    """Drops processes that ended without a release, as the driver does."""
    with _editing(path) as scene:
        for device in scene["devices"]:
            device["processes"] = [p for p in device["processes"] if _lives(p["pid"])]


def _mine(scene):
    return [p for device in scene["devices"] for p in device["processes"] if p["pid"] == os.getpid()]


def _lives(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@contextlib.contextmanager
def _editing(path=None):
    """The scene, to be changed in place: one writer at a time, and readers never see half a file."""
    path = Path(path or os.environ["FAKE_NVML_SCENE"])
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = path.read_text()
        scene = json.loads(before)
        yield scene
        if scene != json.loads(before):
            _write(path, scene)


def _write(path, scene):
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(json.dumps(scene, indent=1))
    os.replace(fresh, path)
