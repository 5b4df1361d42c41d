"""Measures recall beside the matrix products that it needs: python benchmarks/hopfield.py.

10,000 noisy patterns, 1,000 neurons, asynchronous sweeps in one order for the batch, until nothing
changes. A sweep needs the fields of every neuron: one product of the states that still move with
the weights. The peer is those products alone, as many and as large as the sweeps that recall
made. They alternate on one thread; processor time is measured.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json

import torch

from ansatz.bench.finding import Bound, Finding
from ansatz.bench.race import race
from ansatz.bench.record import write_record
from ansatz.connectionism import Hopfield

SEED, NEURONS, ROWS = 0, 1_000, 10_000


def problem(patterns: int, noise: float) -> tuple[Hopfield, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(SEED)
    stored = torch.randint(0, 2, (patterns, NEURONS), generator=generator).float() * 2 - 1
    which = torch.randint(0, patterns, (ROWS,), generator=generator)
    flip = torch.rand(ROWS, NEURONS, generator=generator) < noise
    clean = stored[which]
    return Hopfield(NEURONS).store(stored), clean, torch.where(flip, -clean, clean)


def products(x: torch.Tensor, weight: torch.Tensor, moving: list[int]) -> None:
    for count in moving:
        x[:count] @ weight


def measure(patterns: int, noise: float, repeats: int) -> dict[str, object]:
    memory, clean, x = problem(patterns, noise)
    found = memory.recall(x, 100)
    # A state takes part in the sweeps that change it, and in one more that finds it at rest.
    sweeps = (found.steps + found.settled.long()).clamp(max=100)
    moving = [int((sweeps >= step).sum()) for step in range(1, int(sweeps.max()) + 1)]
    runs = {
        "ours": lambda: memory.recall(x, 100),
        "matrix products": lambda: products(x, memory.weight, moving),
    }
    name = f"recall of {ROWS:,} states, {NEURONS:,} neurons, {patterns} patterns"
    facts = {
        "noise": noise,
        "sweeps": len(moving),
        "moving": moving,
        "recalled_exactly": round(float((found.state == clean).all(1).float().mean()), 4),
    }
    limit = {"matrix products": Bound(at_most=3.0)}
    measured = race(runs, rounds=repeats, seed=SEED)
    return Finding.of(name, measured, limit, facts=facts).to_dict()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = [
        measure(patterns, noise, options.repeats) for patterns, noise in ((70, 0.2), (130, 0.1))
    ]
    write_record(
        "hopfield",
        command="python benchmarks/hopfield.py",
        seed=SEED,
        results=found,
        repeats=options.repeats,
    )
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
