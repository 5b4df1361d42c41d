"""A smooth line through a cloud of points, with the band in which it may wander by chance."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]


class Smooth(NamedTuple):
    """A line and its sampling error.

    Args:
        x: ``(M,)``, where it was computed.
        value: ``(M,)``.
        factor: ``(M,)``: the standard error is this times the sd of one point.
    """

    x: Numbers
    value: Numbers
    factor: Numbers


def local_linear(x: ArrayLike, y: ArrayLike, *, share: float = 0.5, points: int = 40) -> Smooth:
    r"""Straight lines fitted near each place, by weights that fall to 0 with the distance.

    .. math:: \hat m(t) = \sum_i l_i(t) y_i, \qquad w_i(t) = (1 - |x_i - t|^3 / h(t)^3)^3_+

    with h(t) the distance that holds ``share`` of the points: loess without its robust steps.
    As it is linear in y, its variance is :math:`\sigma^2 \sum_i l_i^2`.

    Args:
        x: ``(N,)``.
        y: ``(N,)``.
        share: of the points that each line is fitted to.
        points: places.

    References:
        Cleveland (1979), Robust locally weighted regression and smoothing scatterplots.
        https://doi.org/10.1080/01621459.1979.10481038
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    places = np.unique(np.quantile(x, np.linspace(0.005, 0.995, points)))
    near = max(int(np.ceil(share * len(x))), min(len(x), 3))
    value, factor = np.empty(len(places)), np.empty(len(places))
    for k, t in enumerate(places):
        distance = np.abs(x - t)
        reach = np.partition(distance, near - 1)[near - 1] * (1 + 1e-9)
        w = np.clip(1 - (distance / reach) ** 3, 0, None) ** 3 if reach > 0 else distance == 0
        row = _hat(x - t, np.asarray(w, dtype=np.float64))
        value[k], factor[k] = row @ y, np.sqrt(row @ row)
    return Smooth(places, value, factor)


def _hat(d: Numbers, w: Numbers) -> Numbers:
    """The weights of the points in the line's value at distance 0."""
    s0, s1, s2 = w.sum(), (w * d).sum(), (w * d * d).sum()
    determinant = s0 * s2 - s1 * s1
    if determinant <= 1e-10 * s0 * s2 or s0 * s2 == 0:  # all points at one place
        return w / s0
    return w * (s2 - s1 * d) / determinant
