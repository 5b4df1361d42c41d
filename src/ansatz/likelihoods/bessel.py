"""What the modified Bessel functions say about directions, without overflow."""

import torch
from torch import Tensor


def log_bessel_series(square: Tensor) -> Tensor:
    r"""log I0(k) as a function of :math:`k^2`, to the last digit for k <= 1.

    .. math:: I_0(k) = \sum_n \frac{(k^2/4)^n}{(n!)^2}

    Smooth at 0 with all its derivatives, where the root of k^2 has none.
    """
    quarter = square / 4
    total = torch.zeros_like(square)
    for n in range(10, 0, -1):  # I0 - 1 = q (1 + q/4 (1 + q/9 (1 + ...)))
        total = quarter / n**2 * (1 + total)
    return torch.log1p(total)


def resultant(k: Tensor) -> Tensor:
    """A(k) = I1(k) / I0(k), the mean resultant length of von Mises with concentration k."""
    return torch.special.i1e(k) / torch.special.i0e(k)


def resultant_gap(k: Tensor) -> Tensor:
    """1 - A(k), the circular variance; by its asymptotic series where the two cancel.

    References:
        Mardia and Jupp (2000), Directional Statistics, eq. A.6.
    """
    large = k > 1000
    u = 1 / torch.where(large, k, 1000.0)
    series = u * (1 / 2 + u * (1 / 8 + u * (1 / 8 + u * (25 / 128 + u * 13 / 32))))
    rest = 1 - resultant(torch.where(large, 0.0, k))
    return torch.where(large, series, rest)


def concentration(gap: Tensor) -> Tensor:
    """The k with 1 - A(k) = ``gap``, for a gap in (0, 1]: Newton's method in double precision."""
    gap = gap.double()
    r = 1 - gap
    # Best and Fisher's start by pieces is within some per cent; Newton in log k does the rest.
    k = torch.where(r < 0.53, 2 * r + r**3 + 5 * r**5 / 6, -0.4 + 1.39 * r + 0.43 / gap)
    k = torch.where(r < 0.85, k, 1 / (2 * gap) + 0.25).clamp(min=1e-300)
    for _ in range(12):
        value = resultant_gap(k)
        slope = _gap_slope(k, value)
        k = k * ((value - gap) / (-slope * k)).clamp(-1, 1).exp()
    return torch.where(gap >= 1, 0.0, k)


def _gap_slope(k: Tensor, gap: Tensor) -> Tensor:
    """d (1 - A) / dk = A / k - (1 - A^2), by its series for large k."""
    u = 1 / k.clamp(min=1000.0)
    series = -(u**2) * (1 / 2 + u * (1 / 4 + u * (3 / 8 + u * (25 / 32 + u * 65 / 32))))
    a = resultant(k)
    # A / k -> 1/2 at 0, where the quotient is 0 / 0
    ratio = torch.where(k > 1e-8, a / k.clamp(min=1e-8), 0.5)
    return torch.where(k > 1000, series, ratio - gap * (2 - gap))
