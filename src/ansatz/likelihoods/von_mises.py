"""The von Mises distribution: directions and times of day."""

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ansatz.likelihoods.dispersion import UnitScale
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Likelihood, unit_and_floor, weighted_mean
from ansatz.likelihoods.special.quadrature import gauss
from ansatz.likelihoods.special.tensors import wide
from ansatz.likelihoods.special.von_mises import (
    concentration,
    inverse_tail,
    log_bessel_series,
    log_von_mises_tail,
    resultant_gap,
)
from ansatz.likelihoods.support import refuse_where
from ansatz.spec import TargetSpec

LOG_2PI = math.log(2 * math.pi)


def wrap(angle: Tensor) -> Tensor:
    """The same direction within [-pi, pi]."""
    return angle - 2 * math.pi * torch.round(angle / (2 * math.pi))


class VonMisesDistribution(Distribution):
    r"""Directions with density proportional to :math:`e^{a \cos y + b \sin y}`.

    The mean direction is that of (a, b), the concentration kappa its length. Mean, variance and
    standard deviation are circular. The circle is cut opposite the mean direction: ``cdf`` counts
    from there, and quantiles and intervals lie within pi of the mean, so that an interval is an arc
    around it. Outcomes are wrapped; samples lie in [-pi, pi].

    Args:
        a: the first natural parameter, kappa cos(mean), any shape.
        b: the second, kappa sin(mean), the same shape.

    Example:
        >>> import torch
        >>> d = VonMisesDistribution(torch.tensor([-2.0]), torch.tensor([0.0]))
        >>> [round(bound.item(), 3) for bound in d.interval(0.5)]  # around pi
        [2.612, 3.671]
    """

    symmetric = True

    circular = True  # outcomes are directions: errors are angles

    def __init__(self, a: Tensor, b: Tensor) -> None:
        self.a, self.b = torch.broadcast_tensors(a, b)

    @property
    def _square(self) -> Tensor:
        return self.a**2 + self.b**2

    @property
    def kappa(self) -> Tensor:
        """The concentration, 0 for the uniform distribution; its gradient at 0 is taken as 0."""
        uniform = self._square == 0
        return torch.where(uniform, 0.0, torch.where(uniform, 1.0, self._square).sqrt())

    @property
    def mean(self) -> Tensor:
        """The mean direction in [-pi, pi], 0 for the uniform distribution, which has none."""
        uniform = self._square == 0
        return torch.atan2(torch.where(uniform, 0.0, self.b), torch.where(uniform, 1.0, self.a))

    @property
    def variance(self) -> Tensor:
        """The circular variance 1 - A(kappa), A = I1 / I0: from 0 to 1."""
        return resultant_gap(self.kappa)

    def _between(self, members: list[tuple[float, Distribution]]) -> Tensor:
        """What the circular variance of all exceeds the mean of the members' by."""
        within = sum(weight * member.variance for weight, member in members)
        return (self.variance - within).clamp(min=0)

    @property
    def stddev(self) -> Tensor:
        """The circular standard deviation sqrt(-2 log A(kappa)), in radians."""
        return (-2 * torch.log1p(-self.variance)).sqrt()

    @property
    def mode(self) -> Tensor:
        """The mean direction."""
        return self.mean

    @property
    def entropy(self) -> Tensor:
        """Log(2 pi I0(kappa)) - kappa A(kappa)."""
        k = self.kappa
        return LOG_2PI + torch.special.i0e(k).log() + k * resultant_gap(k)

    def log_prob(self, y: Tensor) -> Tensor:
        """A cos y + b sin y - log I0(kappa) - log 2 pi, smooth in a and b.

        With d = a cos y + b sin y and c = a sin y - b cos y the difference kappa - d is
        c^2 / (kappa + d): for a large kappa it is small, and would have no digits left.
        """
        d = self.a * y.cos() + self.b * y.sin()
        c = self.a * y.sin() - self.b * y.cos()
        square = self._square
        small = square < 1
        near = d - log_bessel_series(torch.where(small, square, 0.0))
        k = torch.where(small, 1.0, square).sqrt()
        ahead = d > 0
        gap = torch.where(ahead, c * c / (k + torch.where(ahead, d, 0.0)), k - d)
        far = -gap - torch.special.i0e(k).log()
        return torch.where(small, near, far) - LOG_2PI

    def _from_mean(self, y: Tensor) -> Tensor:
        return wrap(y - self.mean)

    def _tails(self, t: Tensor) -> Tensor:
        """log P(T > |t|); where, not abs, as abs has no slope at 0."""
        return log_von_mises_tail(torch.where(t < 0, -t, t).clamp(max=math.pi), self.kappa)

    def log_cdf(self, y: Tensor) -> Tensor:
        """The log probability of the arc from opposite the mean to y."""
        t = self._from_mean(y)
        tail = self._tails(t)
        return torch.where(t < 0, tail, torch.log1p(-tail.exp()))

    def log_survival(self, y: Tensor) -> Tensor:
        """The log probability of the arc from y to opposite the mean."""
        t = self._from_mean(y)
        tail = self._tails(t)
        return torch.where(t < 0, torch.log1p(-tail.exp()), tail)

    def log_interval(self, lower: Tensor, upper: Tensor) -> Tensor:
        """The log probability of the arc that goes from ``lower`` up to ``upper``, over any cut.

        An infinite end is the cut opposite the mean.
        """
        open_below, open_above = lower == -math.inf, upper == math.inf
        width = torch.where(open_below | open_above, 0.0, upper - lower)
        start = self._from_mean(torch.where(open_below, self.mean, lower))
        end = torch.where(open_above, 0.0, upper)
        over = ~open_below & ~open_above & (start + width > math.pi)
        first = torch.where(open_below, -math.inf, self.mean + start)
        last = torch.where(open_below, end, self.mean + start + width)
        last = torch.where(open_above, math.inf, last)
        within = super().log_interval(first, torch.where(over, math.inf, last))
        beyond = self.log_cdf(torch.where(over, end, self.mean))
        both = torch.logaddexp(within, torch.where(over, beyond, -math.inf))
        value = torch.where(over, both, within)
        return torch.where(width >= 2 * math.pi, torch.zeros_like(value), value)

    def _solve(self, q: Tensor) -> Tensor:
        mean, kappa, level = torch.broadcast_tensors(self.mean, self.kappa, q)
        k, p = wide(kappa, level)
        valid = (p >= 0) & (p <= 1)
        tail = torch.where(valid, torch.minimum(p, 1 - p), 0.5)
        x = inverse_tail(tail.log(), k).to(mean)
        return torch.where(valid.to(mean.device), mean + torch.where(level < 0.5, -x, x), math.nan)

    def crps(self, y: Tensor) -> Tensor:
        r"""The circular score :math:`E\,d(Y, y) - \tfrac12 E\,d(Y, Y')` with d the angle between.

        Each expectation by Gauss-Legendre; that of two independent angles is over the density
        I0(2 kappa cos(u/2)) / (2 pi I0(kappa)^2) of their difference u (Grimit et al. 2006).
        """
        t, k = wide(self._from_mean(y).abs(), self.kappa)
        return (_mean_distance(t, k) - _mean_difference(k) / 2).to(y)

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """Independent draws in [-pi, pi], by Best and Fisher's rejection."""
        mean = self.mean.expand(size)
        angle = best_fisher(self.kappa.expand(mean.shape), generator)
        return wrap(mean + angle)


