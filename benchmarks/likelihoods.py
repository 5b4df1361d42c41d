"""Measures the numerics of the likelihoods beside scipy's: python benchmarks/likelihoods.py.

Speed: cdf, log_survival and icdf of a million points, each with parameters of its own, against
scipy.stats' cdf, logsf and ppf of the same points. Outcomes are drawn from the likelihood, levels
are uniform. Ours and scipy's alternate on one thread in one process; processor time is measured.
Where a million points would take long they are fewer, as the record states; the ratio is of times
per point. The cost of a gradient of log_cdf and of log_survival is measured as well.

Accuracy: log_cdf and log_survival against mpmath, at outcomes drawn from the likelihood and far out
in either tail, down to probabilities of e^-5000; quantiles by the tails that mpmath finds there.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and torch start their threads

import argparse
import json
import statistics
import warnings
from collections.abc import Callable

import numpy as np
import torch
from likelihood_accuracy import accuracy
from likelihood_cases import CASES, Case
from torch import Tensor

from ansatz.bench.race import measured, race
from ansatz.bench.record import commit, write_record

SEED = 0
PATIENCE = {"ours": 20.0, "scipy": 2.0, "gradient": 1.0}  # seconds that one call may take
FUNCTIONS = {"cdf": "cdf", "log_survival": "logsf", "icdf": "ppf"}


def speed(case: Case, points: int, repeats: int) -> dict[str, object]:
    generator = torch.Generator().manual_seed(SEED)
    parameters = case.draw(generator, points)
    y = case.outcomes(parameters, generator)
    q = torch.rand(points, generator=generator, dtype=torch.float64)
    found: dict[str, object] = {}
    for name in FUNCTIONS:
        found[name] = beside_scipy(case, parameters, q if name == "icdf" else y, name, repeats)
    for name in ("log_cdf", "log_survival"):
        size = affordable(
            gradient(case, parameters, y, 1000, name), min(points, 100_000), "gradient"
        )
        taken = [
            measured(gradient(case, parameters, y, size, name)).processor / size for _ in range(3)
        ]
        found[f"gradient_of_{name}"] = {"ns": nanoseconds(taken)}
    return found


def affordable(pilot: Callable[[], object], points: int, who: str) -> int:
    """Computes the number of points of one call, from the time of 1000."""
    pilot()
    return max(1000, min(points, int(1000 * PATIENCE[who] / max(measured(pilot).processor, 1e-9))))


def beside_scipy(case: Case, parameters: list[Tensor], x: Tensor, name: str, repeats: int) -> dict:
    """Ours and scipy's on the same points in turn."""
    arrays = [p.numpy() for p in parameters]

    def ours(size: int) -> Callable[[], object]:
        function, some = getattr(case.likelihood(*(p[:size] for p in parameters)), name), x[:size]
        return lambda: function(some)

    def scipy(size: int) -> Callable[[], object] | None:
        frozen, some = case.scipy(*(a[:size] for a in arrays)), x[:size].numpy()
        function = getattr(frozen, FUNCTIONS[name], None)
        return None if function is None else lambda: function(some)

    size = affordable(ours(1000), len(x), "ours")
    runs, sizes = {"ours": ours(size)}, {"ours": size}
    pilot = scipy(1000)
    if pilot is not None:
        sizes["scipy"] = affordable(pilot, len(x), "scipy")
        runs["scipy"] = scipy(sizes["scipy"])
    times = race(runs, rounds=repeats, seed=SEED).times
    taken = {who: [time.processor / sizes[who] for time in each] for who, each in times.items()}
    row = {"ns": nanoseconds(taken["ours"]), "points": sizes["ours"]}
    if pilot is None:
        return {**row, "scipy": "no counterpart"}
    ratios = [a / b for a, b in zip(taken["ours"], taken["scipy"], strict=True)]
    return {
        **row,
        "scipy_ns": nanoseconds(taken["scipy"]),
        "scipy_points": sizes["scipy"],
        "ratio": float(f"{statistics.median(ratios):.2g}"),
        "ratio_spread": [float(f"{r:.2g}") for r in (min(ratios), max(ratios))],
    }


def gradient(case: Case, parameters: list[Tensor], y: Tensor, points: int, name: str):
    rows = [p[:points].clone() for p in parameters]
    leaves = [p.requires_grad_() for p in rows[: len(rows) - case.fixed]]
    y = y[:points]

    def run() -> object:
        value = getattr(case.likelihood(*rows), name)(y)
        return torch.autograd.grad(value[value.isfinite()].sum(), leaves)

    return run


def nanoseconds(seconds: list[float]) -> float:
    return float(f"{statistics.median(seconds) * 1e9:.3g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--exact", type=int, default=100, help="points per region for mpmath")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--likelihoods", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--quick", action="store_true", help="few points, and no record")
    parser.add_argument("--only", choices=("speed", "accuracy"), help="one half, and no record")
    options = parser.parse_args()
    if options.quick:
        options.points, options.exact, options.repeats = 50_000, 20, 3
    torch.set_num_threads(1)
    started = commit()  # others may commit while this runs
    results = []
    for name in options.likelihoods:
        case = CASES[name]
        row: dict[str, object] = {"name": name}
        if case.composed:
            row["scipy"] = case.composed
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if options.only != "accuracy":
                row["speed"] = speed(case, options.points, options.repeats)
            if options.only != "speed":
                row["accuracy"] = accuracy(case, options.exact, SEED)
        results.append(row)
        print(json.dumps(row), flush=True)
    if options.quick or options.only or len(options.likelihoods) < len(CASES):
        return
    write_record(
        "likelihoods",
        command="python benchmarks/likelihoods.py",
        seed=SEED,
        results=results,
        commit=started,
        points=options.points,
        repeats=options.repeats,
        exact_points=options.exact,
        unit="ns of processor time per point; ratio: ours over scipy's, median and range",
    )


if __name__ == "__main__":
    main()
