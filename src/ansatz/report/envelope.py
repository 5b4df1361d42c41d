"""Where ordered uniform numbers lie, one by one and all together."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

Numbers = NDArray[np.float64]
_POINTS = 120


class Envelope(NamedTuple):
    """A band that holds all of n ordered uniform numbers at once.

    Args:
        expected: ``(M,)``, the means k / (n + 1) of the order statistics it is given at.
        low: ``(M,)``.
        high: ``(M,)``.
    """

    expected: Numbers
    low: Numbers
    high: Numbers


@lru_cache(maxsize=32)
def uniform_envelope(count: int, level: float = 0.95, seed: int = 0) -> Envelope:
    r"""The simultaneous envelope of a QQ plot of ``count`` uniform numbers.

    The k-th of n ordered uniform numbers has the likelihood Beta(k, n + 1 - k). The envelope leaves
    the same small probability outside on both sides at every k, chosen by simulation such that all
    of them lie inside with probability ``level``: equally sharp in the middle and in the tails,
    where that of Kolmogorov and Smirnov says nothing. For many rows it looks at 120 places, dense
    in the tails; between them it is interpolated.

    Args:
        count: n.
        level: of all together.
        seed: of the simulation.

    References:
        Aldor-Noiman et al. (2013), The power to see: a new graphical test of normality.
        https://doi.org/10.1080/00031305.2013.847865
    """
    if count < 1:
        raise ValueError(f"an envelope needs at least one row, got {count}.")
    places = _places(count)
    generator = np.random.default_rng(seed)
    # Spacings of uniform numbers are exponential ones divided by their sum.
    steps = np.diff(np.concatenate([[0], places, [count + 1]]))
    sums = generator.gamma(steps, size=(1000, len(steps))).cumsum(1)
    ordered = sums[:, :-1] / sums[:, -1:]
    below = special.betainc(places, count + 1 - places, ordered)
    worst = np.minimum(below, 1 - below).min(1)
    tail = float(np.quantile(worst, 1 - level))
    low = special.betaincinv(places, count + 1 - places, tail)
    high = special.betaincinv(places, count + 1 - places, 1 - tail)
    return Envelope(places / (count + 1), low, high)


def _places(count: int) -> Numbers:
    if count <= _POINTS:
        return np.arange(1, count + 1, dtype=np.float64)
    tail = np.unique(np.geomspace(1, count / 2, _POINTS // 2).round())
    return np.unique(np.concatenate([tail, count + 1 - tail]))


def holds(ordered: Numbers, band: Envelope) -> bool:
    """Whether sorted numbers in [0, 1] stay within the envelope at its places."""
    count = len(ordered)
    places = np.rint(band.expected * (count + 1)).astype(np.intp) - 1
    values = ordered[places]
    return bool(((values >= band.low) & (values <= band.high)).all())
