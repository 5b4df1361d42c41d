"""Computes effect sizes and shares with their intervals."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


class EffectSize(NamedTuple):
    """An effect size with its 95 % interval, and the p-value of its being ``neutral``."""

    name: str
    value: float
    low: float
    high: float
    neutral: float
    p_value: float | None = None

    @property
    def excludes_neutral(self) -> bool:
        """Whether the interval excludes the value of a calibrated forecast."""
        return not self.low <= self.neutral <= self.high


def cluster_sums(values: ArrayLike, group: ArrayLike | None) -> NDArray[np.float64]:
    """Sums rows ``(N, ...)`` within groups; without groups returns the rows."""
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
) -> EffectSize:
    r"""Computes the ratio of two sums over rows, with a delta-method interval of its logarithm.

    .. math:: r = \frac{\sum_i w_i o_i}{\sum_i w_i e_i}, \qquad
              \mathrm{se}(r) = \frac{\sqrt{\sum_g (\sum_{i \in g} w_i (o_i - r e_i))^2}}
              {\sum_i w_i e_i}

    Rows of a group may be dependent. The ratio is 1 if calibrated.
    """
    o, e = np.asarray(observed, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    w = np.ones(len(o)) if weight is None else np.asarray(weight, dtype=np.float64)
    total = float((w * e).sum())
    if not total > 0 or not math.isfinite(total):
        return EffectSize(name, math.nan, math.nan, math.nan, 1.0)
    value = float((w * o).sum()) / total
    miss = o - value * e
    # A frequency weight is a number of rows, each with its own error.
    variance = (w * miss**2).sum() if group is None else (cluster_sums(w * miss, group) ** 2).sum()
    error = math.sqrt(float(variance)) / total
    if value <= 0:  # none seen: up to 3.69 could have been expected (Poisson, 97.5 %)
        return EffectSize(name, value, 0.0, float(stats.chi2.ppf(0.975, 2)) / 2 / total, 1.0)
    reach = 1.96 * error / value
    return EffectSize(name, value, value * math.exp(-reach), value * math.exp(reach), 1.0)


def monte_carlo_p(simulated: ArrayLike, observed: float) -> float:
    """Computes the two-sided p-value of a statistic among its simulations."""
    values = np.asarray(simulated, dtype=np.float64)
    above = (1 + int((values >= observed).sum())) / (1 + len(values))
    below = (1 + int((values <= observed).sum())) / (1 + len(values))
    return min(1.0, 2 * min(above, below))


class Share(NamedTuple):
    """A share with an interval."""

    value: float
    low: float
    high: float


def wilson(count: float, total: float, level: float = 0.95) -> Share:
    r"""Computes Wilson's interval of a binomial share: the p that a score test does not reject.

    .. math:: \frac{\hat p + z^2/2n \pm z \sqrt{\hat p (1 - \hat p)/n + z^2/4n^2}}{1 + z^2/n}

    References:
        Wilson (1927), Probable inference, the law of succession, and statistical inference.
    """
    if not total > 0:
        return Share(math.nan, math.nan, math.nan)
    z = float(stats.norm.ppf((1 + level) / 2))
    p = count / total
    middle = p + z * z / (2 * total)
    reach = z * math.sqrt(max(p * (1 - p), 0.0) / total + z * z / (4 * total**2))
    scale = 1 + z * z / total
    return Share(p, max((middle - reach) / scale, 0.0), min((middle + reach) / scale, 1.0))


def clopper_pearson(count: int, total: int, level: float = 0.95) -> Share:
    """Computes the exact interval of a binomial share, whose coverage is at least ``level``.

    References:
        Clopper and Pearson (1934), The use of confidence or fiducial limits.
    """
    if total <= 0:
        return Share(math.nan, math.nan, math.nan)
    tail = (1 - level) / 2
    low = 0.0 if count <= 0 else float(stats.beta.ppf(tail, count, total - count + 1))
    high = 1.0 if count >= total else float(stats.beta.ppf(1 - tail, count + 1, total - count))
    return Share(count / total, low, high)