def _mean_distance(t: Tensor, k: Tensor) -> Tensor:
    """E d(Y, y) with y at an angle t >= 0 from the mean, panel by panel of smoothness."""
    nodes, weights = gauss("legendre", 32, t)
    share = (20.0 / k.clamp(min=1e-300)).clamp(max=1)  # e^-40 beyond
    end = 2 * torch.asin(share.sqrt())
    opposite = torch.maximum(t - math.pi, -end)
    beside = torch.minimum(t, end)
    edges = (-end, opposite, torch.zeros_like(t), beside, end)
    total = torch.zeros_like(t)
    for i, (low, high) in enumerate(pairwise(edges)):
        angle = low.unsqueeze(-1) + (high - low).unsqueeze(-1) * nodes
        gap = t.unsqueeze(-1) - angle
        distance = (2 * math.pi - gap, gap, gap, -gap)[i]
        density = (-2 * k.unsqueeze(-1) * torch.sin(angle / 2) ** 2).exp()
        total = total + (weights * density * distance).sum(-1) * (high - low)
    return total / (2 * math.pi * torch.special.i0e(k))


def _mean_difference(k: Tensor) -> Tensor:
    """E d(Y, Y') of two independent angles."""
    nodes, weights = gauss("legendre", 48, k)
    share = (10.0 / k.clamp(min=1e-300)).clamp(max=0.5)
    end = 4 * torch.asin(share.sqrt())
    u = end.unsqueeze(-1) * nodes
    wide_k = k.unsqueeze(-1)
    bessel = torch.special.i0e(2 * wide_k * torch.cos(u / 2))
    density = bessel * (-4 * wide_k * torch.sin(u / 4) ** 2).exp()
    return (weights * density * u).sum(-1) * end / (math.pi * torch.special.i0e(k) ** 2)


