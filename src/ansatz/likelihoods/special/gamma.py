"""Gamma functions whose large terms cancel, and both tails of the gamma distribution."""

import math
from functools import partial
from typing import Any

import torch
from scipy import special
from torch import Tensor

from ansatz.likelihoods.special.quadrature import gauss
from ansatz.likelihoods.special.tensors import elementwise, in_blocks, once_differentiable

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
    series = torch.log1p(b / n) + log_minus_digamma(n) - log_minus_digamma(n + b)
    slight = b * torch.special.polygamma(1, a + b / 2)  # off by (b / a)^2 / 4 at most
    return torch.where(large, series, torch.where(b < 1e-5 * a, slight, direct))


def log_minus_digamma(a: Tensor) -> Tensor:
    """log a - digamma(a) for a >= 30, by its series."""
    u = 1 / a
    v = u * u
    return u / 2 + v * (1 / 12 - v * (1 / 120 - v * (1 / 252 - v / 240)))


_CUT = 40.0  # e^-40 = 4e-18: an integrand below it adds nothing in double precision


def log_gammainc(a: Tensor, x: Tensor) -> Tensor:
    r"""log P(a, x), the regularised lower incomplete gamma function, for a > 0 and x >= 0.

    .. math:: P(a, x) = \frac{1}{\Gamma(a)} \int_0^x t^{a-1} e^{-t} dt

    Accurate where P itself underflows. The derivative in x is the density over P; the one in a
    is a mean of log t over the tail, by series for x <= 1 and by quadrature beyond; both are good
    to some ten digits. There is no second derivative: asking for it raises.

    References:
        Abramowitz and Stegun (1964), 6.5.1 and 6.5.29.
    """
    return once_differentiable(partial(_value, False), partial(_slopes, False), x, a)


def log_gammaincc(a: Tensor, x: Tensor) -> Tensor:
    """log Q(a, x) = log(1 - P(a, x)); see :func:`log_gammainc`."""
    return once_differentiable(partial(_value, True), partial(_slopes, True), x, a)


def _value(upper: bool, x: Tensor, a: Tensor) -> Tensor:
    return _log_tail(a, x, upper)


def _slopes(upper: bool, needed: tuple[bool, ...], x: Tensor, a: Tensor) -> tuple[Any, Any]:
    inside = (x > 0) & x.isfinite()
    safe = torch.where(inside, x, torch.ones_like(x))
    value = _log_tail(a, safe, upper)
    in_x = in_a = None
    if needed[0]:
        slope = (_log_weight(a, safe) - safe.log() - value).exp()
        in_x = torch.where(inside, -slope if upper else slope, 0)
    if needed[1]:
        in_a = torch.where(inside, _slope_in_shape(a, safe, value, upper), 0)
    return in_x, in_a


def _log_weight(a: Tensor, x: Tensor) -> Tensor:
    """log(x^a e^-x / Gamma(a)), its large terms cancelled by hand."""
    m = (x - a) / a
    near = m.abs() < 0.5
    close = torch.where(near, m, 0)
    main = torch.where(near, a * (torch.log1p(close) - close), a * (x.log() - a.log()) - (x - a))
    return main + 0.5 * a.log() - HALF_LOG_2PI - stirling(a)


def _log_tail(a: Tensor, x: Tensor, upper: bool) -> Tensor:
    # SciPy's, as torch's own has only nine digits around a = x.
    this, other = special.gammainc, special.gammaincc
    if upper:
        this, other = other, this
    value = elementwise(this, a, x)
    log_value = value.log()
    most = value > 0.8  # towards 1 the digits are in the other tail
    if most.any():
        rest = elementwise(other, a[most], x[most])
        log_value = log_value.masked_scatter(most, torch.log1p(-rest))
    far = (value < 1e-290) & (x > 0) & x.isfinite()
    if far.any():
        log_value = log_value.masked_scatter(far, _log_far_tail(a[far], x[far], upper))
    return log_value


def _log_far_tail(a: Tensor, x: Tensor, upper: bool) -> Tensor:
    """The tail beyond some 37 standard deviations, where t = x e^(-+s) makes it nearly e^-u.

    P = weight * integral of exp(-(a - x) s - x (s - 1 + e^-s)) over s > 0, and u = (a - x) s;
    Q = weight * integral of exp(-(x - a) s - x (e^s - 1 - s)), and u = (x - a) s.
    """
    nodes, weights = gauss("laguerre", 40, x)
    rate = (x - a).abs()
    s = nodes / rate.unsqueeze(-1)
    bend = torch.expm1(s) - s if upper else s + torch.expm1(-s)
    integral = (weights * (-x.unsqueeze(-1) * bend).exp()).sum(-1)
    return _log_weight(a, x) + integral.log() - rate.log()


def _slope_in_shape(a: Tensor, x: Tensor, value: Tensor, upper: bool) -> Tensor:
    """d log(tail) / da, computed in the tail where no digits cancel."""
    by_series, by_lower = x <= 1, (x > 1) & (x < a)
    slope = torch.empty_like(x)
    from_lower = by_series | by_lower  # the others come from the upper tail
    slope[by_series] = _series_slope(a[by_series], x[by_series])
    slope[by_lower] = _quadrature_slope(a[by_lower], x[by_lower], upper=False)
    slope[~from_lower] = _quadrature_slope(a[~from_lower], x[~from_lower], upper=True)
    mine = ~from_lower if upper else from_lower
    rest = _log_tail(a, x, not upper)
    return torch.where(mine, slope, -slope * (rest - value).exp())


def _series_slope(a: Tensor, x: Tensor) -> Tensor:
    """d log P / da from P = x^a / Gamma(a) * sum (-x)^n / (n! (a + n)), for x <= 1."""
    term, total, moment = torch.ones_like(x), torch.zeros_like(x), torch.zeros_like(x)
    for n in range(20):
        total, moment = total + term / (a + n), moment + term / (a + n) ** 2
        term = -term * x / (n + 1)
    return x.log() - torch.digamma(a) - moment / total


def _quadrature_slope(a: Tensor, x: Tensor, upper: bool) -> Tensor:
    """d log(tail) / da = log x - digamma(a) +- E[s], t = x e^(+-s), by Gauss-Legendre."""
    mean = in_blocks(lambda a, x: _mean_distance(a, x, upper), a, x)
    return x.log() - torch.digamma(a) + (mean if upper else -mean)


def _mean_distance(a: Tensor, x: Tensor, upper: bool) -> Tensor:
    """E[s] over a tail."""
    nodes, weights = gauss("legendre", 100, x)
    rate = (x - a).abs()
    if upper:  # rate * s + x s^2 / 2 >= cut, and x (e^s - 1) >= cut + a s
        end = _positive_root(x / 2, rate, torch.full_like(x, _CUT))
        end = torch.minimum(end, torch.log1p((_CUT + a * end) / x))
    else:  # s - 1 + e^-s >= (s^2 / 2) / (1 + s / 3)
        end = _positive_root(rate / 3 + x / 2, rate - _CUT / 3, torch.full_like(x, _CUT))
    s = end.unsqueeze(-1) * nodes
    bend = torch.expm1(s) - s if upper else s + torch.expm1(-s)
    density = weights * (-rate.unsqueeze(-1) * s - x.unsqueeze(-1) * bend).exp()
    return (density * s).sum(-1) / density.sum(-1)


def _positive_root(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The s > 0 with a s^2 + b s = c, in the form that does not cancel."""
    root = (b**2 + 4 * a * c).sqrt()
    return torch.where(b > 0, 2 * c / (b + root), (root - b) / (2 * a))
