"""How far something is from what it should be: an estimate, its interval, then a p-value."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


class Effect(NamedTuple):
    """An effect size with its 95 % interval, and the p-value of its being ``neutral``."""

    name: str
    value: float
    low: float
    high: float
    neutral: float
    p_value: float | None = None

    @property
    def excludes_neutral(self) -> bool:
        """Whether the interval leaves out what a right likelihood would have."""
        return not self.low <= self.neutral <= self.high


def cluster_sums(values: ArrayLike, group: ArrayLike | None) -> NDArray[np.float64]:
    """Sums of rows ``(N, ...)`` within each group; the rows themselves without groups."""
    rows = np.asarray(values, dtype=np.float64)
    if group is None:
        return rows
    _, place = np.unique(np.asarray(group).astype(str), return_inverse=True)
    sums = np.zeros((place.max() + 1, *rows.shape[1:]))
    np.add.at(sums, place, rows)
    return sums


def ratio(
    name: str,
    observed: ArrayLike,
    expected: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> Effect:
    r"""The ratio of two sums over rows, with the interval of the delta method on its logarithm.

    .. math:: r = \frac{\sum_i w_i o_i}{\sum_i w_i e_i}, \qquad
              \mathrm{se}(r) = \frac{\sqrt{\sum_g (\sum_{i \in g} w_i (o_i - r e_i))^2}}
              {\sum_i w_i e_i}

    Rows of a group may depend on each other. Should be 1.

    Args:
        name: of what is observed and expected.
        observed: ``(N,)``.
        expected: ``(N,)``, their expectations under the likelihood.
        weight: ``(N,)`` frequency weights.
        group: ``(N,)``.
    """
    o, e = np.asarray(observed, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    w = np.ones(len(o)) if weight is None else np.asarray(weight, dtype=np.float64)
    total = float((w * e).sum())
    if not total > 0 or not math.isfinite(total):
        return Effect(name, math.nan, math.nan, math.nan, 1.0)
    value = float((w * o).sum()) / total
    miss = o - value * e
    # A frequency weight is so many rows, each with its own error.
    spread = (w * miss**2).sum() if group is None else (cluster_sums(w * miss, group) ** 2).sum()
    error = math.sqrt(float(spread)) / total
    if value <= 0:  # none seen: up to 3.69 could have been expected (Poisson, 97.5 %)
        return Effect(name, value, 0.0, float(stats.chi2.ppf(0.975, 2)) / 2 / total, 1.0)
    reach = 1.96 * error / value
    return Effect(name, value, value * math.exp(-reach), value * math.exp(reach), 1.0)


def monte_carlo_p(simulated: ArrayLike, observed: float) -> float:
    """The two-sided p-value of a statistic among simulations of it."""
    values = np.asarray(simulated, dtype=np.float64)
    above = (1 + int((values >= observed).sum())) / (1 + len(values))
    below = (1 + int((values <= observed).sum())) / (1 + len(values))
    return min(1.0, 2 * min(above, below))
