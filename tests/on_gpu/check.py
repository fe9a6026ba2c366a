#!/usr/bin/env python3
"""On a real card: short work is seen, copies move the memory clock, held memory alone reads idle.

Needs the built binary (`cargo build --release`, or $GPU_CULLER_BIN) and Python with PyTorch. Without a
card it says so and is skipped (exit code 77). Besides what gpu-culler saw it prints what the driver's
ring, the performance counters (GPM) and the energy counter said, asked for independently.
"""

import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path

SKIPPED = 77
ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("GPU_CULLER_BIN", ROOT / "target/release/gpu-culler")
GPM = {"graphics": 1, "sm": 2, "tensor": 5, "dram": 10}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


class Sample(ctypes.Structure):
    _fields_ = [("at", ctypes.c_ulonglong), ("value", ctypes.c_ulonglong)]


class Metric(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint), ("status", ctypes.c_int), ("value", ctypes.c_double),
        ("names", ctypes.c_char_p * 3),
    ]


class Metrics(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint), ("count", ctypes.c_uint),
        ("first", ctypes.c_void_p), ("second", ctypes.c_void_p), ("metrics", Metric * 333),
    ]


class Witness:
    """NVML, asked without gpu-culler."""

    def __init__(self, uuid):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.nvml.nvmlInit_v2()
        self.card = ctypes.c_void_p()
        name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
        if self.nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(self.card)) != 0:
            skip(f"NVML does not know {name}")

    def energy(self):
        joules = ctypes.c_ulonglong()
        ok = self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.card, ctypes.byref(joules)) == 0
        return joules.value / 1000 if ok else None

    def ring(self, kind):
        """The largest sample of the last ten seconds: kind 1 is kernels, 2 is memory."""
        samples, count, of = (Sample * 200)(), ctypes.c_uint(200), ctypes.c_uint()
        status = self.nvml.nvmlDeviceGetSamples(
            self.card, kind, ctypes.c_ulonglong(0), ctypes.byref(of), ctypes.byref(count), samples
        )
        values = [sample.value & 0xFFFFFFFF for sample in samples[: count.value]]
        return max(values, default=None) if status == 0 else None

    def counters(self):
        sample = ctypes.c_void_p()
        if self.nvml.nvmlGpmSampleAlloc(ctypes.byref(sample)) != 0:
            return None
        return sample if self.nvml.nvmlGpmSampleGet(self.card, sample) == 0 else None

    def between(self, first, second):
        if first is None or second is None:
            return None
        ask = Metrics(version=1, count=len(GPM), first=first, second=second)
        for metric, number in zip(ask.metrics, GPM.values()):
            metric.id = number
        if self.nvml.nvmlGpmMetricsGet(ctypes.byref(ask)) != 0:
            return None
        return {name: m.value if m.status == 0 else None for name, m in zip(GPM, ask.metrics)}


def watch(witness, seconds, work):
    """What gpu-culler says of the card while `work` goes on, and what the driver's own counters say."""
    culler = subprocess.Popen(
        [BINARY, "cards", "--time", f"{seconds}s"], stdout=subprocess.PIPE, text=True
    )
    if not culler.stdout.readline():
        sys.exit(f"{BINARY} cards ended with {culler.wait()}")
    energy, counters, begin = witness.energy(), witness.counters(), time.monotonic()
    peaks = {"kernels": 0, "memory": 0}
    while (passed := time.monotonic() - begin) < seconds:
        work(passed)
        for name, kind in (("kernels", 1), ("memory", 2)):
            peaks[name] = max(peaks[name], witness.ring(kind) or 0)
        time.sleep(0.05)
    spent = None if energy is None else (witness.energy() - energy) / (time.monotonic() - begin)
    said = {"ring": peaks, "gpm": witness.between(counters, witness.counters()), "watts": spent}
    readings = [json.loads(line) for line in culler.stdout]
    culler.wait()
    return next(reading for reading in readings if reading["holders"] and os.getpid() in reading["holders"]), said


def main():
    try:
        import torch
    except ImportError:
        skip("PyTorch is not installed")
    if not torch.cuda.is_available():
        skip("there is no card, or PyTorch cannot use it")
    if not Path(BINARY).exists():
        skip(f"{BINARY} is not built")

    held = torch.empty(10 * 2**30, dtype=torch.uint8, device="cuda")
    vector = torch.ones(1024, device="cuda")
    torch.cuda.synchronize()
    witness = Witness(str(torch.cuda.get_device_properties(0).uuid))
    failures = []

    def case(name, seconds, work, holds):
        reading, said = watch(witness, seconds, work)
        fine = holds(reading)
        print(f"{'ok    ' if fine else 'FAILED'} {name}\n  gpu-culler: {json.dumps(reading)}")
        print(f"  driver:     {json.dumps(said)}", flush=True)
        failures.extend([] if fine else [name])

    def idle(reading):
        rests = all(value == 0 for value in [reading["sm"], reading["dram"], *reading["engines"].values()])
        return rests and reading["covered"] > 0.95 * 30 and reading["largest_gap"] < 1

    done = set()

    def short_kernel(passed):
        """Some 0.3 ms of work every 20 s."""
        if int(passed // 20) not in done:
            done.add(int(passed // 20))
            torch.cuda._sleep(500_000)
            torch.cuda.synchronize()

    copy = held[: 2 * 2**30].clone()

    def copying(_):
        for _ in range(20):
            copy.copy_(held[: 2 * 2**30])
        torch.cuda.synchronize()

    del vector
    time.sleep(12)  # until what came before has left the ring
    case("held memory without work reads idle, watched all the time", 30, lambda _: None, idle)
    case("a 0.3 ms kernel every 20 s is seen", 45, short_kernel, lambda r: any(
        value and value > 0 for value in [r["sm"], r["dram"], *r["engines"].values()]
    ))
    case("copies move the memory clock", 15, copying, lambda r: r["dram"] is not None and r["dram"] >= 0.01)
    sys.exit(f"failed: {', '.join(failures)}" if failures else 0)


if __name__ == "__main__":
    main()
