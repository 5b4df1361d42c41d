"""The density of the compound Poisson-gamma distribution: its series and its deviance."""

import math
from typing import Any

import torch
from torch import Tensor

from ansatz.likelihoods.special.gamma import stirling
from ansatz.likelihoods.special.logarithms import soft_cap
from ansatz.likelihoods.special.tensors import refuse_second_derivative, wide

_NODES = 128  # terms at most; of more than these a sample is summed
_BLOCK = 2**15  # terms at a time: few calls for a batch, little memory for a million outcomes
_ROWS = 4096  # outcomes at a time
_CEILING = math.log(1e8)  # of log rate: beyond, the normal limit is exact to 1e-9


def log_series(log_rate: Tensor, alpha: Tensor) -> Tensor:
    r"""log(y p(y)) of a compound Poisson-gamma distribution whose mean is y itself.

    .. math:: C(\ell, \alpha) = \log \sum_{j \ge 1} \mathrm{Po}(j; \lambda)\,
              \frac{x^{j\alpha} e^{-x}}{\Gamma(j\alpha)}, \qquad \lambda = e^\ell,\;
              x = \alpha\lambda

    j gamma variables of shape alpha add up to y. With Stirling's formula for both factors
    everything large cancels by hand: with :math:`d = \log(\lambda / j)` a term is

    .. math:: \frac{\sqrt\alpha}{2\pi} \exp\left(-(1 + \alpha)\, j\, (e^d - 1 - d)
              - S(j) - S(j\alpha)\right)

    S being Stirling's correction. The terms are a bell around :math:`\lambda` with variance
    :math:`\lambda/(1 + \alpha)`; nine standard deviations on either side are summed. Where those
    are more than 128 terms, the sum is taken in steps of several: a sum of a smooth bell equals
    its integral to all digits, and so do both their trapezoidal rules. Computed in double
    precision; two derivatives, asking for a third raises.

    References:
        Dunn and Smyth (2005), Series evaluation of Tweedie exponential dispersion model densities.
        https://doi.org/10.1007/s11222-005-4070-y
    """
    return _LogSeries.apply(*torch.broadcast_tensors(log_rate, alpha))


