"""The distribution whose negative log density is Barron's general loss."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.elementwise import wide
from ansatz.likelihoods.general_loss import (
    log_centre,
    log_partition,
    log_tail,
    mean_loss,
    shaped_loss,
)

_PART = 2**11  # elements at once: with 64 nodes each they stay in the processor's cache


class BarronDistribution(Distribution):
    r"""Density e^-rho(x, alpha, c) / (c Z(alpha)), x = y - location, for 0 <= alpha <= 2.

    Normal at alpha = 2, Cauchy (of scale c sqrt 2) at 0; between them the tails are those of
    e^(-|x|^alpha). The variance is finite for alpha > 0. cdf and tails are by quadrature, good to
    twelve digits and differentiable in everything as often as one likes.

    Args:
        location: any shape.
        scale: c, positive, the same shape.
        alpha: the shape, a shape that broadcasts.
        b: 2 - alpha, where it is known with more digits than alpha shows.

    Example:
        >>> import torch
        >>> normal = BarronDistribution(torch.zeros(1), torch.ones(1), torch.tensor(2.0))
        >>> normal.cdf(torch.tensor([1.96]))
        tensor([0.9750])
    """

    def __init__(
        self, location: Tensor, scale: Tensor, alpha: Tensor, b: Tensor | None = None
    ) -> None:
        self.location, self.scale = torch.broadcast_tensors(location, scale)
        self.alpha, self.b = alpha, 2 - alpha if b is None else b

    @property
    def mean(self) -> Tensor:
        """The location; nan at alpha = 0, where it does not exist."""
        return torch.where(self.alpha > 0, self.location, math.nan)

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.location

    @property
    def median(self) -> Tensor:
        """The location."""
        return self.location

    @property
    def variance(self) -> Tensor:
        """c^2 times the integral of x^2 e^-rho / Z; infinite below alpha = 0.004, where it is."""
        alpha, b = wide(self.alpha, self.b)
        small = alpha < 0.004  # beyond 10^60 c^2: nothing to tell apart from no variance
        alpha, b = torch.where(small, 1.0, alpha), torch.where(small, 1.0, b)
        one = torch.ones_like(alpha)
        inner, outer = log_centre(one, alpha, b, 2), log_tail(one, alpha, b, 2)
        second = 2 * (torch.logaddexp(inner, outer) - log_partition(alpha, b)).exp()
        return self.scale**2 * torch.where(small, math.inf, second).to(self.scale)

    @property
    def entropy(self) -> Tensor:
        """log c + log Z + E[rho]."""
        alpha, b = wide(self.alpha, self.b)
        rest = log_partition(alpha, b) + mean_loss(alpha, b)
        return self.scale.log() + rest.to(self.scale)

    @property
    def log_norm(self) -> Tensor:
        """log Z(alpha), of alpha's own shape."""
        return log_partition(*wide(self.alpha, self.b)).to(self.scale)

    def log_prob(self, y: Tensor) -> Tensor:
        """-rho - log c - log Z."""
        z = ((y - self.location) / self.scale) ** 2
        return -shaped_loss(z, self.alpha, self.b) - self.scale.log() - self.log_norm

    def cdf(self, y: Tensor) -> Tensor:
        """P(Y <= y)."""
        return self.log_cdf(y).exp()

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log P(Y <= y), accurate in both tails."""
        return self._log_below((y - self.location) / self.scale)

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), accurate in both tails."""
        return self._log_below((self.location - y) / self.scale)

    def _log_below(self, x: Tensor) -> Tensor:
        """log P(X <= x) of the distribution with location 0 and c = 1, in double precision."""
        argument, alpha, b = wide(x, self.alpha, self.b)
        log_z = log_partition(alpha, b)
        return _in_parts(_log_below, argument, alpha, b, log_z).to(x)

    def _solve(self, q: Tensor) -> Tensor:
        level, alpha, b = wide(q, self.alpha, self.b)
        if level.is_meta:
            return torch.empty_like(self.location + q)
        log_z = log_partition(alpha, b)
        level, _ = torch.broadcast_tensors(level, self.location)
        tail = torch.minimum(level, 1 - level)
        inside = (tail > 0) & (tail < 0.5)
        size = _in_parts(_upper_quantile, torch.where(inside, tail, 0.25), alpha, b, log_z)
        size = torch.where(inside, size, torch.where(tail == 0.5, 0.0, math.inf))
        size = torch.where((level >= 0) & (level <= 1), size, math.nan)
        return self.location + self.scale * torch.where(level < 0.5, -size, size).to(q)

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent draws, by rejection from the Cauchy distribution.

        rho falls with alpha, so that e^-rho <= e^-rho at alpha = 0, a Cauchy density; from 56 %
        (normal) to all of its draws are kept.
        """
        with torch.no_grad():
            location, scale, alpha, b = (
                v.expand((*shape, *self.batch_shape)).reshape(-1)
                for v in (self.location, self.scale, self.alpha, self.b)
            )
            x = torch.empty_like(location)
            open_ = torch.arange(x.numel(), device=x.device)
            while open_.numel():
                u, keep = (
                    torch.rand(open_.shape, generator=generator, dtype=x.dtype, device=x.device)
                    for _ in range(2)
                )
                draw = math.sqrt(2) * torch.tan(math.pi * (u - 0.5))
                z = draw**2
                excess = shaped_loss(z, alpha[open_], b[open_]) - torch.log1p(z / 2)
                kept = keep.log() <= -excess
                x[open_[kept]] = draw[kept]
                open_ = open_[~kept]
            return (location + scale * x).reshape(*shape, *self.batch_shape)


def _in_parts(function: Callable[..., Tensor], x: Tensor, *shape: Tensor) -> Tensor:
    """The function of x and of parameters that broadcast, in parts unless a graph is recorded."""
    x, *columns = torch.broadcast_tensors(x, *shape)
    if x.is_meta:
        return x + sum(columns)
    recorded = torch.is_grad_enabled() and any(v.requires_grad for v in (x, *shape))
    if recorded or x.numel() <= _PART:
        return function(x, *columns)
    parts = zip(*(v.reshape(-1).split(_PART) for v in (x, *columns)), strict=True)
    return torch.cat([function(*part) for part in parts]).reshape(x.shape)


def _log_below(x: Tensor, alpha: Tensor, b: Tensor, log_z: Tensor) -> Tensor:
    """log P(X <= x): from the tail beyond |x| = 1, from the centre before."""
    far = x.abs() > 1
    value = torch.zeros_like(x + log_z)
    value = value.masked_scatter(far, _outside(*(v[far] for v in (x, alpha, b, log_z))))
    return value.masked_scatter(~far, _inside(*(v[~far] for v in (x, alpha, b, log_z))))


def _outside(x: Tensor, alpha: Tensor, b: Tensor, log_z: Tensor) -> Tensor:
    beyond = x.abs() == math.inf
    tail = log_tail(torch.where(beyond, 2.0, x.abs()), alpha, b) - log_z
    tail = torch.where(beyond, -math.inf, tail)
    return torch.where(x < 0, tail, torch.log1p(-tail.exp()))


def _inside(x: Tensor, alpha: Tensor, b: Tensor, log_z: Tensor) -> Tensor:
    # Near 0 the integral is x itself, with x's sign: |x| has no slope there.
    tiny = x.abs() < 1e-9
    inner = log_centre(torch.where(tiny, 0.5, x.abs()), alpha, b).exp()
    return (0.5 + torch.where(tiny, x, inner * x.sign()) * (-log_z).exp()).log()


def _upper_quantile(p: Tensor, alpha: Tensor, b: Tensor, log_z: Tensor) -> Tensor:
    """The x > 0 with P(X > x) = p < 1/2."""
    far = p.log() < log_tail(torch.ones_like(p), alpha, b) - log_z
    x = torch.empty_like(p)
    x[far] = _far_quantile(*(v[far] for v in (p, alpha, b, log_z)))
    x[~far] = _near_quantile(*(v[~far] for v in (p, alpha, b, log_z)))
    return x


def _near_quantile(p: Tensor, alpha: Tensor, b: Tensor, log_z: Tensor) -> Tensor:
    """Newton in x: the integral from 0 is concave, so it comes from the left and stays there."""
    mass = (0.5 - p) * log_z.exp()
    x = mass.clamp(1e-300, 1.0)  # e^-rho <= 1
    for _ in range(20):
        gap = mass - log_centre(x, alpha, b).exp()
        move = gap * shaped_loss(x * x, alpha, b).exp()
        x = (x + move).clamp(1e-300, 1.0)
        if bool((move.abs() <= 1e-14 * x).all()):
            break
    return x


def _far_quantile(p: Tensor, alpha: Tensor, b: Tensor, log_z: Tensor) -> Tensor:
    """Newton in w = log x, where the log of the tail is concave: it comes from the right."""
    # Where P(X > x) is about e^-rho: rho = -log 2p, solved for log x.
    floor = b.clamp(min=1e-30)
    rise = (-(2 * p).log()).clamp(min=1e-3)
    bend = alpha * rise / floor
    safe = torch.where(bend > 1e-8, bend, 1.0)
    t = 2 * rise / floor * torch.where(bend > 1e-8, torch.log1p(safe) / safe, 1.0)
    w = (0.5 * (floor.log() + t)).clamp(0, 300)
    for _ in range(30):
        value = log_tail(w.exp(), alpha, b) - log_z
        slope = (w - shaped_loss((2 * w).exp(), alpha, b) - log_z - value).exp()
        move = torch.minimum(((value - p.log()) / slope).clamp(min=-1), 1 + w)
        w = (w + move).clamp(0, 350)
        if bool((move.abs() <= 1e-14 * (1 + w)).all()):
            break
    return w.exp()
