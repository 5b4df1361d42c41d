"""Logarithms and exponentials that neither overflow nor spoil gradients."""

import math

import torch
from torch import Tensor

LIMIT = 50.0  # e^50 = 5e21: beyond any mean, and its products stay far below float32's 3e38


def soft_cap(x: Tensor, limit: float = LIMIT) -> Tensor:
    r"""x up to ``limit``, and from there on a logarithm that joins it with slope 1.

    .. math:: c(x) = \min(x, L) + \log(1 + \max(x - L, 0))

    so that :math:`e^{c(x)}` is :math:`e^x` up to L and its tangent :math:`e^L (1 + x - L)` beyond:
    finite, and with a gradient that still pulls back, where a clamp would have none.
    """
    return x.clamp(max=limit) + torch.log1p(torch.relu(x - limit))


def soft_clamp(x: Tensor, limit: float = LIMIT) -> Tensor:
    """:func:`soft_cap` on both sides: x within +-``limit``, logarithmic growth beyond."""
    return -soft_cap(-soft_cap(x, limit), limit)


def safe_log(y: Tensor) -> Tensor:
    """log y for 0 < y < infinity, 0 elsewhere: its gradient is finite everywhere; nan stays nan."""
    return torch.where((y <= 0) | (y == math.inf), 1.0, y).log()


def continued(value: Tensor, y: Tensor, below: float, above: float) -> Tensor:
    """``value`` for 0 < y < infinity, ``below`` for y <= 0 and ``above`` at infinity."""
    return torch.where(y <= 0, below, torch.where(y == math.inf, above, value))


def log_complement(log_h: Tensor) -> Tensor:
    r"""log(1 - e^-h) of a cumulative hazard h > 0, given by its logarithm.

    .. math:: \log(1 - e^{-h}) = \log h + \log\frac{1 - e^{-h}}{h}

    The first form loses its digits where h is large, the second is exact where h is so small that
    1 - e^-h rounds to h, even where h itself underflows. Twice differentiable.

    References:
        Maechler (2012), Accurately computing log(1 - exp(-|a|)).
    """
    small = log_h < 0
    least = math.log(torch.finfo(log_h.dtype).tiny) / 2  # below, the ratio is 1 to all digits
    h = torch.where(small, log_h, 0.0).clamp(min=least).exp()
    below = log_h + (-torch.expm1(-h) / h).log()
    # e^-e^10 is 0 already; an infinite h would have no gradient
    above = torch.log1p(-(-torch.where(small, 0.0, log_h).clamp(max=10).exp()).exp())
    return torch.where(small, below, above)


# log(sinh(x) / x) = x^2/6 - x^4/180 + ...: coefficients 2^(2n-1) B_2n / (n (2n)!) for n = 1..6
_LOG_SINHC = (1 / 6, -1 / 180, 1 / 2835, -1 / 37800, 1 / 467775, -691 / 3831077250)


def log_positive(log_rate: Tensor) -> Tensor:
    r"""log P(Y > 0) = log(1 - e^-r) of a Poisson distribution with rate r, from log r.

    .. math:: \log(1 - e^{-r}) = \log r - \frac r2 + \log\frac{\sinh(r/2)}{r/2}

    By that form, whose last term is a short series, for r < 1/2: exact where r itself underflows,
    and as often differentiable as one likes.
    """
    rate = log_rate.exp()
    small = rate < 0.5
    square = torch.where(small, rate, 0.0) ** 2 / 4
    series = torch.zeros_like(square)
    for coefficient in reversed(_LOG_SINHC):
        series = (series + coefficient) * square
    low = log_rate - torch.where(small, rate, 0.0) / 2 + series
    high = torch.log1p(-(-torch.where(small, 1.0, rate)).exp())
    return torch.where(small, low, high)


def positive_rate(mean: Tensor) -> Tensor:
    r"""The rate r whose positive counts have the given mean, the root of r / (1 - e^-r) = mean.

    The left side is convex and rises in r, so that Newton's method started to the right of the root
    (r is below 2 (mean - 1) and below the mean) comes down to it without overshooting. A mean of 1
    or less has the root 0.
    """
    above = (mean - 1).clamp(min=0)
    rate = torch.minimum(2 * above, mean)
    for _ in range(12):
        safe = torch.where(rate > 0, rate, 1.0)
        excess, slope = _excess(safe)
        rate = torch.where(rate > 0, (safe - (excess - above) / slope).clamp(min=0), 0.0)
    return rate


def _excess(rate: Tensor) -> tuple[Tensor, Tensor]:
    """r / (1 - e^-r) - 1 and its derivative, by series where they cancel."""
    r = rate.clamp(max=0.1)  # r/2 + r^2/12 - r^4/720 + r^6/30240 - ...
    s = r * r
    low = r / 2 + s * (1 / 12 - s * (1 / 720 - s * (1 / 30240 - s / 1209600)))
    low_slope = 0.5 + r * (1 / 6 - s * (1 / 180 - s * (1 / 5040 - s / 151200)))
    positive = -torch.expm1(-rate)
    high = rate / positive - 1
    high_slope = (positive - rate * (-rate).exp()) / positive**2
    small = rate < 0.1
    return torch.where(small, low, high), torch.where(small, low_slope, high_slope)
