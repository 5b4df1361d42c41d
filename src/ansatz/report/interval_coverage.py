"""Computes the coverage of predictive intervals on held-out rows."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ansatz.figures.number_format import printable
from ansatz.likelihoods import Distribution
from ansatz.metrics import kaplan_meier
from ansatz.report.effect import wilson
from ansatz.report.transform import Transform, transform

Numbers = NDArray[np.float64]


class Coverage(NamedTuple):
    """The coverage of intervals on some rows."""

    label: str  # of the rows
    level: float
    nominal: float  # mean predicted probability of the intervals; for counts above the level
    observed: float  # the share of the rows inside
    low: float  # of the 95 % interval of the share
    high: float
    width: float  # the mean length of the intervals; infinite where any is
    rows: float  # number of rows, by weight

    @property
    def holds(self) -> bool:
        """Whether the interval of the observed share contains the nominal share."""
        return self.low <= self.nominal <= self.high


def coverage(
    inside: ArrayLike,
    nominal: ArrayLike,
    width: ArrayLike,
    *,
    level: float,
    weight: ArrayLike | None = None,
    label: str = "all rows",
) -> Coverage:
    """Computes the share of rows inside their intervals, with Wilson's interval."""
    held = np.asarray(inside, dtype=np.float64)
    w = np.ones(len(held)) if weight is None else np.asarray(weight, dtype=np.float64)
    total = float(w.sum())
    share = wilson(float((w * held).sum()), total)
    if not total > 0:
        return Coverage(label, level, level, *share, float("nan"), 0.0)
    mean, length = (float(np.average(np.asarray(part), weights=w)) for part in (nominal, width))
    return Coverage(label, level, mean, *share, length, total)


class Intervals(NamedTuple):
    """The intervals of one level on every row."""

    level: float
    inside: NDArray[np.bool_]  # ``(N,)``, whether the outcome lies inside
    nominal: Numbers  # ``(N,)``, the predicted probability
    width: Numbers  # ``(N,)``


def intervals(
    distribution: Distribution, y: Tensor, level: float, found: Transform | None = None
) -> Intervals:
    r"""Computes equal-tailed intervals and whether they contain the outcomes.

    The interval from the :math:`\alpha/2` to the :math:`1 - \alpha/2` quantile contains y where
    :math:`F(y) \ge \alpha/2` and :math:`F(y^-) < 1 - \alpha/2`. Its nominal coverage
    :math:`F(u) - F(l^-)` is above :math:`1 - \alpha` for discrete distributions.

    Args:
        distribution: the predicted distribution of each outcome.
        y: ``(N,)`` or ``(N, K)``.
        level: :math:`1 - \alpha`.
        found: the transforms, if already computed.

    Example:
        >>> import torch
        >>> from ansatz.diagnostics import intervals
        >>> from ansatz.likelihoods import NormalDistribution
        >>> standard = NormalDistribution(torch.zeros(3), torch.ones(3))
        >>> intervals(standard, torch.tensor([0.0, 1.0, 2.0]), 0.9).inside
        array([ True,  True, False])
    """
    found = transform(distribution, y) if found is None else found
    tail = (1 - level) / 2
    inside = (found.upper >= tail) & (found.lower < 1 - tail)
    with torch.no_grad():
        lower, upper = distribution.interval(level)
        before = (
            lower - 1
            if distribution.discrete
            else torch.nextafter(lower, torch.full_like(lower, -torch.inf))
        )
        if getattr(distribution, "circular", False):
            nominal = torch.full_like(lower, level)
        else:
            nominal = distribution.cdf(upper) - distribution.cdf(before)
    return Intervals(level, inside, nominal.double().numpy(), (upper - lower).double().numpy())


