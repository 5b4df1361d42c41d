"""The tail of Student's t on the log scale, differentiable in the argument and in nu."""

import math
from typing import Any

import torch
from scipy import special
from torch import Tensor

from ansatz.likelihoods.special.gamma import log_gamma_half
from ansatz.likelihoods.special.quadrature import gauss
from ansatz.likelihoods.special.roots import positive_quantile
from ansatz.likelihoods.special.tensors import absolute, elementwise, in_blocks, once_differentiable

_CENTRAL = 4.0  # below it the mass between 0 and t is integrated, above it the tail
_CUT = 40.0  # e^-40 = 4e-18


def log_density(t: Tensor, nu: Tensor) -> Tensor:
    r"""The log density of the standard t distribution with nu degrees of freedom.

    .. math:: \log \frac{\Gamma((\nu + 1)/2)}{\Gamma(\nu/2) \sqrt{\pi\nu}}
              - \frac{\nu + 1}{2} \log\left(1 + \frac{t^2}{\nu}\right)
    """
    log_norm = log_gamma_half(nu / 2) - 0.5 * nu.log() - 0.5 * math.log(math.pi)
    return log_norm - 0.5 * (nu + 1) * _log_one(t, nu)


def _log_one(t: Tensor, nu: Tensor) -> Tensor:
    """log(1 + t^2 / nu); far out by 2 log t, as t^2 may overflow."""
    far = t.abs() > 1e8 * nu.sqrt()
    near = torch.log1p(torch.where(far, 0.0, t) ** 2 / nu)
    return torch.where(far, 2 * torch.where(far, absolute(t), 1.0).log() - nu.log(), near)


def log_student_cdf(t: Tensor, nu: Tensor) -> Tensor:
    r"""log P(T <= t) for Student's t with nu degrees of freedom, accurate in both tails.

    .. math:: P(T \le -|t|) = \tfrac12 I_{\nu / (\nu + t^2)}(\nu/2, 1/2)

    by SciPy's incomplete beta function, and by quadrature where that underflows. The derivative in
    nu is the integral of the density's own, by quadrature: good to some ten digits. There is no
    second derivative: asking for it raises.

    References:
        Abramowitz and Stegun (1964), 26.7.1.
    """
    return once_differentiable(_log_cdf, _slopes, t, nu)


def student_quantile(p: Tensor, nu: Tensor) -> Tensor:
    """The t with P(T > t) = p for 0 <= p <= 1/2, double precision, no gradient.

    SciPy's; in the far tail, where that has few digits or none, by Newton's method in log t.
    """
    t = torch.where(p == 0, math.inf, -elementwise(special.stdtrit, nu, p))
    far = (p < 1e-15) & (p > 0)
    if far.any():
        n, level = nu[far], p[far]
        # Beyond any t that SciPy finds, P(T > t) is nearly f(0) nu^((nu - 1)/2) t^-nu.
        log_end = log_density(torch.zeros_like(n), n) + 0.5 * (n - 1) * n.log() - level.log()
        known = (t[far] > 1) & (t[far] < 1e100)
        start = torch.where(known, torch.where(known, t[far], 1.0).log(), log_end / n)
        x, _ = positive_quantile(
            lambda x, low: _log_tail(x.exp(), n),
            lambda x: log_density(x.exp(), n) + x,
            1 - level,
            level,
            start,
        )
        t = t.masked_scatter(far, x.exp())  # infinite where it overflows
    return t


def _slopes(needed: tuple[bool, ...], t: Tensor, nu: Tensor) -> tuple[Any, Any]:
    inside = t.isfinite()
    safe = torch.where(inside, t, torch.zeros_like(t))
    value = _log_cdf(safe, nu)
    in_t = torch.where(inside, (log_density(safe, nu) - value).exp(), 0) if needed[0] else None
    in_nu = torch.where(inside, _slope_in_nu(safe, nu, value), 0) if needed[1] else None
    return in_t, in_nu


def _log_cdf(t: Tensor, nu: Tensor) -> Tensor:
    log_tail = _log_tail(t.abs(), nu)
    return torch.where(t <= 0, log_tail, torch.log1p(-log_tail.exp()))