class VonMises(Likelihood):
    r"""Directions, in radians: wind, time of day, orientation.

    .. math:: -\log p(y) = \log 2\pi + \log I_0(\kappa) - a \cos y - b \sin y,
              \qquad \kappa = \sqrt{a^2 + b^2}

    with (a, b) = raw, the natural parameters: their direction is the mean direction, their length
    the concentration (0: uniform; large: normal with variance 1/kappa). No angle is predicted, so
    that nothing jumps at a cut and the loss is smooth everywhere, at 0 too.

    kappa is exact up to a limit L and grows as L (1 + log(kappa / L)) beyond: L = 1 / floor^2
    with the normal distribution's sd floor, max(1e-3 of the sd, resolution / sqrt(12)); 1e6
    before outcomes are seen.

    Shapes:
        - raw: ``(..., 2)``.
        - y: ``(...)``, radians between -2 pi and 2 pi.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import VonMises
        >>> VonMises().loss(torch.zeros(1, 2), torch.tensor([3.0]))  # log 2 pi
        tensor([1.8379])

    References:
        Mardia and Jupp (2000), Directional Statistics, section 3.5.4 and 5.3.
        Grimit et al. (2006), The continuous ranked probability score for circular variables.
        https://doi.org/10.1256/qj.05.235
    """

    name = "von_mises"

    def __init__(self) -> None:
        super().__init__()
        self.limit = UnitScale(1e6)

    def outputs(self, target: TargetSpec) -> int:
        """2: the natural parameters."""
        return 2

    def check(self, y: Tensor) -> None:
        """Radians within one turn of 0; degrees are refused."""
        refuse_where(
            ~y.isfinite(), y, "Angles must be finite numbers", "Drop the row or repair the value."
        )
        refuse_where(
            y.abs() > 2 * math.pi + 1e-5,
            y,
            "Angles must be radians between -2 pi and 2 pi",
            "Convert degrees with np.deg2rad(y); hours of the day with y * 2 * np.pi / 24; "
            "radians of several turns with np.mod(y, 2 * np.pi).",
        )

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """The limit of the concentration."""
        direction, _ = _resultant(y, weight)
        _, floor = unit_and_floor(wrap(y - direction), weight)
        self.limit.observe((1 / floor**2).clamp(max=1e15))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The direction of the resultant, and the kappa with A(kappa) = its length."""
        direction, gap = _resultant(y, weight)
        limit = self.limit.value.to(direction)
        kappa = concentration(torch.maximum(gap, 0.5 / limit)).to(direction)
        shift = kappa.unsqueeze(-1) * torch.stack([direction.cos(), direction.sin()], -1)
        return shift, kappa.clamp(min=1).unsqueeze(-1).expand_as(shift).clone()

    def distribution(self, raw: Tensor) -> VonMisesDistribution:
        """Von Mises with natural parameters raw."""
        limit = self.limit.value.to(raw.dtype)
        square = (raw**2).sum(-1)
        over = square > limit**2
        length = torch.where(over, square, 1.0).sqrt() / torch.where(over, limit, 1.0)
        factor = torch.where(over, (1 + length.log()) / length, 1.0)
        return VonMisesDistribution(raw[..., 0] * factor, raw[..., 1] * factor)


def _resultant(y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The mean direction, and 1 - R with R the mean resultant length."""
    c, s = weighted_mean(y.cos(), weight), weighted_mean(y.sin(), weight)
    direction = torch.atan2(s, c)
    # 1 - R = mean of 2 sin^2 of half the angle from the mean: exact where all angles are alike
    gap = weighted_mean(2 * torch.sin((y - direction) / 2) ** 2, weight)
    return direction, gap


