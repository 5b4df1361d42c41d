"""The maximum-likelihood constant of the generalised Pareto distribution."""

import math

import numpy as np
from scipy.optimize import brentq
from torch import Tensor


def fit_scale(y: Tensor, weight: Tensor, shape: float) -> float:
    """The log scale that maximises the likelihood for a known shape > -1.

    It solves 1 = (1 + xi) mean(z / (1 + xi z)) with z = y / scale, whose right side falls as the
    scale grows.

    Args:
        y: ``(N,)``, numbers >= 0, not all 0.
        weight: ``(N,)``, frequencies.
        shape: xi.
    """
    values, share, mean = _numpy(y, weight)

    def score(log_scale: float) -> float:
        z = values * math.exp(-log_scale)
        return 1 - (1 + shape) * float(share @ (z / (1 + shape * z)))

    low = math.log(-shape * values.max()) + 1e-12 if shape < 0 else -1.0
    while score(low) > 0 and low > -700:
        low -= 2.0
    high = max(low, 0.0) + 1.0
    while score(high) < 0 and high < 700:
        high += 2.0
    return math.log(mean) + brentq(score, low, high, xtol=1e-14, rtol=1e-14)


def fit_scale_and_shape(y: Tensor, weight: Tensor, least: float) -> tuple[float, float]:
    r"""Log scale and shape that maximise the likelihood over shapes >= ``least``.

    Grimshaw's reduction: with :math:`\theta = \xi/\sigma` the best shape is
    :math:`\xi(\theta) = \overline{\log(1 + \theta y)}`, and what is left is a search over one
    number: a grid finds the best bracket, Brent's method the root of the derivative there, and
    Newton's method in both numbers the last digits. Where the likelihood still rises at ``least``,
    the scale is fitted for that shape.

    Args:
        y: ``(N,)``, numbers >= 0, not all 0.
        weight: ``(N,)``, frequencies.
        least: the smallest shape, > -1.

    References:
        Grimshaw (1993), Computing maximum likelihood estimates for the generalized Pareto
        distribution. https://doi.org/10.2307/1269663
    """
    values, share, mean = _numpy(y, weight)
    every = max(1, len(values) // 20_000)  # a bracket needs no more
    order = np.argsort(values)[::-1]  # the largest stays
    few, few_share = values[order][::every], share[order][::every]
    few_share = few_share / few_share.sum()

    def shape_of(theta: float) -> float:
        return float(share @ np.log1p(theta * values))

    def slope(theta: float) -> float:
        """Of the profile log-likelihood log(theta / xi) - xi - 1."""
        xi = shape_of(theta)
        return 1 / theta - float(share @ (values / (1 + theta * values))) * (1 / xi + 1)

    def profile(theta: float) -> float:
        xi = float(few_share @ np.log1p(theta * few))
        return math.log(theta / xi) - xi if xi > least else -math.inf

    ends = -(1 - np.geomspace(1e-6, 0.98, 24)) / values.max()
    grid = np.concatenate([ends, -np.geomspace(1e-2, 1e-5, 6) / values.max()])
    grid = np.concatenate([grid, np.geomspace(1e-5, 1e6, 60)])
    best = int(np.argmax([profile(theta) for theta in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    if slope(low) > 0 > slope(high):
        theta = brentq(slope, low, high, xtol=1e-13, rtol=1e-12)
        xi = shape_of(theta)
        if xi > least:
            return _polish(values, share, math.log(xi / theta), xi, mean)
    return fit_scale(y, weight, least), least


def _numpy(y: Tensor, weight: Tensor) -> tuple[np.ndarray, np.ndarray, float]:
    """y over its mean, the weights over their sum, and the mean."""
    values, share = y.double().cpu().numpy(), weight.double().cpu().numpy()
    share = share / share.sum()
    mean = float(share @ values)
    return values / mean, share, mean


def _polish(
    z: np.ndarray, share: np.ndarray, eta: float, xi: float, mean: float
) -> tuple[float, float]:
    """A few steps of Newton's method in (log scale, xi) on the loss itself.

    With r = z / (1 + xi z) and h = log(1 + xi z) / xi: loss = eta + (1 + xi) h,
    dh/d eta = -r, dh/d xi = (r - h) / xi.
    """
    for _ in range(4 if abs(xi) > 1e-3 else 0):
        t = z * math.exp(-eta)
        r, h = t / (1 + xi * t), np.log1p(xi * t) / xi
        g = (r - h) / xi
        gradient = np.array([1 - (1 + xi) * (share @ r), share @ (h + (1 + xi) * g)])
        r_eta, r_xi = -t / (1 + xi * t) ** 2, -r * r
        g_xi = (r_xi - g) / xi - (r - h) / xi**2
        hessian = np.array(
            [
                [-(1 + xi) * (share @ r_eta), -(share @ (r + (1 + xi) * r_xi))],
                [-(share @ (r + (1 + xi) * r_xi)), share @ (2 * g + (1 + xi) * g_xi)],
            ]
        )
        if np.linalg.eigvalsh(hessian).min() <= 0:
            break
        step = np.linalg.solve(hessian, gradient)
        if np.abs(step).max() > 0.1:
            break
        eta, xi = eta - step[0], xi - step[1]
    return float(eta) + math.log(mean), float(xi)
