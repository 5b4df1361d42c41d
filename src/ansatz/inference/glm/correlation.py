"""Covariances of the terms of a group, in coordinates without limits.

Legend: C chains, k terms.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Root(NamedTuple):
    """The lower root of a covariance for each chain, and what its slopes need."""

    lower: Array  # (C, k, k), L with covariance L L^T
    partial: Array  # (C, k, k), the partial correlations below the diagonal


def correlations(k: int) -> int:
    """How many correlations k terms have."""
    return k * (k - 1) // 2


@cache
def below(k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places below the diagonal, row by row."""
    return np.tril_indices(k, -1)


def root_of(log_sd: Array, angles: Array) -> Root:
    r"""The root of the covariance with these standard deviations and partial correlations.

    .. math:: L_{ji} = s_j\, p_{ji} \prod_{m<i} \sqrt{1 - p_{jm}^2}, \qquad p_{jj} = 1, \quad
        p_{ji} = \tanh w_{ji}

    Args:
        log_sd: ``(C, k)``.
        angles: ``(C, k (k - 1) / 2)``, w row by row; or ``(C, 0)`` for terms without correlation.

    References:
        Lewandowski, Kurowicka and Joe (2009), Generating random correlation matrices based on vines
        and extended onion method.
    """
    chains, k = log_sd.shape
    partial, lower = np.zeros((chains, k, k)), np.zeros((chains, k, k))
    if not angles.shape[1]:
        lower[:, range(k), range(k)] = np.exp(log_sd)
        return Root(lower, partial)
    partial[:, *below(k)] = np.tanh(angles)
    if k == 2:
        sd, p = np.exp(log_sd), partial[:, 1, 0]
        lower[:, 0, 0], lower[:, 1, 0] = sd[:, 0], sd[:, 1] * p
        lower[:, 1, 1] = sd[:, 1] * np.sqrt(1 - p * p)
        return Root(lower, partial)
    rest = np.cumprod(np.sqrt(1 - partial**2), axis=2)  # what each column leaves
    before = np.concatenate([np.ones((chains, k, 1)), rest[:, :, :-1]], 2)
    factor = partial.copy()
    factor[:, range(k), range(k)] = 1
    return Root(np.tril(np.exp(log_sd)[:, :, None] * factor * before), partial)


def slopes_of(root: Root, slope: Array, has_angles: bool) -> tuple[Array, Array]:
    """Slopes by the log standard deviations ``(C, k)`` and angles, from those by L."""
    own = root.lower * slope
    by_sd = own.sum(2)
    if not has_angles:
        return by_sd, np.zeros((len(own), 0))
    k = own.shape[1]
    if k == 2:
        p, sd = root.partial[:, 1, 0], np.sqrt((root.lower[:, 1] ** 2).sum(1))
        rest = np.sqrt(1 - p * p)
        angle = sd * rest * (slope[:, 1, 0] * rest - slope[:, 1, 1] * p)
        return by_sd, angle[:, None]
    # d L_ji / d w_jm is L_ji (1 - p^2) / p at i = m, and -p L_ji at i > m.
    later = np.concatenate(
        [np.cumsum(own[:, :, ::-1], 2)[:, :, ::-1], np.zeros((len(own), k, 1))], 2
    )
    rows, columns = below(k)
    p = root.partial[:, rows, columns]
    at = slope[:, rows, columns] * _unscaled(root, rows, columns) * (1 - p**2)
    return by_sd, at - p * later[:, rows, columns + 1]


def _unscaled(root: Root, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Array:
    """L_ji / p_ji, which is finite where p_ji is 0."""
    rest = np.cumprod(np.sqrt(1 - root.partial**2), axis=2)
    before = np.concatenate([np.ones_like(rest[:, :, :1]), rest[:, :, :-1]], 2)
    sd = np.sqrt((root.lower**2).sum(2))
    found: Array = (sd[:, :, None] * before)[:, rows, columns]
    return found


def lkj(root: Root, eta: float, jacobian: bool) -> tuple[Array, Array]:
    r"""The log density of correlations under LKJ, by the angles, and its slope.

    .. math:: \log p(w) = \sum_{j > i} \big(\eta + \tfrac{k - 2 - i}{2} - 1 + [\text{jacobian}]\big)
        \log(1 - p_{ji}^2), \qquad i = 0, 1, \ldots

    Returns:
        ``(C,)`` and ``(C, k (k - 1) / 2)``.
    """
    k = root.partial.shape[1]
    rows, columns = below(k)
    p = root.partial[:, rows, columns]
    power = eta + (k - 2 - columns) / 2 - (0 if jacobian else 1)
    return (power * np.log1p(-(p**2))).sum(1), -2 * power * p