_ROUNDS = 200  # at least 65 % are accepted in each: 0.35^200 is nothing


def best_fisher(kappa: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Angles in [-pi, pi] around a mean direction 0, one per concentration.

    Rejection from a wrapped Cauchy distribution, in double precision. Below 1e-8 it is
    uniform to all digits that the algorithm could give, and beyond 1e8 normal with variance 1 /
    kappa. A kappa that is nan gives nan: the number of rounds is limited, so that nothing hangs.

    References:
        Best and Fisher (1979), Efficient simulation of the von Mises distribution.
        https://doi.org/10.2307/2346732
    """
    k = kappa.double()
    options: dict[str, Any] = {"generator": generator, "dtype": k.dtype, "device": k.device}
    uniform = math.pi * (2 * torch.rand(k.shape, **options) - 1)
    normal = torch.randn(k.shape, **options) / k.clamp(min=1e8).sqrt()
    angle = torch.where(k > 1e8, normal, uniform)
    pending = ~((k > 1e8) | (k < 1e-8))
    angle = torch.where(pending, math.nan, angle)
    where = pending.reshape(-1).nonzero().squeeze(-1)
    flat, k = angle.reshape(-1).clone(), k.reshape(-1)[where]
    r = _proposal(k)
    for _ in range(_ROUNDS):
        if not len(where):
            break
        u = torch.rand((3, len(where)), **options)
        z = torch.cos(math.pi * u[0])
        f = (1 + r * z) / (r + z)
        c = k * (r - f)
        accept = (c * (2 - c) > u[1]) | ((c / u[1]).log() + 1 >= c)
        drawn = torch.sign(u[2] - 0.5) * torch.acos(f.clamp(-1, 1))
        flat[where[accept]] = drawn[accept]
        where, k, r = where[~accept], k[~accept], r[~accept]
    return flat.reshape(kappa.shape).to(kappa.dtype)


def _proposal(k: Tensor) -> Tensor:
    """r = (1 + rho^2) / (2 rho)."""
    # rho = (tau - sqrt(2 tau)) / (2 k), tau = 1 + sqrt(1 + 4 k^2); with h = tau - 2 small for
    # small k, tau - sqrt(2 tau) = sqrt(tau) h / (sqrt(tau) + sqrt(2)).
    root = torch.sqrt(1 + 4 * k * k)
    tau, h = 1 + root, 4 * k * k / (root + 1)
    rho = tau.sqrt() * h / (tau.sqrt() + math.sqrt(2)) / (2 * k)
    return (1 + rho * rho) / (2 * rho)
