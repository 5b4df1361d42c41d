"""The beta density without cancellation, and both tails of its distribution."""

from typing import Any, NamedTuple

import torch
from scipy import special
from torch import Tensor

from ansatz.likelihoods.special.gamma import HALF_LOG_2PI, digamma_gap, stirling
from ansatz.likelihoods.special.quadrature import gauss
from ansatz.likelihoods.special.tensors import elementwise, refuse_second_derivative, wide


def log_beta_weight(a: Tensor, b: Tensor, log_x: Tensor, log_y: Tensor) -> Tensor:
    r"""log(x^a y^b / B(a, b)) for x + y = 1: the beta density in logit(x).

    .. math:: -a \log\frac{a}{n x} - b \log\frac{b}{n y} + \log\frac{B_0}{B(a, b)}, \qquad n = a + b

    The first two are a :func:`relative_entropy`, the last is :func:`log_beta_peak`. At a = b = 1e8
    the plain terms are 1e8 each. Twice differentiable in everything.
    """
    return log_beta_peak(a, b) - relative_entropy(a, b, log_x, log_y)


def relative_entropy(a: Tensor, b: Tensor, log_x: Tensor, log_y: Tensor) -> Tensor:
    r"""a log(a / (n x)) + b log(b / (n y)) with n = a + b: n times that of (a/n, b/n) to (x, y).

    At least 0, and half the deviance of a successes and b failures; a, b > 0. Computed from the gap
    n (x - a/n) where that is small.
    """
    # (x - mean) n; e^log is not x to the last digit, but both terms below see the same gap.
    gap = log_x.exp() * b - log_y.exp() * a
    log_n = torch.log(a + b)
    return -_excess(a, gap, log_x, log_n) - _excess(b, -gap, log_y, log_n)


def log_beta_peak(a: Tensor, b: Tensor) -> Tensor:
    r"""log(p^a q^b / B(a, b)) at the mean p = a / (a + b), q = 1 - p, by Stirling's formula.

    .. math:: \tfrac12 \log\frac{ab}{2\pi(a+b)} - S(a) - S(b) + S(a + b)
    """
    n = a + b
    roots = 0.5 * (a.log() + torch.log(b / n)) - HALF_LOG_2PI
    return roots - stirling(a) - stirling(b) + stirling(n)


def _excess(a: Tensor, gap: Tensor, log_x: Tensor, log_n: Tensor) -> Tensor:
    """a log(x n / a) - gap, which is a (log(1 + m) - m) with m = gap / a."""
    near = gap.abs() < 0.5 * a
    m = torch.where(near, gap, 0.0) / torch.where(near, a, 1.0)
    # where inside, too: the slope of an unused gap / a would overflow for small a
    return torch.where(near, a * (torch.log1p(m) - m), a * (log_x + log_n - a.log()) - gap)


_CUT = 40.0  # e^-40 = 4e-18: an integrand below it adds nothing in double precision
_BLOCK = 2**15  # rows of a quadrature at once: 26 MB


def log_betainc(a: Tensor, b: Tensor, x: Tensor, *, logit: bool = False) -> Tensor:
    r"""log I_x(a, b), the regularised incomplete beta function, for a, b > 0 and 0 <= x <= 1.

    .. math:: I_x(a, b) = \frac{1}{B(a, b)} \int_0^x t^{a-1} (1-t)^{b-1} dt

    Accurate where I itself underflows. The derivative in x is the density over I; those in a and
    b are means of log t and log(1 - t) over the tail, by series where b x <= 1 and by quadrature
    beyond. Values and derivatives are good to some ten digits for a and b from 1e-6 to 1e8. There
    is no second derivative: asking for it raises. With ``logit`` x is given as log(x / (1 - x)),
    which near 1 holds digits of 1 - x that x has lost.

    References:
        Abramowitz and Stegun (1964), 6.6.2 and 26.5.4.
    """
    return _LogTail.apply(*torch.broadcast_tensors(a, b, x), False, logit)


def log_betaincc(a: Tensor, b: Tensor, x: Tensor, *, logit: bool = False) -> Tensor:
    """log(1 - I_x(a, b)); see :func:`log_betainc`."""
    return _LogTail.apply(*torch.broadcast_tensors(a, b, x), True, logit)


