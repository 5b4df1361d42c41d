"""Bessel functions of directions and the tail of the von Mises distribution."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods.special.quadrature import gauss
from ansatz.likelihoods.special.roots import find_root
from ansatz.likelihoods.special.tensors import in_blocks, once_differentiable


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
    # Best and Fisher's start by ranges of r is within some per cent; Newton in log k does the rest.
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


_CUT = 40.0  # e^-40 = 4e-18
_BLOCK = 2**12  # points at once: with their nodes they stay in the cache


def log_von_mises_tail(x: Tensor, k: Tensor) -> Tensor:
    r"""log P(T > x) for an angle x in [0, pi] from the mean direction, cut opposite to it.

    .. math:: P(T > x) = \frac{1}{2\pi I_0(k)} \int_x^\pi e^{k \cos s} ds

    by Gauss-Legendre with 28 nodes up to where the integrand has fallen by e^-40, relative to its
    value at x: thirteen digits for every concentration k >= 0 and every x. The derivative in k is
    the mean of cos s over the tail less that over the circle. There is no second derivative: asking
    for it raises.

    References:
        Mardia and Jupp (2000), Directional Statistics, section 3.5.4.
    """
    return once_differentiable(_log_tail, _slopes, x, k)


def inverse_tail(log_p: Tensor, k: Tensor) -> Tensor:
    """The x in [0, pi] with P(T > x) = p, for log p of a p <= 1/2; double precision."""
    shape = log_p.shape
    log_p, k = log_p.reshape(-1), k.reshape(-1)
    p = log_p.exp()
    z = -torch.special.ndtri(p.clamp(min=1e-300))
    # In sin(x/2) the distribution is nearly normal for large k; for small k it is nearly uniform.
    peaked = 2 * torch.asin((z / (2 * k.clamp(min=1e-30).sqrt())).clamp(max=1))
    start = torch.where(k > 1, peaked, math.pi * (1 - 2 * p))

    def shortfall(x: Tensor, k: Tensor, log_p: Tensor) -> tuple[Tensor, Tensor]:
        value = _log_tail(x, k)
        return log_p - value, (_log_density(x, k) - value).exp()

    zero = torch.zeros_like(k)
    x = find_root(shortfall, zero, zero + math.pi, start, k, log_p)
    return torch.where(log_p == -math.inf, math.pi, x).reshape(shape)


def _log_tail(x: Tensor, k: Tensor) -> Tensor:
    return in_blocks(lambda *rows: _moments(*rows)[0], x, k, size=_BLOCK)


def _slopes(needed: tuple[bool, ...], x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    pair = in_blocks(lambda *rows: torch.stack(_moments(*rows), -1), x, k, size=_BLOCK)
    value, drop = pair.unbind(-1)
    # At the cut the tail is 0 and its logarithm has no slope.
    inside = value > -math.inf
    in_x = -(_log_density(x, k) - torch.where(inside, value, 0.0)).exp()
    # E[cos s | s > x] - A(k), both counted from 1 so that large k keep their digits
    in_k = resultant_gap(k) - 2 * torch.sin(x / 2) ** 2 - drop
    return torch.where(inside, in_x, 0.0), torch.where(inside, in_k, 0.0)


def _log_density(x: Tensor, k: Tensor) -> Tensor:
    return -2 * k * torch.sin(x / 2) ** 2 - (2 * math.pi * torch.special.i0e(k)).log()


def _moments(x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """log P(T > x), and E[cos x - cos T | T > x], for x and k of shape (N,)."""
    nodes, weights = gauss("legendre", 28, x)
    # cos x - cos(x + s) = cut / k, through sin^2 of the half angles
    half = torch.sin(x / 2) ** 2 + _CUT / (2 * k.clamp(min=1e-300))
    end = torch.where(half < 1, 2 * torch.asin(half.clamp(max=1).sqrt()), math.pi) - x
    end = end.clamp(min=0)
    s = end.unsqueeze(-1) * (nodes / 2)  # half the way from x
    drop = (x.unsqueeze(-1) + s).sin_().mul_(s.sin_())  # (cos x - cos(x + 2 s)) / 2
    mass = (drop * (-2 * k.unsqueeze(-1))).exp_()
    total = mass @ weights
    mean = 2 * (mass.mul_(drop) @ weights) / total
    return _log_density(x, k) + (total * end).log(), mean
