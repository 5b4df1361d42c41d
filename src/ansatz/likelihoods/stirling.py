"""What Stirling's formula leaves over, so that large gamma functions can cancel before rounding."""

import math

import torch
from torch import Tensor

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
# B_2k / (2k (2k - 1)) for k = 1..8; at a = 8 the next term is below 1e-16.
_COEFFICIENTS = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)


def stirling(a: Tensor) -> Tensor:
    r"""The correction S(a) of Stirling's formula, for a > 0.

    .. math:: \log \Gamma(a) = (a - \tfrac12) \log a - a + \tfrac12 \log 2\pi + S(a)

    :math:`S(a) \approx 1/(12a)` is small where :math:`\log\Gamma(a)` is huge: at a = 1e6 the
    latter has no correct decimal in float32.

    References:
        Abramowitz and Stegun (1964), eq. 6.1.41. Loader (2000), Fast and accurate computation of
        binomial probabilities.
    """
    large = a >= 8
    inverse = 1 / torch.where(large, a, 8.0)
    square = inverse * inverse
    series = torch.zeros_like(square)
    terms = len(_COEFFICIENTS) if a.dtype == torch.float64 else 3  # the fourth is 3e-10 at 8
    for coefficient in reversed(_COEFFICIENTS[:terms]):
        series = series * square + coefficient
    small = torch.where(large, 8.0, a)
    direct = torch.lgamma(small) - (small - 0.5) * small.log() + small - HALF_LOG_2PI
    return torch.where(large, series * inverse, direct)


def log_gamma_half(x: Tensor) -> Tensor:
    r"""log Gamma(x + 1/2) - log Gamma(x), without cancellation for large x."""
    whole = x * torch.log1p(0.5 / x) - 0.5 + 0.5 * x.log()
    return whole + stirling(x + 0.5) - stirling(x)
