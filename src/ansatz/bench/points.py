"""Measures the accuracy on point clouds of ten solids in any pose."""

import statistics
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.record import mean_of, repeated, run_facts

CLOUDS, POINTS, TEST = 1_000, 128, 200


class Case(NamedTuple):
    """A network, and the least accuracy; None where it is recorded alone."""

    arguments: Mapping[str, Any]
    accuracy: float | None
    flat: bool = False  # whether it sees coordinates as the columns of a table


CASES = {
    "pointnet": Case({}, 0.93),
    "invariant_points": Case({"network": "invariant_points"}, 0.985),
    "linear_points": Case({"network": "linear_points"}, None),
    "flat": Case({"network": "mlp"}, None, True),
}


def quality_points(options: BenchOptions) -> list[Finding]:
    """Measures the accuracy on 200 clouds by default recipes; the seed draws all clouds."""
    done = repeated("quality-points", options.pick(CASES), _fit, options, times=1)
    return [_finding(name, rows) for name, rows in done]


def _fit(name: str, seed: int) -> dict[str, Any]:
    from ansatz.data import solids
    from ansatz.estimators import Classifier

    case, (clouds, y) = CASES[name], solids(CLOUDS, POINTS, seed=seed)
    drawn = np.random.default_rng(seed).permutation(CLOUDS)
    learn, test = np.sort(drawn[TEST:]), np.sort(drawn[:TEST])
    X: Any = clouds.values.reshape(CLOUDS, -1) if case.flat else clouds
    model = Classifier(random_state=seed, **case.arguments)
    wall, processor = time.perf_counter(), time.process_time()
    model.fit(X[learn], y[learn])
    seconds, processor = time.perf_counter() - wall, time.process_time() - processor
    return {
        **model.evaluate(X[test], y[test]),
        "seconds": seconds,
        "processor_seconds": processor,
        "parameters": model.model_.parameters,
        "recipe": model.recipe_.sentence(model.model_.network_name),
    }


def _finding(name: str, rows: list[dict[str, Any]]) -> Finding:
    case, accuracies = CASES[name], [row["accuracy"] for row in rows]
    facts = {
        **run_facts(rows, "seed"),
        "accuracies": accuracies,
        "nll": mean_of(rows, "nll"),
        "processor_seconds": mean_of(rows, "processor_seconds"),
        **{key: rows[0][key] for key in ("parameters", "recipe")},
    }
    limit = {} if case.accuracy is None else {"ours": Bound(at_least=case.accuracy)}
    unit = "share of 200 test clouds"
    return Finding(
        f"solids, {name}: accuracy", unit, statistics.fmean(accuracies), limit=limit, facts=facts
    )
