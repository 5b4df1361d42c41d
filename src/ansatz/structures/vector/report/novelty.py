"""How far a row lies from those that the model learned from."""

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.linear import leverage
from ansatz.report.contribution import Novelty
from ansatz.report.evidence import Evidence

Numbers = NDArray[np.float64]
_KEPT = 5_000  # training rows that are searched


def nearest_distance(x: Tensor, learned: Tensor, neighbours: int = 5) -> Numbers:
    r"""The mean distance to the nearest rows learned from, 1 for a typical one of those.

    Args:
        x: ``(N, D)`` standardised inputs.
        learned: ``(M, D)``.
        neighbours: how many.
    """
    from sklearn.neighbors import NearestNeighbors

    rows = learned.double().numpy()
    if len(rows) > _KEPT:
        chosen = np.random.default_rng(0).choice(len(rows), _KEPT, replace=False)
        rows = rows[np.sort(chosen)]
    near = min(neighbours, len(rows) - 1)
    if near < 1:
        return np.zeros(len(x))
    search = NearestNeighbors().fit(rows)
    own, _ = search.kneighbors(rows, near + 1)  # the nearest of each is the row itself
    typical = float(np.median(own[:, 1:].mean(1)))
    found, _ = search.kneighbors(x.double().numpy(), near)
    distance: Numbers = found.mean(1)
    return distance / typical if typical > 0 else distance


def novelty(evidence: Evidence) -> Novelty | None:
    """Leverage of a linear model; for a network the distance to the rows learned from.

    None where the model has no columns, or the rows learned from are not at hand.
    """
    if not len(evidence.X.columns):
        return None
    preprocessor = evidence.model.encoder.preprocessor  # type: ignore[attr-defined]  # of a table
    x = _inputs(preprocessor, evidence.job.rows)
    if len(evidence.model.linear) == 1 and not evidence.model.several:
        (fit,) = evidence.model.linear
        try:
            pull = leverage(fit, x[:, : len(preprocessor.feature_names)])
            meaning = (
                "Leverage is the pull that a row with these features would have on its own fit."
            )
            return Novelty(pull.numpy(), "leverage", "leverage", meaning)
        except UsageError:  # no exponential family: distance, as for a network
            pass
    if evidence.learn is None:
        return None
    learned = _inputs(preprocessor, evidence.learn.job.rows)
    scale = learned.std(0).clamp(min=1e-12)
    value = nearest_distance(x / scale, learned / scale)
    meaning = (
        "The distance is that to the five nearest training rows in standardised features, in "
        "units of what is typical among training rows."
    )
    return Novelty(value, "distance to training rows", "extrapolation", meaning)


def _inputs(preprocessor: Any, rows: Any) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers, *codes = preprocessor.transform(rows.values, notes=[])
    levels = preprocessor.spec.cardinalities if codes else ()
    parts = [numbers.double()]
    for k, size in enumerate(levels):  # embedded columns as indicators
        parts.append(torch.nn.functional.one_hot(codes[0][:, k], size + 1).double())
    return torch.cat(parts, 1)
