"""Quantiles of residuals along the predictions: flat lines if the law is right everywhere."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Numbers = NDArray[np.float64]


class QuantileLine(NamedTuple):
    """A quantile of residuals along the predictions.

    Args:
        level: of the quantile, where a flat line should be.
        x: ``(B,)``, middles of the parts, in ranks from 0 to 1.
        value: ``(B,)``.
        low: ``(B,)``: all parts lie above it and below ``high`` with 95 %.
        high: ``(B,)``.
        p_value: of the part that is furthest off, for having looked at all of them.
    """

    level: float
    x: Numbers
    value: Numbers
    low: Numbers
    high: Numbers
    p_value: float

    @property
    def largest(self) -> float:
        """The largest distance from the level."""
        return float(np.abs(self.value - self.level).max())


def quantile_lines(
    uniform: ArrayLike, fitted: ArrayLike, levels: Sequence[float] = (0.25, 0.5, 0.75)
) -> list[QuantileLine]:
    r"""Quantiles of residuals in parts of equal size, in the order of the predictions.

    The :math:`\lceil q m \rceil`-th of m uniform numbers has a Beta law, which gives the band
    exactly; the parts share the 5 % (Sidak).

    Args:
        uniform: ``(N,)`` residuals.
        fitted: ``(N,)`` predictions, whose order matters only.
        levels: of the quantiles.
    """
    u, order = np.asarray(uniform), np.argsort(np.asarray(fitted), kind="stable")
    parts = np.array_split(u[order], int(np.clip(len(u) // 150, 1, 10)))
    sizes = np.array([len(part) for part in parts])
    ends = np.concatenate([[0], np.cumsum(sizes)]) / len(u)
    x = (ends[1:] + ends[:-1]) / 2
    tail = (1 - 0.95 ** (1 / len(parts))) / 2
    lines = []
    for level in levels:
        place = np.maximum(np.ceil(level * sizes), 1).astype(np.intp)
        value = np.array([np.sort(p)[k - 1] for p, k in zip(parts, place, strict=True)])
        law = stats.beta(place, sizes - place + 1)
        each = 2 * np.minimum(law.cdf(value), law.sf(value))
        p = float(1 - (1 - min(each.min(), 1.0)) ** len(parts))
        lines.append(QuantileLine(level, x, value, law.ppf(tail), law.isf(tail), p))
    return lines