class _LogSeries(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_rate: Tensor, alpha: Tensor) -> Tensor:
        if log_rate.is_meta:
            found = [torch.empty_like(log_rate)] * 3
        else:
            order = int(any(ctx.needs_input_grad))
            found = [m.to(log_rate) for m in _moments(order, *wide(log_rate, alpha))]
        ctx.save_for_backward(log_rate, alpha, *found[1:])
        return found[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        log_rate, alpha, *slopes = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative will be asked for
            slopes = _Slopes.apply(log_rate, alpha)
        return grad * slopes[0], grad * slopes[1]


class _Slopes(torch.autograd.Function):
    """dC / d log rate and dC / d alpha."""

    @staticmethod
    def forward(ctx: Any, log_rate: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(log_rate, alpha)
        if log_rate.is_meta:
            return torch.empty_like(log_rate), torch.empty_like(alpha)
        _, by_rate, by_alpha = _moments(1, *wide(log_rate, alpha))
        return by_rate.to(log_rate), by_alpha.to(alpha)

    @staticmethod
    def backward(ctx: Any, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        refuse_second_derivative()
        if first.is_meta:
            return torch.empty_like(first), torch.empty_like(second)
        *_, rr, ra, aa = (m.to(first) for m in _moments(2, *wide(*ctx.saved_tensors)))
        return first * rr + second * ra, first * ra + second * aa


def _moments(order: int, log_rate: Tensor, alpha: Tensor) -> list[Tensor]:
    """C, with order 1 its two derivatives too, with order 2 the three second ones too.

    With t_j the log of a term, the derivatives of log sum e^t are means, variances and covariances
    of the derivatives of t under the weights of the terms.
    """
    if not log_rate.numel():
        return [torch.zeros_like(log_rate)] * (1, 3, 6)[order]
    if log_rate.numel() > _ROWS:  # those with few terms need not wait for the others
        order_of = torch.argsort(log_rate.reshape(-1))
        pairs = zip(*(v.reshape(-1)[order_of].split(_ROWS) for v in (log_rate, alpha)), strict=True)
        blocks = zip(*(_moments(order, *pair) for pair in pairs), strict=True)
        back = torch.argsort(order_of)
        return [torch.cat(block)[back].reshape(log_rate.shape) for block in blocks]
    excess = (log_rate - _CEILING).clamp(min=0)
    log_rate = log_rate - excess
    capped = excess > 0
    rate = log_rate.exp()
    sd = (rate / (1 + alpha)).sqrt()
    low = (rate - 9 * sd).floor().clamp(min=1)
    width = (rate + 9 * sd + 10).ceil() - low
    count = int(width.max().clamp(max=_NODES - 1)) + 1
    step = (width / (_NODES - 1)).clamp(min=1)
    peak = _term(torch.maximum(rate, low), log_rate, rate, alpha)
    total = torch.zeros_like(rate)
    sums = [torch.zeros_like(rate) for _ in range((0, 2, 5)[order])]
    for steps in torch.arange(count, dtype=rate.dtype).split(max(1, _BLOCK // rate.numel())):
        j = low + step * steps.reshape(-1, *(1,) * rate.ndim)
        weight = (_term(j, log_rate, rate, alpha) - peak).exp()
        total = total + weight.sum(0)
        if order:
            r = (1 + alpha) * (j - rate)  # dt / d log rate
            a = -_bell(j, log_rate, rate) - j * _stirling_slope(j * alpha)
            parts = [r, a]
            if order == 2:
                parts += [r * r, r * a + (j - rate), a * a - j * j * _stirling_bend(j * alpha)]
            sums = [s + (weight * part).sum(0) for s, part in zip(sums, parts, strict=True)]
    value = (total * step).log() + peak + 0.5 * alpha.log() - math.log(2 * math.pi)
    found = [value + excess / 2]
    if order:
        mean_r, mean_a = sums[0] / total, sums[1] / total
        # Beyond the ceiling C = log(alpha rate / (1 + alpha) / 2 pi) / 2.
        found += [torch.where(capped, 0.5, mean_r), mean_a + 0.5 / alpha]
    if order == 2:
        rr = sums[2] / total - mean_r**2 - (1 + alpha) * rate
        ra = sums[3] / total - mean_r * mean_a
        aa = sums[4] / total - mean_a**2 - 0.5 / alpha**2
        found += [torch.where(capped, 0, rr), torch.where(capped, 0, ra), aa]
    return found


def _bell(j: Tensor, log_rate: Tensor, rate: Tensor) -> Tensor:
    """j (e^d - 1 - d) with d = log(rate / j), which two large logarithms would blur."""
    u = j - rate
    large = rate > 1
    d = torch.where(large, -torch.log1p(u / torch.where(large, rate, 1.0)), log_rate - j.log())
    return -u - j * d


def _term(j: Tensor, log_rate: Tensor, rate: Tensor, alpha: Tensor) -> Tensor:
    return -(1 + alpha) * _bell(j, log_rate, rate) - stirling(j) - stirling(j * alpha)


def _stirling_slope(a: Tensor) -> Tensor:
    """S'(a) = digamma(a) - log a + 1 / (2a)."""
    u = 1 / a.clamp(min=20.0) ** 2
    series = -u * (1 / 12 - u * (1 / 120 - u * (1 / 252 - u * (1 / 240 - u / 132))))
    return torch.where(a > 20, series, torch.digamma(a) - a.log() + 0.5 / a)


def _stirling_bend(a: Tensor) -> Tensor:
    """S''(a) = trigamma(a) - 1 / a - 1 / (2 a^2)."""
    u = 1 / a.clamp(min=20.0)
    v = u * u
    series = u * v * (1 / 6 - v * (1 / 30 - v * (1 / 42 - v * (1 / 30 - v * 5 / 66))))
    return torch.where(a > 20, series, torch.special.polygamma(1, a) - 1 / a - 0.5 / a**2)


def unit_deviance(log_y: Tensor, log_mean: Tensor, power: Tensor) -> Tensor:
    r"""2 (y^{2-p} / ((1-p)(2-p)) - y mu^{1-p} / (1-p) + mu^{2-p} / (2-p)) for y > 0.

    With :math:`\delta = \log(\mu/y)` it is twice :math:`y^{2-p}` times the difference of
    :math:`(e^{k\delta} - 1)/k` at k = 2 - p and at k = 1 - p, which keeps its digits around 0. The
    term in :math:`y \mu^{1-p}` continues along a tangent beyond e^60.
    """
    upper, lower = 2 - power, power - 1
    delta = log_mean - log_y
    near = delta.abs() < 1
    small = torch.where(near, delta, 0.0)
    size = (upper * log_y).exp()
    close = size * (torch.expm1(upper * small) / upper + torch.expm1(-lower * small) / lower)
    far = torch.where(near, log_y, log_mean)
    exponent = soft_cap(log_y - lower * far, 60.0)
    wide = exponent.exp() / lower + (upper * far).exp() / upper - size / (upper * lower)
    return 2 * torch.where(near, close, wide)


def log_density(y: Tensor, log_mean: Tensor, dispersion: Tensor, power: Tensor) -> Tensor:
    """The log density at y > 0, the log probability of 0 at y = 0; in double precision."""
    upper = 2 - power
    log_y = torch.where(y > 0, y, 1.0).log()
    log_rate = upper * log_y - upper.log() - dispersion.log()
    value = log_series(log_rate, upper / (power - 1)) - log_y
    value = value - unit_deviance(log_y, log_mean, power) / (2 * dispersion)
    return torch.where(y > 0, value, -(upper * log_mean).exp() / (upper * dispersion))
