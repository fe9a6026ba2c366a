"""What one cycle over many servers costs gpu-culler, beside jupyterhub-idle-culler on the same machine and Hub.

Method. A synthetic Hub (synthetic_hub.py) answers both; the two take turns. Each program looks again and again, and
the Hub notes the program's CPU time (user and system, all threads, from /proc/PID/stat) whenever a new look begins.
The first look, with everything that start-up costs, is left out: a cycle's CPU time is that from the second look's
begin to the last one's, divided by the looks between. Peak memory is VmHWM at the end of the run, start-up included.
gpu-culler reads three cards of a fake driver meanwhile; this counts as part of its cycles.
Stops: 40 of the servers are idle and each stop takes the Hub a second; the time is that from the first DELETE to the
last answer. Of all runs the median counts.

Besides a table it prints one line per figure, `ratio NAME VALUE LIMIT`, with VALUE = gpu-culler's / idle-culler's, and
exits with 1 if a value is over its limit.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from synthetic_hub import SyntheticHub

REPOSITORY = Path(__file__).resolve().parents[1]
TICKS = os.sysconf("SC_CLK_TCK")
LIMITS = {"cpu": 1 / 15, "memory": 1 / 2, "stops": 1 / 10}
NOTHING_IS_IDLE = 30 * 86400  # seconds
IDLE_FOR_AN_HOUR = 3600


class GpuCuller:
    name = "gpu-culler"

    def __init__(self, binary, library):
        self.binary, self.library = binary, library

    def command(self, folder, timeout, every):
        scene = folder / "scene.json"
        card = {"name": "NVIDIA A100-SXM4-80GB", "memory_total": 80 << 30, "load": [], "processes": []}
        devices = [{**card, "uuid": f"GPU-{n}"} for n in range(3)]
        scene.write_text(json.dumps({"driver": "580.95.05", "devices": devices}))
        config = folder / "gpu-culler.toml"
        config.write_text(
            f'[telemetry.nvml]\nlibrary = "{self.library}"\n[store]\npath = "{folder}/gpu-culler.sqlite"\n'
            '[safety]\nmin_uptime = "1s"\n'
        )
        # Right after its own start it stops nobody; the second look does.
        flags = [f"--timeout={timeout}", f"--cull-every={min(every, 2)}"]
        return [self.binary, "run", "--config", config, *flags], {"FAKE_NVML_SCENE": str(scene)}


class IdleCuller:
    name = "idle-culler"

    def __init__(self, python):
        self.python = python

    def command(self, _folder, timeout, every):
        return [self.python, "-m", "jupyterhub_idle_culler", f"--timeout={timeout}", f"--cull-every={every}"], {}


class Running:
    """A program at work on a Hub."""

    def __init__(self, program, hub, timeout, every=1):
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        command, environment = program.command(folder, timeout, every)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("JUPYTERHUB_")}
        kept |= {"JUPYTERHUB_API_URL": hub.url, "JUPYTERHUB_API_TOKEN": program.name}
        self.log = folder / "log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command], env=kept | environment, cwd=folder, stdout=log, stderr=log
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self._folder.cleanup()

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_memory(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) * 1024


def measure_cycles(program, hub, cycles):
    """CPU seconds of a cycle, and the peak of memory in bytes."""
    readings, done = [], threading.Event()

    def looked():
        readings.append(running.cpu_seconds())
        if len(readings) >= cycles + 2:
            done.set()

    hub.on_listing = lambda: None
    with Running(program, hub, NOTHING_IS_IDLE) as running:
        hub.on_listing = looked
        if not done.wait(timeout=60 + 20 * cycles):
            sys.exit(f"{program.name} did not finish {cycles} cycles:\n{running.log.read_text()[-2000:]}")
        hub.on_listing = lambda: None
        readings = readings[1 : cycles + 2]
        return (readings[-1] - readings[0]) / cycles, running.peak_memory()


def measure_stops(program, users, idle, patience):
    """Seconds from the first stop asked for to the last one done; None if it stops nobody."""
    with SyntheticHub(users, idle) as hub, Running(program, hub, IDLE_FOR_AN_HOUR, every=3600) as running:
        began = time.monotonic()
        while len(hub.stops) < idle:
            if running.process.poll() is not None or (not hub.stops and time.monotonic() - began > patience):
                return None
            if time.monotonic() - began > patience + 3 * idle:
                sys.exit(f"{program.name} stopped only {len(hub.stops)}:\n{running.log.read_text()[-2000:]}")
            time.sleep(0.05)
        return max(done for _, done in hub.stops) - min(asked for asked, _ in hub.stops)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=REPOSITORY / "target/release/gpu-culler", type=Path)
    parser.add_argument("--library", default=REPOSITORY / "target/release/libfake_nvml.so", type=Path)
    parser.add_argument("--python", default=sys.executable, help="a Python with jupyterhub-idle-culler")
    parser.add_argument("--users", default=10_000, type=int)
    parser.add_argument("--idle", default=40, type=int)
    parser.add_argument("--runs", default=5, type=int)
    parser.add_argument("--cycles", default=4, type=int)
    parser.add_argument("--only", choices=["cycles", "stops"])
    arguments = parser.parse_args()
    ours, theirs = GpuCuller(arguments.binary, arguments.library), IdleCuller(arguments.python)
    figures = []
    if arguments.only != "stops":
        with SyntheticHub(arguments.users) as hub:
            runs = [
                [measure_cycles(program, hub, arguments.cycles) for program in (ours, theirs)]
                for _ in range(arguments.runs)
            ]
        for index, (name, label, unit) in enumerate([("cpu", "CPU of a cycle", 1e-3), ("memory", "peak memory", 1e6)]):
            medians = [statistics.median(run[side][index] for run in runs) for side in (0, 1)]
            figures.append((name, f"{label} ({'ms' if name == 'cpu' else 'MB'})", [m / unit for m in medians]))
    if arguments.only != "cycles":
        runs = []
        while len(runs) < arguments.runs and (not runs or runs[-1][0] is not None):
            runs.append([measure_stops(program, arguments.users, arguments.idle, patience=60) for program in (ours, theirs)])
        medians = [None if None in side else statistics.median(side) for side in zip(*runs)]
        figures.append(("stops", f"{arguments.idle} stops of 1 s (s)", medians))
    sys.exit(report(figures))


def report(figures):
    """Prints the table and the ratios; 1 if a limit is exceeded."""
    failed = 0
    print(f"{'':24}{'gpu-culler':>12}{'idle-culler':>13}{'ratio':>9}{'limit':>9}")
    lines = []
    for name, label, (ours, theirs) in figures:
        if ours is None:
            print(f"{label:24}{'none':>12}{theirs:>13.1f}")
            lines.append(f"{name}: not measurable in this version")
            continue
        ratio = ours / theirs
        failed |= ratio > LIMITS[name]
        print(f"{label:24}{ours:>12.1f}{theirs:>13.1f}{ratio:>9.4f}{LIMITS[name]:>9.4f}")
        lines.append(f"ratio {name} {ratio:.4f} {LIMITS[name]:.4f}")
    print("\n".join(lines))
    return failed


if __name__ == "__main__":
    main()