def covered(
    found: Intervals, *, weight: ArrayLike | None = None, rows: Any = slice(None), label: str = ""
) -> Coverage:
    """Computes the coverage of intervals on some of the rows.

    Args:
        found: the intervals.
        weight: ``(N,)`` frequency weights.
        rows: an index of the rows to use.
        label: the name of these rows.

    Example:
        >>> import torch
        >>> from ansatz.diagnostics import covered, intervals
        >>> from ansatz.likelihoods import NormalDistribution
        >>> standard = NormalDistribution(torch.zeros(4), torch.ones(4))
        >>> covered(intervals(standard, torch.tensor([0.0, 1.0, 1.5, 2.0]), 0.9)).observed
        0.75
    """
    w = np.ones(len(found.inside)) if weight is None else np.asarray(weight, dtype=np.float64)
    parts = (found.inside[rows], found.nominal[rows], found.width[rows])
    return coverage(*parts, level=found.level, weight=w[rows], label=label or "all rows")


def censored_coverage(found: Transform, level: float, weight: ArrayLike | None = None) -> Coverage:
    r"""Estimates the coverage where some outcomes are censored.

    By the Kaplan-Meier curve S of the transforms: :math:`S(\alpha/2) - S(1 - \alpha/2)`, with
    Wilson's interval for the number of rows that would give the same variance.
    """
    w = np.ones(len(found.lower)) if weight is None else np.asarray(weight, dtype=np.float64)
    right = found.censored & (found.above_upper <= 0)
    place = np.where(right, found.lower, (found.lower + found.upper) / 2)
    time, event = torch.from_numpy(place), torch.from_numpy((~right).astype(np.int64))
    curve = kaplan_meier(time, event, torch.from_numpy(w))
    tail = (1 - level) / 2
    ends = torch.tensor([tail, 1 - tail], dtype=torch.float64)
    below, above = (float(v) for v in curve.at(ends))
    share = below - above
    variance = _variance(place, right, w, curve.times.numpy(), curve.values.numpy(), tail)
    total = share * (1 - share) / variance if variance > 0 else float(w[~right].sum())
    interval = wilson(share * total, total)
    return Coverage("all rows", level, level, *interval, float("nan"), float(w.sum()))


def _variance(
    place: Numbers,
    right: NDArray[np.bool_],
    w: Numbers,
    times: Numbers,
    values: Numbers,
    tail: float,
) -> float:
    """Greenwood's variance of S(a) - S(b) with a < b: both are functions of the same hazards."""
    order = np.argsort(place)
    risk = w.sum() - np.concatenate([[0.0], np.cumsum(w[order])])
    at_risk = risk[np.searchsorted(place[order], times)]
    before = np.concatenate([[1.0], values[:-1]])
    hazard = 1 - values / np.where(before > 0, before, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(hazard < 1, hazard / ((1 - hazard) * at_risk), 0.0)
    early, middle = step[times <= tail].sum(), step[(times > tail) & (times <= 1 - tail)].sum()
    s_a = values[times <= tail][-1] if (times <= tail).any() else 1.0
    s_b = values[times <= 1 - tail][-1] if (times <= 1 - tail).any() else 1.0
    return float((s_a - s_b) ** 2 * early + s_b**2 * middle)


def by_width(
    found: Intervals, *, weight: ArrayLike | None = None, bins: int = 10
) -> list[Coverage]:
    """Computes the coverage in bins of rows of equal size, ordered by the width of the interval.

    Intervals that are calibrated on average may be too narrow where they are narrow.
    """
    order = np.argsort(np.nan_to_num(found.width, posinf=np.finfo(np.float64).max), kind="stable")
    split = np.array_split(order, max(1, min(bins, len(order) // 20)))
    return [
        covered(found, weight=weight, rows=rows, label=f"{k} of {len(split)}")
        for k, rows in enumerate(split, 1)
    ]


def by_group(
    found: Intervals, group: ArrayLike, *, weight: ArrayLike | None = None, most: int = 10
) -> list[Coverage]:
    """Computes the coverage in the largest groups, of at least 20 rows each."""
    names = np.asarray(group).astype(str)
    labels, counts = np.unique(names, return_counts=True)
    chosen = [k for k in np.argsort(-counts, kind="stable")[:most] if counts[k] >= 20]
    return [
        covered(found, weight=weight, rows=names == labels[k], label=printable(labels[k], 40))
        for k in chosen
    ]
