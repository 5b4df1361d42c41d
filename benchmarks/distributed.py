"""Steps per second in one process and in two: python benchmarks/distributed.py.

One wide MLP, one batch size (that of all processes together), AdamW through ``GradientStep`` and
``Trainer``: in one process on one thread, in one process on two threads, and in two processes with
one thread each, which add up 8.7 MB of gradient per step over gloo. They take turns, each in
processes of its own; starting them is not counted. A small MLP shows what the messages cost where a
step has next to no work to share. On a busy machine two processes are given two shares of the
cores: the ratio then says as much about the machine as about the library; the load is recorded.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from ansatz.bench.record import write_record
from ansatz.data import Batch, TensorSource
from ansatz.likelihoods import Normal
from ansatz.networks import MLP
from ansatz.training import Callback, GradientStep, Supervised, Trainer
from ansatz.training.processes.launch import launch

SEED, WARM = 0, 5
SIZES = {  # widths, rows per batch of all processes, steps
    "wide": ((1024, 1024, 1024), 1024, 25),
    "small": ((64, 64), 256, 400),
}
WAYS = {"1 process, 1 thread": (1, 1), "1 process, 2 threads": (1, 2), "2 processes": (2, 1)}


class Clock(Callback):
    """When each step ended."""

    def __init__(self) -> None:
        self.moments: list[float] = []

    def on_step(self, run: object, logs: dict[str, float]) -> None:
        """Notes the moment."""
        self.moments.append(time.perf_counter())


def train(size: str, threads: int) -> float:
    """Steps per second after the first few."""
    torch.set_num_threads(threads)
    widths, rows, steps = SIZES[size]
    torch.manual_seed(SEED)
    x = torch.randn(8 * rows, 64)
    network, objective = MLP(64, 1, widths=widths), Supervised(Normal(dispersion=1.0))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)
    clock = Clock()
    options = {"progress": 0, "device": "cpu", "threads": threads, "callbacks": [clock]}
    source = TensorSource(Batch.of(x, x[:, 0] * x[:, 1]), rows, seed=SEED)
    Trainer(steps=WARM + steps, **options).fit(GradientStep(network, objective, optimizer), source)
    return steps / (clock.moments[-1] - clock.moments[WARM - 1])


def measure(size: str, way: str) -> float:
    """The speed of one run in processes of its own."""
    processes, threads = WAYS[way]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "speed.json"
        command = [sys.executable, __file__, "--worker", size, str(threads), str(file)]
        if processes == 1:
            subprocess.run(command, check=True)
        else:
            assert launch(command, processes).status == 0
        return float(json.loads(file.read_text()))


def main() -> None:
    """Measures all ways in turn and writes the record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--worker", nargs=3)
    arguments = parser.parse_args()
    if arguments.worker:
        size, threads, file = arguments.worker
        speed = train(size, int(threads))
        if os.environ.get("RANK", "0") == "0":
            Path(file).write_text(json.dumps(speed))
        return
    results = []
    for size, (widths, rows, steps) in SIZES.items():
        speeds: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(arguments.repeats):
            for way in WAYS:
                speeds[way].append(measure(size, way))
        alone = speeds["1 process, 1 thread"]
        for way, found in speeds.items():
            ratios = [b / a for a, b in zip(alone, found, strict=True)]
            result = {
                "network": f"64-{'-'.join(map(str, widths))}-1, batch {rows}, {steps} steps",
                "way": way,
                "steps per second": round(statistics.median(found), 2),
                "lowest, highest": [round(min(found), 2), round(max(found), 2)],
                "against one process on one thread": round(statistics.median(ratios), 2),
                "ratios": [round(ratio, 2) for ratio in ratios],
            }
            print(json.dumps(result))
            results.append(result)
    command = f"python benchmarks/distributed.py --repeats {arguments.repeats}"
    write_record("distributed", command=command, seed=SEED, results=results)


if __name__ == "__main__":
    main()
