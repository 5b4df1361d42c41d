"""Computes probability integral transforms: outcomes on the scale of their predictions."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor

from ansatz.likelihoods import Distribution, VectorDistribution
from ansatz.report.evidence import Evidence

Numbers = NDArray[np.float64]
EXACT = 1e-9  # narrower than this, a transform is a point


class Transform(NamedTuple):
    r"""The probability integral transform of each outcome, as the interval it lies in.

    For a continuous distribution the interval is the point F(y), for a discrete one
    [F(y-), F(y)], for a censored outcome all that is possible. Both tails are stored, so that 1e-30
    from 1 is as exact as 1e-30 from 0.
    """

    lower: Numbers  # ``(N,)``, F(y-), or F at the lower end of what is known
    upper: Numbers  # ``(N,)``, F(y), or F at the upper end
    above_lower: Numbers  # ``(N,)``, 1 - lower
    above_upper: Numbers  # ``(N,)``, 1 - upper
    censored: NDArray[np.bool_]  # ``(N,)``, where the outcome is censored

    def take(self, rows: Any) -> "Transform":
        """Selects rows; of (N, K) outcomes, ``(slice(None), k)`` selects a column."""
        return Transform(*(part[rows] for part in self))

    def finite(self) -> NDArray[np.bool_]:
        """Marks the rows whose distribution function is finite."""
        return np.isfinite(self.lower) & np.isfinite(self.upper)

    def scores(self) -> tuple[Numbers, Numbers]:
        """Computes the normal scores of both ends."""
        return (
            _normal_score(self.lower, self.above_lower),
            _normal_score(self.upper, self.above_upper),
        )

    def draw(self, generator: np.random.Generator) -> tuple[Numbers, Numbers]:
        """Draws a uniform point in each interval, and its normal score.

        The points of a calibrated forecast are independent and uniform. Those of censored rows are
        drawn from the forecast itself, which can hide a misfit but not cause one.
        """
        share = generator.random(self.lower.shape)
        below = (1 - share) * self.lower + share * self.upper
        above = (1 - share) * self.above_lower + share * self.above_upper
        return below, _normal_score(below, above)


def transform(distribution: Distribution, y: Tensor, *, rounding: float = 0.0) -> Transform:
    r"""Computes the transforms F(y-) and F(y) of uncensored outcomes.

    Args:
        distribution: the predicted distribution of each outcome.
        y: outcomes of its batch shape.
        rounding: the unit that outcomes of a continuous distribution were rounded to; then the
            transforms are F(y - rounding / 2) and F(y + rounding / 2).

    Example:
        >>> import torch
        >>> from ansatz.diagnostics import transform
        >>> from ansatz.likelihoods import NormalDistribution
        >>> standard = NormalDistribution(torch.zeros(3), torch.ones(3))
        >>> transform(standard, torch.tensor([-1.0, 0.0, 1.0])).upper.round(2)
        array([0.16, 0.5 , 0.84])

    References:
        Rosenblatt (1952), Remarks on a multivariate transformation.
        Dawid (1984), Statistical theory: the prequential approach.
    """
    y = y.to(torch.float64)
    if distribution.discrete:
        first, last = y - 1, y
    elif rounding > 0:
        first = (y - rounding / 2).clamp(min=distribution.lower)
        last = (y + rounding / 2).clamp(max=distribution.upper)
    else:  # there may be atoms, such as the 0 of a Tweedie distribution
        first, last = torch.nextafter(y, torch.full_like(y, -torch.inf)), y
    with torch.no_grad():
        parts = (
            distribution.log_cdf(first).exp(),
            distribution.log_cdf(last).exp(),
            distribution.log_survival(first).exp(),
            distribution.log_survival(last).exp(),
        )
    below, upto, above, beyond = (part.double().numpy() for part in parts)
    return Transform(below, upto, above, beyond, np.zeros(below.shape, dtype=np.bool_))


def transform_censored(
    distribution: Distribution, lower: Tensor, upper: Tensor, entry: Tensor | None = None
) -> Transform:
    r"""Computes the transforms of outcomes in (lower, upper], given that they exceed ``entry``."""
    lower, upper = lower.to(torch.float64), upper.to(torch.float64)
    known = lower == upper
    step = 1.0 if distribution.discrete else 0.0
    just = torch.nextafter(lower, torch.full_like(lower, -torch.inf)) - step
    first = torch.where(known, just, lower)
    with torch.no_grad():
        above = [_log_survival(distribution, end) for end in (first, upper)]
        if entry is not None and bool((entry > -torch.inf).any()):
            start = _log_survival(distribution, entry.to(torch.float64))
            above = [(part - start).clamp(max=0.0) for part in above]
            below = [-torch.expm1(part) for part in above]
        else:
            below = [_cdf(distribution, end) for end in (first, upper)]
    (low, high), (low_tail, high_tail) = (
        [part.double().numpy() for part in parts]
        for parts in (below, [part.exp() for part in above])
    )
    return Transform(low, high, low_tail, high_tail, (~known).numpy())


def _log_survival(distribution: Distribution, y: Tensor) -> Tensor:
    finite = y.isfinite()
    inside = distribution.log_survival(torch.where(finite, y, 1.0))
    return torch.where(finite, inside, torch.where(y > 0, -torch.inf, 0.0))


def _cdf(distribution: Distribution, y: Tensor) -> Tensor:
    finite = y.isfinite()
    inside = distribution.log_cdf(torch.where(finite, y, 1.0)).exp()
    return torch.where(finite, inside, torch.where(y > 0, 1.0, 0.0))


def _normal_score(below: Numbers, above: Numbers) -> Numbers:
    """Phi^{-1} by the smaller of both tails; 37 at most, the range of doubles."""
    tail = special.ndtri(np.clip(np.minimum(below, above), 1e-300, 0.5))
    score: Numbers = np.where(below <= above, tail, -tail)
    return score


MOST = 4  # targets that are shown
_STEPS = (1000.0, 100.0, 50.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.05, 0.01, 0.005, 0.001, 1e-4)


class Target(NamedTuple):
    """One outcome of every held-out row."""

    name: str  # empty where there is only one
    column: int | None  # its index among several
    transform: Transform
    fitted: Numbers  # ``(N,)``, the predicted mean, or the median where there is none
    rounding: float  # the unit that continuous outcomes were rounded to, 0 if negligible

    def of(self, values: Tensor) -> Tensor:
        """Selects this target's column of ``(..., N, K)`` numbers, or all of ``(..., N)``."""
        return values if self.column is None else values[..., self.column]


