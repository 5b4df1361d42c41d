"""Tails of the normal and the inverse Gaussian distribution on the log scale."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.special import erfcx

from ansatz.likelihoods.special.gamma import HALF_LOG_2PI
from ansatz.likelihoods.special.quadrature import gauss
from ansatz.likelihoods.special.tensors import none, wide

_FAR = 20.0  # standard deviations, from where nine terms of the series are exact to rounding


def log_ndtr(z: Tensor) -> Tensor:
    r"""log Phi(z), differentiable any number of times at every z.

    .. math:: \log \Phi(-u) = -\frac{u^2}{2} - \log u - \frac12 \log 2\pi
              + \log\left(1 - \frac{1}{u^2} + \frac{1 \cdot 3}{u^4} - \dots\right)

    for u > 20. There torch's own has a gradient exp(-z^2/2 - log Phi(z)) in which the digits
    cancel: at z = -1000 it is wrong by some percent in float32, and in double precision at -1e8 by
    a factor of two, where the true one is -z.

    References:
        Abramowitz and Stegun (1964), Handbook of Mathematical Functions, 26.2.12.
    """
    far = z < -_FAR
    if none(far):
        return torch.special.log_ndtr(z)
    near = torch.special.log_ndtr(torch.where(far, 0.0, z))
    u = torch.where(far, -z, _FAR)
    inverse = 1 / u**2
    series = torch.zeros_like(u)
    for k in range(9, 0, -1):  # -1/u^2 (1 - 3/u^2 (1 - 5/u^2 (...)))
        series = -(2 * k - 1) * inverse * (1 + series)
    tail = -0.5 * u**2 - u.log() - 0.5 * math.log(2 * math.pi) + torch.log1p(series)
    return torch.where(far, tail, near)


_LOG_2 = math.log(2)


def log_inverse_gaussian_cdf(d: Tensor, c: Tensor) -> Tensor:
    r"""log P(Y <= y) with d = log(y / mu) and c = log(phi mu), phi mu^3 the variance.

    .. math:: F = \Phi(a) + e^{2 e^{-c}} \Phi(-b)
              = \Phi(a) + \tfrac12 e^{-a^2/2} \operatorname{erfcx}(b / \sqrt2), \qquad
              a, b = e^{-c/2} (e^{d/2} \mp e^{-d/2})

    The second form, by :math:`b^2 - a^2 = 4 e^{-c}`, has no exponential that overflows. Computed in
    double precision, accurate to some thirteen digits in both tails.

    References:
        Shuster (1968), On the inverse Gaussian distribution function.
        Giner and Smyth (2016), statmod: probability calculations for the inverse Gaussian
        distribution. https://arxiv.org/abs/1603.06687
    """
    return _LogTail.apply(*torch.broadcast_tensors(d, c), False)


def log_inverse_gaussian_survival(d: Tensor, c: Tensor) -> Tensor:
    """log P(Y > y); see :func:`log_inverse_gaussian_cdf`.

    The difference of two nearly equal terms far out is an integral of their derivative there.
    """
    return _LogTail.apply(*torch.broadcast_tensors(d, c), True)


class _LogTail(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, d: Tensor, c: Tensor, upper: bool) -> Tensor:
        ctx.upper = upper
        ctx.save_for_backward(d, c)
        if d.is_meta:
            return torch.empty_like(d)
        return log_tails(*wide(d, c))[int(upper)].to(d)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        d, c = wide(*ctx.saved_tensors)
        sign = -1 if ctx.upper else 1
        value = _LogTail.apply(d, c, ctx.upper)  # so that there is a second derivative
        a, b = _ends(d, c)
        # y f(y), and the second term of the cdf, both over the tail
        density = (-a * a - 0.5 * (c + d) - HALF_LOG_2PI - value).exp()
        second = (-a * a + erfcx(b).log() - _LOG_2 - value).exp()
        slope_d, slope_c = sign * density, sign * (density - 2 * (-c).exp() * second)
        return grad * slope_d.to(grad), grad * slope_c.to(grad), None


def _ends(d: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """a / sqrt 2 and b / sqrt 2."""
    root = math.sqrt(2) * (-c / 2).exp()
    return root * torch.sinh(d / 2), root * torch.cosh(d / 2)


def log_tails(d: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Log cdf and log survival of double-precision tensors, without a gradient."""
    a, b = _ends(d, c)
    left = a < -1
    # On the left the cdf is e^-a^2 (erfcx(-a) + erfcx(b)) / 2, both terms positive; elsewhere the
    # survival is e^-a^2 (erfcx(a) - erfcx(b)) / 2. The other tail is at least 0.07 then.
    first, second = erfcx(torch.where(left, -a, a)), erfcx(b)
    total = torch.where(left, first + second, first - second)
    gap = math.sqrt(2) * (-(c + d) / 2).exp()  # b - a
    close = ~left & (gap < 0.1 * a.clamp(min=1))
    if close.any():
        total = total.masked_scatter(close, _difference(a[close], gap[close]))
    near = total.log() - a * a - _LOG_2
    other = torch.log1p(-near.exp())
    return torch.where(left, near, other), torch.where(left, other, near)


def _difference(a: Tensor, gap: Tensor) -> Tensor:
    """erfcx(a) - erfcx(a + gap), as the integral of minus its derivative."""
    nodes, weights = gauss("legendre", 8, a)
    x = a.unsqueeze(-1) + gap.unsqueeze(-1) * nodes
    return gap * (weights * _descent(x)).sum(-1)


def _descent(x: Tensor) -> Tensor:
    """-d erfcx / dx = 2 / sqrt(pi) - 2 x erfcx(x), by its asymptotic series where it cancels."""
    u = 1 / (2 * x.clamp(min=10.0) ** 2)
    series = torch.zeros_like(u)
    for k in range(14, 0, -1):  # sum over k >= 1 of (-1)^(k-1) (2k - 1)!! u^k; 1e-16 at x = 10
        series = (2 * k - 1) * u * (1 - series)
    return 2 * torch.where(
        x > 10, series / math.sqrt(math.pi), 1 / math.sqrt(math.pi) - x * erfcx(x)
    )