class _Point(NamedTuple):
    """Shapes and argument, exchanged where needed so that x <= 1/2 <= y = 1 - x."""

    a: Tensor
    b: Tensor
    x: Tensor
    y: Tensor
    log_x: Tensor
    log_y: Tensor
    upper: Tensor  # the tail that is wanted, after the exchange

    def where(self, mask: Tensor) -> "_Point":
        return _Point(*(v[mask] for v in self))

    def blocks(self) -> list["_Point"]:
        return [_Point(*part) for part in zip(*(v.split(_BLOCK) for v in self), strict=True)]


class _LogTail(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, x: Tensor, upper: bool, logit: bool) -> Tensor:
        ctx.upper, ctx.logit = upper, logit
        if x.is_meta:
            ctx.save_for_backward(a, b, x, x)
            return torch.empty_like(x)
        shape_a, shape_b, argument = wide(a, b, x)
        point, _ = _fold(shape_a, shape_b, argument, upper, logit)
        value = _log_tail(point)
        ctx.save_for_backward(a, b, x, value)  # the value in double precision
        return value.to(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative()
        if grad.is_meta:
            return (*(torch.empty_like(grad) for _ in range(3)), None, None)
        a, b, x, value = wide(*ctx.saved_tensors)
        inside = x.isfinite() & value.isfinite() & (ctx.logit | ((x > 0) & (x < 1)))
        x = torch.where(inside, x, 0.0 if ctx.logit else 0.5)
        point, swapped = _fold(a, b, x, ctx.upper, ctx.logit)
        in_a = in_b = in_x = None
        if ctx.needs_input_grad[2]:
            log_slope = _log_slope(point, value)
            log_slope = log_slope if ctx.logit else log_slope - point.log_x - point.log_y
            slope = torch.where(inside, log_slope.exp(), 0)
            in_x = grad * (-slope if ctx.upper else slope).to(grad)
        if ctx.needs_input_grad[0] or ctx.needs_input_grad[1]:
            slopes = (torch.where(inside, s, 0) for s in _slopes_in_shapes(point, value))
            first, second = (s.to(grad) for s in slopes)
            in_a = grad * torch.where(swapped, second, first)
            in_b = grad * torch.where(swapped, first, second)
        return in_a, in_b, in_x, None, None


def _fold(a: Tensor, b: Tensor, x: Tensor, upper: bool, logit: bool) -> tuple[_Point, Tensor]:
    """I_x(a, b) = 1 - I_(1-x)(b, a): the side whose argument is at most 1/2, and where that is."""
    if logit:
        swapped, size = x > 0, x.abs()
        small, large = torch.sigmoid(-size), torch.sigmoid(size)
        log_large = -torch.log1p((-size).exp())  # torch's softplus drops this beyond 20
        log_small = log_large - size
    else:
        swapped = x > 0.5
        small, large = torch.where(swapped, 1 - x, x), torch.where(swapped, x, 1 - x)
        log_small, log_large = small.log(), torch.log1p(-small)
    a, b = torch.where(swapped, b, a), torch.where(swapped, a, b)
    return _Point(a, b, small, large, log_small, log_large, swapped ^ upper), swapped


def _log_weight(p: _Point) -> Tensor:
    """log(x^a y^b / B(a, b)): d tail / d logit(x)."""
    return log_beta_weight(p.a, p.b, p.log_x, p.log_y)


def _log_tail(p: _Point) -> Tensor:
    low = elementwise(special.betainc, p.a, p.b, p.x)
    high = 1 - low
    most = low > 0.5
    if most.any():
        high = high.masked_scatter(most, _complement(p.a[most], p.b[most], p.x[most], p.y[most]))
    value, rest = torch.where(p.upper, high, low), torch.where(p.upper, low, high)
    log_value = torch.where(value > 0.5, torch.log1p(-rest), value.log())
    far = value < 1e-250  # SciPy's loses its digits from 1e-265 on
    if far.any():
        far = far & p.log_x.isfinite()  # not the ends of the support, where it is 0
        point = p.where(far)
        log_value = log_value.masked_scatter(far, _log_weight(point) + _log_far_mass(point))
    return log_value


def _log_slope(p: _Point, value: Tensor) -> Tensor:
    """log |d log(tail) / d logit(x)|; far out directly, as weight and value lose digits there."""
    slope = _log_weight(p) - value
    far = value < -600
    return slope.masked_scatter(far, -_log_far_mass(p.where(far))) if far.any() else slope


def _complement(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """1 - I_x(a, b), through y where it has the digits: SciPy's betaincc is ten times slower."""
    value = elementwise(special.betainc, b, a, y)
    small = x < 0.02  # below, rounding moves y by more than 50 times as much of x
    if small.any():
        exact = elementwise(special.betaincc, a[small], b[small], x[small])
        value = value.masked_scatter(small, exact)
    return value


def _by_series(p: _Point) -> Tensor:
    return p.b * p.x <= 1


def _log_far_mass(p: _Point) -> Tensor:
    """log(tail / weight), for tails that underflow."""
    series = _by_series(p) & ~p.upper
    value = torch.empty_like(p.x)
    value[series] = _series(p.where(series))[0]
    value[~series] = _quadrature(p.where(~series), p.upper[~series])[0]
    return value


def _slopes_in_shapes(p: _Point, value: Tensor) -> tuple[Tensor, Tensor]:
    """d log(tail) / da and / db, computed in the tail where no digits cancel."""
    series = _by_series(p)
    lower = series | (p.x * p.b < p.y * p.a)  # x below the mean a / (a + b)
    slopes = torch.empty(2, *p.x.shape, dtype=p.x.dtype)
    slopes[:, series] = torch.stack(_series(p.where(series))[1:])
    slopes[:, ~series] = torch.stack(_quadrature(p.where(~series), ~lower[~series])[1:])
    # log(1 - e^value), the other tail
    rest = torch.where(value > -0.7, (-torch.expm1(value)).log(), torch.log1p(-value.exp()))
    slopes = torch.where(p.upper != lower, slopes, -slopes * (rest - value).exp())
    return slopes[0], slopes[1]


def _series(p: _Point) -> tuple[Tensor, Tensor, Tensor]:
    """log(I / weight) and the slopes of log I in a and b, for b x <= 1 and x <= 1/2.

    I = x^a y^b / (a B(a, b)) * sum over n of (a + b)_n / (a + 1)_n x^n: positive terms only.
    """
    total = p.a + p.b
    term, mass = torch.ones_like(p.x), torch.ones_like(p.x)
    rise_a, rise_b = torch.zeros_like(p.x), torch.zeros_like(p.x)  # d log(term)
    mean_a, mean_b = torch.zeros_like(p.x), torch.zeros_like(p.x)
    for n in range(60):
        top, bottom = total + n, p.a + (n + 1)
        term = term * top / bottom * p.x
        rise_b = rise_b + 1 / top
        rise_a = rise_a + (1 - p.b) / (top * bottom)
        mass, mean_a, mean_b = mass + term, mean_a + term * rise_a, mean_b + term * rise_b
    # digamma(a) + 1/a = digamma(a + 1), which is not huge for small a
    in_a = p.log_x - 1 / p.a + digamma_gap(p.a, p.b) + mean_a / mass
    small = p.a < 1
    near = p.log_x - torch.digamma(p.a + 1) + torch.digamma(total) + mean_a / mass
    in_b = p.log_y + digamma_gap(p.b, p.a) + mean_b / mass
    return mass.log() - p.a.log(), torch.where(small, near, in_a), in_b


def _quadrature(p: _Point, upper: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log(tail / weight) and the slopes of log(tail) in a and b, by Gauss-Legendre.

    For b x > 1, and the tail on whose side x lies.
    With logit(t) = logit(x) -+ u the integrand falls like e^-h from u = 0 on, h convex:
    lower h = a u + (a + b) log(1 + x (e^-u - 1)), upper h = -a u + (a + b) log(1 + x (e^u - 1)).
    """
    parts = [
        _tail_means(part, side) for part, side in zip(p.blocks(), upper.split(_BLOCK), strict=True)
    ]
    log_mass, mean_x, mean_y = (torch.cat(v) for v in zip(*parts, strict=True))
    in_a = p.log_x + mean_x + digamma_gap(p.a, p.b)
    in_b = p.log_y + mean_y + digamma_gap(p.b, p.a)
    return log_mass, in_a, in_b


def _tail_means(p: _Point, upper: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log of the integral of e^-h over u, and the means of log(t / x) and log((1 - t) / y)."""
    nodes, weights = gauss("legendre", 100, p.x)
    sign = torch.where(upper, 1.0, -1.0).to(p.x)
    total = p.a + p.b
    end = _end(p, sign)
    u = end.unsqueeze(-1) * nodes
    # log(y / (1 - t)); t / x = e^(+-u) (1 - t) / y
    fall = torch.log1p(p.x.unsqueeze(-1) * torch.expm1(sign.unsqueeze(-1) * u))
    h = -(sign * p.a).unsqueeze(-1) * u + total.unsqueeze(-1) * fall
    density = weights * (-h).exp()
    mass = density.sum(-1)
    mean_u, mean_y = (density * u).sum(-1) / mass, -(density * fall).sum(-1) / mass
    return mass.log() + end.log(), sign * mean_u + mean_y, mean_y


def _end(p: _Point, sign: Tensor) -> Tensor:
    """The u where h reaches the cut, or a little beyond: Newton's method, h being convex."""
    total = p.a + p.b
    rate = (p.x * p.b - p.y * p.a).abs()  # h'(0); h''(0) = (a + b) x y
    u = 2 * _CUT / (rate + (rate**2 + 2 * _CUT * total * p.x * p.y).sqrt())
    for _ in range(8):
        grown = p.x * torch.expm1(sign * u)
        h = -sign * p.a * u + total * torch.log1p(grown)
        slope = sign * (total * (grown + p.x) / (1 + grown) - p.a)
        u = u - (h - _CUT) / slope
    return u


_TERMS = 2**16  # terms at once: they stay in the cache


def log_sum_below(y: Tensor, a: Tensor, b: Tensor, n: Tensor) -> Tensor:
    r"""log(P(Y <= y) / P(Y = y)) of a beta-binomial distribution, for whole numbers 0 <= y <= n.

    .. math:: \log \sum_{j=0}^y \prod_{k=y-j+1}^y \frac{p(k-1)}{p(k)}, \qquad
              \frac{p(k-1)}{p(k)} = \frac{k\,(n - k + b)}{(n - k + 1)(k - 1 + a)}

    All terms are positive, so that no digits cancel; as logarithms none overflows. Rows of similar
    length are summed together. Twice differentiable in a and b.
    """
    rows = [v.reshape(-1) for v in (y, a, b, n)]
    if not rows[0].numel():
        return torch.zeros_like(y)
    order = torch.argsort(rows[0].detach())
    rows = [v[order] for v in rows]
    value = torch.cat([_sum(*(v[part] for v in rows)) for part in _parts(rows[0])])
    return value[torch.argsort(order)].reshape(y.shape)


def _parts(length: Tensor) -> list[slice]:
    """Slices of rows in ascending order of length that fit into a block of terms."""
    parts, start, rows = [], 0, len(length)
    while start < rows:
        end = min(start + _TERMS, rows)
        while end > start + 1 and (end - start) * float(length[end - 1]) > _TERMS:
            end = start + (end - start + 1) // 2
        parts.append(slice(start, end))
        start = end
    return parts


def _sum(y: Tensor, a: Tensor, b: Tensor, n: Tensor) -> Tensor:
    terms = torch.arange(max(1, int(y.max())), dtype=y.dtype, device=y.device)
    y, a, b, n = (v.unsqueeze(-1) for v in (y, a, b, n))
    k = y - terms  # (N, M)
    valid = k >= 1
    k = k.clamp(min=1)
    ratio = k * (n - k + b) / ((n - k + 1) * (k - 1 + a))
    log_term = torch.where(valid, ratio.log().cumsum(-1), -torch.inf)
    largest = log_term.detach().amax(-1, True).clamp(min=0)
    total = (-largest).exp().squeeze(-1) + (log_term - largest).exp().sum(-1)
    return total.log() + largest.squeeze(-1)
