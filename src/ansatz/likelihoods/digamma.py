"""Differences of digamma functions without cancellation."""

import torch
from torch import Tensor


def digamma_gap(a: Tensor, b: Tensor) -> Tensor:
    r"""digamma(a + b) - digamma(a) for a > 0 and b >= 0, to ten digits or more.

    For a beta distribution it is minus the mean of log t. The plain difference cancels where a is
    large, or b small beside a: there by the series of log a - digamma(a), and by the midpoint rule
    of :math:`\int_a^{a+b} \psi'(t) dt`.

    References:
        Abramowitz and Stegun (1964), 6.3.5 and 6.3.18.
    """
    direct = torch.digamma(a + b) - torch.digamma(a)
    large = a > 30
    n = torch.where(large, a, 30.0)
    series = torch.log1p(b / n) + _log_minus_digamma(n) - _log_minus_digamma(n + b)
    slight = b * torch.special.polygamma(1, a + b / 2)  # off by (b / a)^2 / 4 at most
    return torch.where(large, series, torch.where(b < 1e-5 * a, slight, direct))


def _log_minus_digamma(a: Tensor) -> Tensor:
    """log a - digamma(a) for a >= 30, by its series."""
    u = 1 / a
    v = u * u
    return u / 2 + v * (1 / 12 - v * (1 / 120 - v * (1 / 252 - v / 240)))
