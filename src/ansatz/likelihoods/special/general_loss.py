"""Barron's general loss as a function of its shape.

Legend: z = (x / c)^2 the squared residual, b = 2 - alpha, t = log(1 + z / b), w = log x.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ansatz.likelihoods.special.quadrature import gauss

_LEAST = 1e-30  # of b: log(1 + z / b) stays finite, and what it multiplies is b


def shaped_loss(z: Tensor, alpha: Tensor, b: Tensor) -> Tensor:
    r"""rho of Barron (2019) with the squared residual z = (x / c)^2, for alpha <= 2.

    .. math:: \rho = \frac{b}{\alpha} \left(\left(1 + \frac zb\right)^{\alpha/2} - 1\right),
              \qquad b = 2 - \alpha

    and its limits: z / 2 at alpha = 2, log(1 + z / 2) at 0 and 1 - e^(-z/2) at minus infinity. The
    singularities at 0 and 2 are removable; near them it is computed as

    .. math:: \frac b2\, t\, \varphi\left(\frac{\alpha t}{2}\right) \; (\alpha < 1), \qquad
              \frac1\alpha \left(z e^{-bt/2} + b (e^{-bt/2} - 1)\right) \; (\alpha \ge 1), \qquad
              \varphi(u) = \frac{e^u - 1}{u}

    with t = log(1 + z / b) and :math:`\varphi` by its series near 0: value and derivatives, also
    those in alpha, are continuous. (The derivative in alpha itself grows like log b as alpha goes
    to 2; times b, as for an alpha = 2 sigmoid(a) that is learned through a, it vanishes.)

    References:
        Barron (2019), A general and adaptive robust loss function, eq. 8 and appendix B.
        https://arxiv.org/abs/1701.03077
    """
    welsch = alpha == -math.inf
    alpha, b = torch.where(welsch, 0.0, alpha), torch.where(welsch, 2.0, b).clamp(min=_LEAST)
    near = z < b
    t = torch.where(
        near,
        torch.log1p(torch.where(near, z, 0.0) / b),
        (b + torch.where(near, b, z)).log() - b.log(),
    )
    if alpha.device.type == "cpu" and bool((alpha >= 1).all()):  # a look is cheaper than both
        return _upper(z, t, alpha, b)
    low = b / 2 * t * _phi(torch.where(alpha < 1, alpha, 0.0) * t / 2)
    value = torch.where(alpha < 1, low, _upper(z, t, torch.where(alpha < 1, 1.0, alpha), b))
    return torch.where(welsch, -torch.expm1(-z / 2), value)


def _upper(z: Tensor, t: Tensor, alpha: Tensor, b: Tensor) -> Tensor:
    """For alpha >= 1."""
    shrink = -b * t / 2
    return (z * shrink.exp() + b * torch.expm1(shrink)) / alpha


def _phi(u: Tensor) -> Tensor:
    """(e^u - 1) / u, by its series near 0 so that the derivatives do not cancel."""
    near = u.abs() < 0.5
    x = torch.where(near, u, 0.0)
    series = torch.ones_like(x)
    for n in range(14, 1, -1):  # sum of x^n / (n + 1)!; the last is below 1e-17
        series = 1 + x / n * series
    far = torch.where(near, 1.0, u)
    return torch.where(near, series, torch.expm1(far) / far)


def log_partition(alpha: Tensor, b: Tensor) -> Tensor:
    r"""log Z, the logarithm of the integral of e^-rho over the real line, for 0 <= alpha <= 2.

    .. math:: Z(\alpha) = \int_{-\infty}^\infty e^{-\rho(x, \alpha, 1)} dx

    Z(2) = sqrt(2 pi), Z(1) = 2 e K_1(1), Z(0) = pi sqrt(2); below 0 it is infinite. By the
    trapezoidal rule in w = log x, where the branch points at x = +-i sqrt(b) are pi/2 away from the
    real line for every b, mapped by a sinh that shortens the tails: good to 14 digits, and its
    derivatives are those of the sum.
    """
    w, log_weight = _line(alpha)
    exponent = w + log_weight - shaped_loss((2 * w).exp(), alpha.unsqueeze(-1), b.unsqueeze(-1))
    return math.log(2) + torch.logsumexp(exponent, -1)


def _line(like: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes w = 1.5 sinh(s) in [-41, 41], and the log of h dw/ds."""
    h = 0.05
    s = torch.arange(-80, 81, dtype=like.dtype, device=like.device) * h
    return 1.5 * torch.sinh(s), (1.5 * h * torch.cosh(s)).log()


def log_tail(x: Tensor, alpha: Tensor, b: Tensor, moment: int = 0) -> Tensor:
    """The log of the integral of x^moment e^-rho from x >= 1 to infinity, in double precision.

    By Gauss-Legendre in w - log x; in w the integrand is log-concave, which bounds where it has
    fallen by e^-40. Good to twelve digits of the logarithm.
    """
    nodes, weights = gauss("legendre", 64, x)
    log_x = x.log()
    with torch.no_grad():
        v = _fall(log_x, b, moment + 1).unsqueeze(-1)
    w = log_x.unsqueeze(-1) + v * nodes
    # e^2w must not overflow; only moments of a distribution with nearly no alpha reach so far.
    rho = shaped_loss((2 * w).clamp(max=700.0).exp(), alpha.unsqueeze(-1), b.unsqueeze(-1))
    return torch.logsumexp((moment + 1) * w - rho + (v * weights).log(), -1)


_PROBES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0)


def _fall(log_x: Tensor, b: Tensor, power: int) -> Tensor:
    """A v > 0, not much too large, where g(w) = power w - rho(e^w) has fallen by 40 from log x.

    The slope k of rho in w rises, so that from d on g falls at the rate k(log x + d) - power or
    faster, and before it has risen by power d at most: v <= d + (40 + power d) / (k - power).
    """
    b = b.clamp(min=_LEAST)
    v = torch.full_like(log_x + b, 350.0)
    for d in _PROBES if power == 1 else (*_PROBES, 40.0, 80.0, 160.0, 320.0):
        w = 2 * (log_x + d)
        slope = (w - b / 2 * softplus(w - b.log())).exp() - power
        bound = d + (40 + power * d) / slope.clamp(min=1e-3)
        v = torch.where(slope > 1e-3, torch.minimum(v, bound), v)
    return v


def log_centre(x: Tensor, alpha: Tensor, b: Tensor, moment: int = 0) -> Tensor:
    """The log of the integral of x^moment e^-rho from 0 to x <= 1, by Gauss-Legendre in w."""
    nodes, weights = gauss("legendre", 48, x)
    w = x.log().unsqueeze(-1) - 42 * nodes
    exponent = (moment + 1) * w - shaped_loss((2 * w).exp(), alpha.unsqueeze(-1), b.unsqueeze(-1))
    return torch.logsumexp(exponent + (42 * weights).log(), -1)


def mean_loss(alpha: Tensor, b: Tensor) -> Tensor:
    """E[rho] under the density e^-rho / Z, by the same rule as :func:`log_partition`."""
    w, log_weight = _line(alpha)
    rho = shaped_loss((2 * w).exp(), alpha.unsqueeze(-1), b.unsqueeze(-1))
    share = torch.softmax(w + log_weight - rho, -1)
    return (share * rho.clamp(max=1e4)).sum(-1)  # where a share is 0, rho may be infinite