def _log_tail(t: Tensor, nu: Tensor) -> Tensor:
    """log P(T > t) for t >= 0."""
    # I_x(a, b) = 1 - I_(1-x)(b, a): take the side whose argument is known to all digits.
    square = t * t
    inner = (square < nu.clamp(max=4.0)) | ((nu > 1e4) & (t <= _CENTRAL))
    # Rounding x = nu / (nu + t^2) moves log I by up to nu times as much.
    far = (t > _CENTRAL) & t.isfinite() & (nu > 100)
    outer = ~inner & ~far
    tail = torch.empty_like(t)
    half = torch.tensor(0.5, dtype=t.dtype)
    a, s = nu[inner], square[inner]
    tail[inner] = 0.5 - elementwise(special.betainc, half.expand_as(a), a / 2, s / (a + s)) / 2
    a, s = nu[outer], square[outer]
    tail[outer] = elementwise(special.betainc, a / 2, half.expand_as(a), a / (a + s)) / 2
    value = tail.log()
    far |= outer & (tail < 1e-250) & t.isfinite()  # SciPy's loses its digits from 1e-265 on
    if far.any():
        log_mass = in_blocks(lambda *rows: _tail_moments(*rows)[0], t[far], nu[far])
        value = value.masked_scatter(far, log_mass)
    return value


def _tail_nodes(t: Tensor, nu: Tensor) -> tuple[Tensor, Tensor]:
    """Points s = t e^w beyond t and the log of weight * density * ds/dw there.

    The log integrand falls in w with slope -r or steeper, r = nu (t^2 - 1) / (nu + t^2).
    """
    nodes, weights = gauss("legendre", 80, t)
    least = (1 / t) ** 2  # t^2 may overflow
    end = _CUT * (least + 1 / nu) / (1 - least)  # cut / r
    w = end.unsqueeze(-1) * nodes
    # log f(s) - log f(t) without forming s^2, which may overflow.
    share = (1 / (1 + nu * least)).unsqueeze(-1)  # t^2 / (nu + t^2)
    drop = torch.where(w < 1, torch.log1p(share * torch.expm1(2 * w.clamp(max=1))), 0)
    far = 2 * w + torch.log(share + (1 - share) * (-2 * w).exp())
    drop = torch.where(w < 1, drop, far)
    log_ratio = w - 0.5 * (nu.unsqueeze(-1) + 1) * drop
    log_weight = (weights * end.unsqueeze(-1)).log()
    return drop, log_ratio + log_weight


def _tail_moments(t: Tensor, nu: Tensor) -> tuple[Tensor, Tensor]:
    """log P(T > t), and d of it in nu as a mean of the score over the tail."""
    drop, log_term = _tail_nodes(t, nu)
    log_mass = torch.logsumexp(log_term, -1)
    weight = (log_term - log_mass.unsqueeze(-1)).exp()
    # log(1 + s^2/nu) = log(1 + t^2/nu) + drop, and s^2/(nu + s^2) = 1 - e^-(that).
    log_one = _log_one(t, nu).unsqueeze(-1) + drop
    score = _score(log_one, nu.unsqueeze(-1))
    return log_density(t, nu) + t.log() + log_mass, (weight * score).sum(-1)


def _score(log_one: Tensor, nu: Tensor) -> Tensor:
    """d log density / d nu at the point where log(1 + t^2/nu) is ``log_one``."""
    direct = torch.digamma((nu + 1) / 2) - torch.digamma(nu / 2) - 1 / nu
    u = (2 / nu) ** 2  # for large nu the three cancel; their series in 2 / nu does not
    series = u * (1 / 8 - u * (1 / 64 - u * (1 / 128 - u * 17 / 2048)))
    norm = 0.5 * torch.where(nu > 100, series, direct)
    return norm - 0.5 * log_one - 0.5 * (nu + 1) / nu * torch.expm1(-log_one)


def _slope_in_nu(t: Tensor, nu: Tensor, value: Tensor) -> Tensor:
    """d log P(T <= t) / d nu."""
    size = t.abs()
    central = size <= _CENTRAL
    log_tail = _log_tail(size, nu)
    slope = torch.empty_like(t)  # d log P(T > |t|) / d nu
    slope[central] = -in_blocks(_central_slope, size[central], nu[central])
    slope[central] /= log_tail[central].exp()
    slope[~central] = in_blocks(lambda *rows: _tail_moments(*rows)[1], size[~central], nu[~central])
    return torch.where(t <= 0, slope, -slope * (log_tail - value).exp())


def _central_slope(t: Tensor, nu: Tensor) -> Tensor:
    """d P(0 < T <= t) / d nu by Gauss-Legendre in the angle of tan(angle) = s / sqrt(nu)."""
    nodes, weights = gauss("legendre", 80, t)
    root = nu.sqrt()
    end = torch.atan2(t, root)
    angle = end.unsqueeze(-1) * nodes
    s = root.unsqueeze(-1) * torch.tan(angle)
    wide = nu.unsqueeze(-1)
    log_one = torch.log1p(s * s / wide)
    density = (log_density(s, wide) + log_one).exp() * root.unsqueeze(-1)  # f(s) ds/d angle
    return (weights * density * _score(log_one, wide)).sum(-1) * end
