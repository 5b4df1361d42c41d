"""A distribution of times that is known by its survival curve."""

import math
from typing import Literal

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution

_CAP = 1e30  # of the cumulative hazard: survival 0 without inf - inf


class CurveDistribution(Distribution):
    r"""Times Y >= 0 with a survival curve S(t) = P(Y > t) given on a grid.

    Between the grid's times the cumulative hazard :math:`H = -\log S` is a step function
    (``"step"``: all events fall on the grid, as Breslow's baseline has it; flat beyond the last
    time) or linear (``"linear"``: a constant hazard in each interval, the last one continued).

    A curve rarely reaches 0: quantiles that it does not reach are infinite, and ``mean``,
    ``variance`` and ``crps`` are *restricted* to the last time h of the grid: those of
    min(Y, h). ``restricted_mean`` takes any horizon.

    ``knots`` are 0 and the times, ``(T + 1,)``; ``hazard`` is H at them and ``slope`` its slope
    beyond each, ``(..., T + 1)``.

    Args:
        times: ``(T,)``, increasing, >= 0.
        survival: ``(..., T)``, S at the times, not increasing.
        interpolation: ``"step"`` or ``"linear"``, as above.

    Example:
        >>> import torch
        >>> curve = CurveDistribution(torch.tensor([1.0, 3.0]), torch.tensor([[0.8, 0.4]]))
        >>> curve.median, curve.restricted_mean(4.0)  # 1 * 1 + 2 * 0.8 + 1 * 0.4
        (tensor([3.]), tensor([3.]))

    References:
        Royston and Parmar (2013), Restricted mean survival time.
        https://doi.org/10.1186/1471-2288-13-152
    """

    lower = 0.0

    def __init__(
        self, times: Tensor, survival: Tensor, *, interpolation: Literal["step", "linear"] = "step"
    ) -> None:
        self._hold(times, -survival.log(), interpolation)

    @classmethod
    def of_hazard(
        cls,
        times: Tensor,
        cumulative_hazard: Tensor,
        *,
        interpolation: Literal["step", "linear"] = "step",
    ) -> "CurveDistribution":
        """From H = -log S, ``(..., T)``, which has digits where S underflows."""
        curve = cls.__new__(cls)
        curve._hold(times, cumulative_hazard, interpolation)
        return curve

    def _hold(self, times: Tensor, hazard: Tensor, interpolation: str) -> None:
        if interpolation not in ("step", "linear"):
            raise ValueError(f"interpolation must be 'step' or 'linear', got {interpolation!r}.")
        if times.ndim != 1 or not len(times) or hazard.shape[-1:] != times.shape:
            raise ValueError(
                "a curve needs times (T,) and values (..., T) with T >= 1, "
                f"got {tuple(times.shape)} and {tuple(hazard.shape)}."
            )
        hazard = hazard.clamp(0, _CAP)
        self.interpolation = interpolation
        self.reparameterized = interpolation == "linear"
        self.times = times.to(hazard)
        self.horizon = self.times[-1]
        self.knots = torch.cat([self.times.new_zeros(1), self.times])  # (T + 1,)
        self.hazard = torch.cat([torch.zeros_like(hazard[..., :1]), hazard], -1)
        self.slope = torch.zeros_like(self.hazard)  # of H beyond each knot
        if interpolation == "linear":
            width = self.knots.diff()
            steps = self.hazard.diff(dim=-1) / torch.where(width > 0, width, math.inf)
            self.slope = torch.cat([steps, steps[..., -1:]], -1)

    @property
    def batch_shape(self) -> torch.Size:
        """One curve per element."""
        return self.hazard.shape[:-1]

    @property
    def survival(self) -> Tensor:
        """S at the times of the grid, ``(..., T)``."""
        return (-self.hazard[..., 1:]).exp()

    @property
    def mean(self) -> Tensor:
        """The restricted mean E[min(Y, h)], h being the last time of the grid."""
        return self.restricted_mean(self.horizon)

    @property
    def variance(self) -> Tensor:
        """The restricted variance Var[min(Y, h)] = 2 * integral of t S(t) over [0, h] - mean^2."""
        width, start = self.knots.diff(), self.knots[:-1]
        z = self.slope[..., :-1] * width
        survival = (-self.hazard[..., :-1]).exp()
        inner = survival * (start * width * _phi1(z) + width**2 * _phi2(z))
        return (2 * inner.sum(-1) - self.mean**2).clamp(min=0)

    def log_survival(self, y: Tensor) -> Tensor:
        """Log S(y)."""
        _, hazard, slope, beyond = self._at(y)
        return -(hazard + slope * beyond)

    def cdf(self, y: Tensor) -> Tensor:
        """1 - S(y)."""
        return -torch.expm1(self.log_survival(y))

    def log_prob(self, y: Tensor) -> Tensor:
        """Log hazard + log survival where the hazard is constant between times.

        A curve of steps has no density.
        """
        if self.interpolation == "step":
            raise TypeError(
                "a survival curve of steps has no density: compare it by Brier score, C or crps."
            )
        _, hazard, slope, beyond = self._at(y)
        none = (slope == 0) | (y < 0)
        value = torch.where(none, 1.0, slope).log() - hazard - slope * beyond
        return torch.where(none, -math.inf, value)

    def icdf(self, q: Tensor) -> Tensor:
        """The first time with 1 - S >= q, infinite where the curve never gets there."""
        if self.interpolation == "step":
            with torch.no_grad():
                return self._solve(q)
        return super().icdf(q)

    def _solve(self, q: Tensor) -> Tensor:
        level = -torch.log1p(-q.clamp(0, 1))
        shape = torch.broadcast_shapes(level.shape, self.batch_shape)
        rows = level.expand(shape).reshape(-1, *self.batch_shape).movedim(0, -1).contiguous()
        place = torch.searchsorted(self.hazard.contiguous(), rows)  # the first H >= level
        place = place.movedim(-1, 0).reshape(shape)
        level, count = level.expand(shape), len(self.knots)
        knots = torch.cat([self.knots, self.knots.new_full((1,), math.inf)])
        if self.interpolation == "step":
            return torch.where((q >= 0) & (q <= 1), knots[place], math.nan)
        before = (place - 1).clamp(0, count - 1)
        hazard, slope = self._take(self.hazard, before), self._take(self.slope, before)
        beyond = (level - hazard).clamp(min=0) / slope
        y = torch.where(beyond > 0, knots[before] + beyond, knots[before])
        return torch.where((q >= 0) & (q <= 1), torch.where(place == 0, 0.0, y), math.nan)

    def restricted_mean(self, horizon: float | Tensor) -> Tensor:
        """E[min(Y, horizon)], the area under the survival curve up to the horizon."""
        return self._area(torch.as_tensor(horizon).to(self.knots), 1)

    def crps(self, y: Tensor) -> Tensor:
        """The score restricted to [0, h]: the integral of (F - 1[t >= y])^2 up to the last time.

        With y' = min(y, h) it is y' - 2 * area of S up to y' + area of S^2 up to h.
        """
        y = torch.minimum(y.clamp(min=0), self.horizon)
        return y - 2 * self._area(y, 1) + self._area(self.horizon, 2)

    def _area(self, t: Tensor, power: int) -> Tensor:
        """The integral of S^power over [0, t]."""
        width = self.knots.diff()
        height = (-power * self.hazard).exp()
        areas = height[..., :-1] * width * _phi1(power * self.slope[..., :-1] * width)
        sums = torch.cat([torch.zeros_like(areas[..., :1]), areas.cumsum(-1)], -1)
        place, hazard, slope, beyond = self._at(t)
        rest = (-power * hazard).exp() * beyond * _phi1(power * slope * beyond)
        return self._take(sums, place) + rest

    def _at(self, t: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Place of the last knot <= t, hazard there, slope beyond it, and the time since."""
        t = (
            t.to(self.knots.dtype)
            .clamp(min=0)
            .expand(torch.broadcast_shapes(t.shape, self.batch_shape))
        )
        place = torch.searchsorted(self.knots, t.detach().contiguous(), right=True) - 1
        beyond = t - self.knots[place]
        if self.interpolation == "step":  # also at an infinite time
            beyond = torch.where(t.isinf(), 0.0, beyond)
        return place, self._take(self.hazard, place), self._take(self.slope, place), beyond

    def _take(self, values: Tensor, place: Tensor) -> Tensor:
        return values.expand(*place.shape, -1).gather(-1, place.unsqueeze(-1)).squeeze(-1)


def _phi1(z: Tensor) -> Tensor:
    """(1 - e^-z) / z, the mean of e^-s over [0, z]."""
    safe = torch.where(z == 0, 1.0, z)
    return torch.where(z == 0, 1.0, -torch.expm1(-safe) / safe)


def _phi2(z: Tensor) -> Tensor:
    """(1 - e^-z (1 + z)) / z^2, by its series where the terms cancel."""
    small = z < 0.5
    near, total = torch.where(small, z, 0.0), torch.zeros_like(z)
    for n in range(14, -1, -1):
        total = total * -near + (n + 1) / math.factorial(n + 2)
    far = torch.where(small, 1.0, z)
    return torch.where(small, total, (-torch.expm1(-far) / far - (-far).exp()) / far)