def is_classes(distribution: Distribution) -> bool:
    """Tests whether outcomes are classes, which have no distribution function."""
    return hasattr(distribution, "probs") and not hasattr(distribution, "trials")


def targets(evidence: Evidence) -> list[Target]:
    """Lists the numeric outcomes; none for classes, rankings, vectors and losses."""
    return evidence.once("targets", lambda: evidence.outcome_report.targets(evidence))


def targets_of_numbers(evidence: Evidence) -> list[Target]:
    """Computes the transform of each column of numbers."""
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
    with torch.no_grad():
        mean = distribution.mean
        fitted = (mean if bool(mean.isfinite().all()) else distribution.median).numpy()
    if column is not None:
        found, fitted = found.take((slice(None), column)), fitted[:, column]
    return Target(name, column, found, fitted, step)


def _rounding(distribution: Distribution, y: Tensor, column: int | None) -> float:
    """Finds the rounding unit, if it is not small against the predicted standard deviation."""
    if distribution.discrete or getattr(distribution, "circular", False):
        return 0.0
    with torch.no_grad():
        sd = distribution.stddev
    if column is not None:
        y, sd = y[:, column], sd[:, column]
    y, sd = y.double(), sd.double()
    if len(y.unique()) > 0.5 * len(y) or not bool(sd.isfinite().any()):
        return 0.0
    least = 0.05 * float(sd[sd.isfinite()].median())
    for step in _STEPS:
        if step < least:
            return 0.0
        places = y / step
        if bool(((places - places.round()).abs() < 1e-6).all()):
            return step
    return 0.0
