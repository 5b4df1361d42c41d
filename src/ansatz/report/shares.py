"""Shares of rows and their intervals."""

import math
from typing import NamedTuple

from scipy import stats


class Share(NamedTuple):
    """A share with an interval."""

    value: float
    low: float
    high: float


def wilson(count: float, total: float, level: float = 0.95) -> Share:
    r"""The interval of Wilson for a binomial share: those p that a score test does not reject.

    .. math:: \frac{\hat p + z^2/2n \pm z \sqrt{\hat p (1 - \hat p)/n + z^2/4n^2}}{1 + z^2/n}

    Args:
        count: how often; a sum of frequency weights need not be whole.
        total: n.
        level: of the interval.

    References:
        Wilson (1927), Probable inference, the likelihood of succession, and statistical inference.
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
    """The exact interval for a binomial share, which holds at least ``level`` whatever it is.

    Args:
        count: how often.
        total: of how many.
        level: of the interval.

    References:
        Clopper and Pearson (1934), The use of confidence or fiducial limits.
    """
    if total <= 0:
        return Share(math.nan, math.nan, math.nan)
    tail = (1 - level) / 2
    low = 0.0 if count <= 0 else float(stats.beta.ppf(tail, count, total - count + 1))
    high = 1.0 if count >= total else float(stats.beta.ppf(1 - tail, count + 1, total - count))
    return Share(count / total, low, high)
