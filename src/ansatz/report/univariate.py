"""Held-out outcomes that are single numbers, each with its transform by its own likelihood."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.likelihoods import Distribution, VectorDistribution
from ansatz.report.evidence import Evidence
from ansatz.report.transform import Transform, transform

Numbers = NDArray[np.float64]
MOST = 4  # targets that are shown
_STEPS = (1000.0, 100.0, 50.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.05, 0.01, 0.005, 0.001, 1e-4)


class Target(NamedTuple):
    """One outcome of every held-out row.

    Args:
        name: of the outcome; empty where there is only one.
        column: its place among several.
        transform: of each row.
        fitted: ``(N,)``, what the model expects: the mean, or the median where there is none.
        rounding: the unit outcomes of a continuous distribution were rounded to, 0 if none matters.
    """

    name: str
    column: int | None
    transform: Transform
    fitted: Numbers
    rounding: float

    def of(self, values: Tensor) -> Tensor:
        """This target's column of ``(..., N, K)`` numbers, or all of ``(..., N)``."""
        return values if self.column is None else values[..., self.column]


def is_classes(distribution: Distribution) -> bool:
    """Whether outcomes are classes, which have no cumulative distribution to be evaluated by."""
    return hasattr(distribution, "probs") and not hasattr(distribution, "trials")


def targets(evidence: Evidence) -> list[Target]:
    """The outcomes that are numbers with a likelihood; none for classes, rankings, vectors and losses."""
    if "targets" not in evidence.kept:  # several sections ask
        evidence.kept["targets"] = evidence.outcome_report.targets(evidence)
    found: list[Target] = evidence.kept["targets"]
    return found


def targets_of_numbers(evidence: Evidence) -> list[Target]:
    """Each column of numbers with its transform; several columns by their names."""
    likelihood = evidence.distribution
    if likelihood is None or isinstance(likelihood, VectorDistribution):
        return []
    if hasattr(likelihood, "ranks") or is_classes(likelihood):
        return []
    y = evidence.value
    if y.ndim == 1:
        return [_number(likelihood, y, None, "")]
    names = evidence.model.outcome.names or [str(k) for k in range(y.shape[1])]
    return [_number(likelihood, y, k, str(names[k])) for k in range(min(y.shape[1], MOST))]


def _number(distribution: Distribution, y: Tensor, column: int | None, name: str) -> Target:
    step = _rounding(distribution, y, column)
    found = transform(distribution, y, rounding=step)
    fitted = fitted_values(distribution).numpy()
    if column is not None:
        found, fitted = found.take((slice(None), column)), fitted[:, column]
    return Target(name, column, found, fitted, step)


def fitted_values(distribution: Distribution) -> Tensor:
    """The mean of each row's likelihood, the median of all where any mean is not finite."""
    with torch.no_grad():
        mean = distribution.mean
        return mean if bool(mean.isfinite().all()) else distribution.median


def _rounding(distribution: Distribution, y: Tensor, column: int | None) -> float:
    """The step of outcomes that were rounded, where it is no small part of the likelihood's spread."""
    if distribution.discrete or getattr(distribution, "circular", False):
        return 0.0
    with torch.no_grad():
        spread = distribution.stddev
    if column is not None:
        y, spread = y[:, column], spread[:, column]
    y, spread = y.double(), spread.double()
    if len(y.unique()) > 0.5 * len(y) or not bool(spread.isfinite().any()):
        return 0.0
    least = 0.05 * float(spread[spread.isfinite()].median())
    for step in _STEPS:
        if step < least:
            return 0.0
        places = y / step
        if bool(((places - places.round()).abs() < 1e-6).all()):
            return step
    return 0.0
