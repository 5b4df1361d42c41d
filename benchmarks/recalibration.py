"""Measures what recalibrating a single network on its validation rows would bring.

    python benchmarks/recalibration.py

Each network is fitted once; the factor is found on the rows that stopped it, and corrected as for
ensembles. Writes benchmarks/results/recalibration.json.
"""

import copy
import json
import sys
from typing import Any

import numpy as np
import torch

from ansatz.bench.coverage import _evaluate, _model, simulate
from ansatz.bench.record import write_record
from ansatz.fitting.job import take
from ansatz.fitting.recalibration import find_factor, for_mixture, kind_of, optimism
from ansatz.fitting.split import stopping_rows
from ansatz.inference.combination import Combination
from ansatz.inference.ensemble_posterior import EnsemblePosterior

CASES = [f"{kind}-1000-{p}" for kind in ("scale", "normal", "curved", "gamma") for p in (5, 30)]
REPLICATES = 12


def factor_of(model: Any, job: Any) -> float:
    """The factor that the validation rows ask for, corrected for their choice of the stop."""
    rows = take(job, stopping_rows(job, model.recipe, model.task.settings.seed))
    raw = model.posterior.predictive(rows.rows, rows.offset, notes=[]).raw
    mixed = Combination([model.posterior.likelihood], torch.ones(1))

    def loss(factor: float) -> torch.Tensor:
        mixed.recalibrate(factor)
        with torch.no_grad():
            return mixed.likelihood.loss(mixed.serve([raw]), rows.y)

    found = find_factor(loss, rows.weight)
    if kind_of(model.posterior.likelihood) == "temperature":
        return found
    return for_mixture(found, 0.0, optimism(rows.mass))


def measured(case: str, replicate: int) -> list[list[float]]:
    """Nll and coverage (of classes the calibration slope) on test rows, before and after."""
    kind, count = case.split("-")[0], int(case.split("-")[1])
    x, y = simulate(case, replicate)
    before = _model(kind, {"inference": "point"}).fit(x[:count], y[:count])
    factor = factor_of(before.model_, before.read(x[:count], y[:count]))
    after = copy.copy(before)
    after.model_ = copy.copy(before.model_)
    after.model_.posterior = EnsemblePosterior([before.model_.posterior], torch.ones(1), factor)
    return [list(_evaluate(each, kind, x[count:], y[count:]).values()) for each in (before, after)]


def main() -> None:
    """Prints and writes the record."""
    results = {}
    for case in sys.argv[1:] or [*CASES, "binary-1000-5"]:
        found = np.array([measured(case, replicate) for replicate in range(REPLICATES)])
        nll, held = found[..., 0], found[..., 1]  # (R, 2)
        change = nll[:, 1] - nll[:, 0]
        results[case] = {
            "nll": nll[:, 0].mean(),
            "change of nll": change.mean(),
            "standard error": change.std(ddof=1) / len(change) ** 0.5,
            "slope" if case.startswith("binary") else "coverage": held.mean(0).tolist(),
            "distance from target": np.abs(held - (1 if "binary" in case else 0.9))
            .mean(0)
            .tolist(),
        }
        print(case, json.dumps(results[case]), flush=True)
    write_record(
        "recalibration", command="python benchmarks/recalibration.py", seed=0, results=results
    )


if __name__ == "__main__":
    main()
