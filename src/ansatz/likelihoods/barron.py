"""Barron's general robust loss, whose shape can be learned."""

import copy
import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from ansatz.likelihoods.constant_fit import fit_constant
from ansatz.likelihoods.dispersion import Dispersion
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Dispersed, by_target, require_same_shape, unit_and_floor
from ansatz.likelihoods.point_loss import Huber
from ansatz.likelihoods.special.general_loss import (
    log_centre,
    log_partition,
    log_tail,
    mean_loss,
    shaped_loss,
)
from ansatz.likelihoods.special.tensors import wide

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

    symmetric = True

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
        log_z = log_partition(alpha, b)
        level, _ = torch.broadcast_tensors(level, self.location)
        tail = torch.minimum(level, 1 - level)
        inside = (tail > 0) & (tail < 0.5)
        size = _in_parts(_upper_quantile, torch.where(inside, tail, 0.25), alpha, b, log_z)
        size = torch.where(inside, size, torch.where(tail == 0.5, 0.0, math.inf))
        size = torch.where((level >= 0) & (level <= 1), size, math.nan)
        return self.location + self.scale * torch.where(level < 0.5, -size, size).to(q)

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """By rejection from the Cauchy distribution.

        rho falls with alpha, so that e^-rho <= e^-rho at alpha = 0, a Cauchy density; from 56 %
        (normal) to all of its draws are kept.
        """
        location, scale, alpha, b = (
            v.expand(size).reshape(-1) for v in (self.location, self.scale, self.alpha, self.b)
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
        return (location + scale * x).reshape(size)


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


_MOST = 6.0  # of the learned a: alpha = 1.995


class Barron(Dispersed):
    r"""One family from squared error to losses that ignore outliers, its shape given or learned.

    .. math:: \rho(x, \alpha, c) = \frac{|\alpha - 2|}{\alpha} \left(\left(
              \frac{(x / c)^2}{|\alpha - 2|} + 1\right)^{\alpha/2} - 1\right), \qquad x = y - f

    with f = raw[0]. :math:`\alpha` = 2 is squared error :math:`\frac12 (x/c)^2`, 1 Charbonnier's
    (pseudo-Huber), 0 Cauchy's, -2 Geman and McClure's, minus infinity Welsch's.

    With shape and scale both given it is that loss, and predicts no distribution. As soon as one of
    them is learned it is a *likelihood*, with the density

    .. math:: p(y) = \frac{e^{-\rho(x, \alpha, c)}}{c\, Z(\alpha)}

    because without the partition function Z the learned number would run away. Z is finite from
    :math:`\alpha` = 0 on only, so a learned :math:`\alpha = 2 \sigma(a)` lives in (0, 2), one
    number for all x; it starts at its maximum-likelihood value, or at 1.995 where y has no heavier
    tails than normal, and a network begins at 1.5 or less. A learned c = unit * softplus(r) + floor
    has the median absolute deviation of y times 1.4826 as its unit and the normal distribution's
    floor, max(1e-3 sd(y), resolution of y / sqrt(12)), at most half the unit. ``predict`` gives f.

    Args:
        alpha: ``"learned"``, or any number up to 2, ``-math.inf`` included.
        dispersion: c ``"constant"``, that is learned once, ``"predicted"`` from x, ``"mad"``, the
            median absolute deviation of y times 1.4826, or known.

    Shapes:
        - raw: ``(..., 1)``, or ``(..., 2)`` with a predicted c.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Barron
        >>> cauchy = Barron(alpha=0.0, dispersion=1.0)
        >>> cauchy.loss(torch.zeros(2, 1), torch.tensor([1.0, 100.0]))
        tensor([0.4055, 8.5174])
        >>> cauchy.has_distribution, Barron().has_distribution
        (False, True)

    References:
        Barron (2019), A general and adaptive robust loss function. https://arxiv.org/abs/1701.03077
    """

    name = "barron"
    resized = ("shape",)
    support = "real"

    def __init__(
        self,
        *,
        alpha: Literal["learned"] | float = "learned",
        dispersion: Dispersion | Literal["mad"] = "constant",
    ) -> None:
        measured = dispersion == "mad"
        super().__init__(dispersion=1.0 if measured else dispersion)  # type: ignore[arg-type]
        learned = isinstance(alpha, str)
        if learned and alpha != "learned":
            raise ValueError(f"alpha of Barron must be 'learned' or a number <= 2, got {alpha!r}.")
        if not learned and not alpha <= 2:  # type: ignore[operator]  # no string here
            raise ValueError(f"alpha of Barron must be at most 2, got {alpha}.")
        self.measured = measured
        likelihood = learned or self.dispersion.kind != "known"
        if likelihood and not learned and alpha < 0:  # type: ignore[operator]
            raise ValueError(
                f"a scale can be learned for alpha >= 0 only, got alpha={alpha}: below 0 there is "
                "no density. Give dispersion='mad' or a number."
            )
        self.has_distribution = likelihood  # type: ignore[misc]  # a loss or a likelihood, by its options
        self.given_alpha = None if learned else float(alpha)
        self.shape = nn.Parameter(torch.tensor(0.0)) if learned else None

    def alpha(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """alpha and 2 - alpha, ``()``, or ``(K,)`` for K targets."""
        if self.shape is None:
            assert self.given_alpha is not None
            value = torch.tensor(self.given_alpha, dtype=like.dtype, device=like.device)
            return value, 2 - value
        a = self.shape.to(like.dtype)
        return 2 * torch.sigmoid(a), 2 * torch.sigmoid(-a)

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the scale; the measured scale; one alpha per target."""
        huber = Huber()
        huber.observe(y, weight)  # the median absolute deviation, or the sd
        unit = huber.unit.value
        if self.measured:
            self.dispersion.known = unit.clone()
        self.dispersion.observe(unit, torch.minimum(unit_and_floor(y, weight)[1], unit / 2))
        if self.shape is not None:
            self.shape = nn.Parameter(torch.zeros_like(unit))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood location, scale and alpha; from Huber's estimate of location."""
        solved = by_target(self._solve_constant, y, weight)
        location, c, a = (
            torch.stack(part).reshape(y.shape[1:]).to(y.dtype) for part in zip(*solved, strict=True)
        )
        if self.shape is not None:
            self.shape = nn.Parameter(a.detach().clone())
        unit = self.dispersion.unit.to(y.dtype).expand_as(location)
        return self.dispersion.append(location, unit.clone(), c)

    def _solve_constant(self, y: Tensor, weight: Tensor, target: int) -> tuple[Tensor, ...]:
        """Location, scale and a of one target."""
        one = copy.deepcopy(self).double()
        for name in ("unit", "floor", "known"):
            value = getattr(self.dispersion, name).double().reshape(-1)
            setattr(one.dispersion, name, value[min(target, len(value) - 1)])
        if one.dispersion.constant is not None:
            one.dispersion.constant = nn.Parameter(torch.zeros((), dtype=y.dtype))
        if one.shape is not None:
            one.shape = nn.Parameter(torch.zeros((), dtype=y.dtype))
        huber = Huber()
        huber.observe(y, weight)
        unit = one.dispersion.unit
        first = one.dispersion.append(huber.start(y, weight)[0][0], unit.clone(), unit)
        if bool((y == y[0]).all()):  # the likelihood rises all the way to a spike: to the floor
            return y[0], one.dispersion.floor, torch.zeros_like(unit)
        shift = fit_constant(one, y, weight, *first)
        if one.shape is not None and not float(one.shape.detach()) < _MOST:
            # It rises all the way to the normal distribution: stop a little before.
            one.shape, one.given_alpha = None, 2 / (1 + math.exp(-_MOST))
            shift = fit_constant(one, y, weight, *first)
        a = torch.full_like(unit, _MOST) if one.shape is None else one.shape.detach()
        return shift[0], one.dispersion(shift).detach(), a

    def relax_shapes(self) -> None:
        """Alpha of at most 1.5: the variance of the means hides heavy tails."""
        if self.shape is not None:
            with torch.no_grad():
                self.shape.clamp_(max=math.log(3))

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """Rho; for a likelihood, the negative log-likelihood."""
        require_same_shape(self.name, raw, y)
        if self.has_distribution:
            return -self._distribution(raw).log_prob(y)
        return shaped_loss(((y - raw[..., 0]) / self.dispersion(raw)) ** 2, *self.alpha(raw))

    def _distribution(self, raw: Tensor) -> BarronDistribution:
        return BarronDistribution(raw[..., 0], self.dispersion(raw), *self.alpha(raw))

    def distribution(self, raw: Tensor) -> BarronDistribution:
        """The likelihood at raw[0]; none where shape and scale are both given."""
        if not self.has_distribution:
            raise TypeError(
                "Barron with a given alpha and scale is a loss, not a likelihood: it predicts a "
                "point, no distribution. Learn one of them, or use conformal intervals."
            )
        return self._distribution(raw)

    def point(self, raw: Tensor) -> Tensor:
        """The location f."""
        return raw[..., 0]
