"""The Tweedie likelihood: amounts that are often exactly zero."""

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from ansatz.likelihoods.dispersion import Dispersion, Resized
from ansatz.likelihoods.likelihood import (
    Dispersed,
    by_target,
    require_same_shape,
    unit_and_floor,
    weighted_mean,
    weighted_sd,
)
from ansatz.likelihoods.special.logarithms import soft_clamp
from ansatz.likelihoods.special.tweedie import log_density, unit_deviance
from ansatz.likelihoods.tweedie_distribution import TweedieDistribution


class Tweedie(Dispersed):
    r"""Amounts >= 0 that are often exactly 0: a Poisson number of gamma amounts, added up.

    .. math:: -\log p(y) = \frac{d(y, \mu)}{2\phi} + \log y - C(y, \phi, p), \qquad
              d = 2\left(\frac{y^{2-p}}{(1-p)(2-p)} - \frac{y\mu^{1-p}}{1-p}
              + \frac{\mu^{2-p}}{2-p}\right)

    and :math:`-\log P(y = 0) = \mu^{2-p}/(\phi(2 - p))`, with :math:`\log\mu` = raw[0] (log link),
    the dispersion :math:`\phi` = unit * softplus(raw[1]) + floor and a power :math:`1 < p < 2`, so
    that the variance is :math:`\phi\mu^p`: insurance claims, rainfall, catches. C is an infinite
    series, ``log_series`` of ``likelihoods.special.tweedie``; the loss is exact, computed in
    double precision and twice differentiable in :math:`\mu, \phi` and p. A learned p lies in
    (1.01, 1.99).

    The unit is the moments' :math:`\phi`, var(y) / mean^p; the floor is (sd floor)^2 / mean^p with
    the normal distribution's sd floor, at most half the unit. raw[0] beyond +-50 grows
    logarithmically.

    Args:
        dispersion: phi ``"predicted"`` from x, ``"constant"`` as in glm, or known.
        power: p, a number in [1.01, 1.99], or ``"learned"``: one number that does not depend on x.

    Shapes:
        - raw: ``(..., 2)``, or ``(..., 1)`` unless the dispersion is predicted.
        - y: ``(...)``, numbers >= 0.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Tweedie
        >>> Tweedie(dispersion=1.0).loss(torch.zeros(2, 1), torch.tensor([0.0, 1.0]))
        tensor([2.0000, 1.0286])

    References:
        Jorgensen (1987), Exponential dispersion models.
        Dunn and Smyth (2005), Series evaluation of Tweedie exponential dispersion model densities.
        https://doi.org/10.1007/s11222-005-4070-y
    """

    name = "tweedie"
    support = "nonnegative"
    link_name = "log"

    def __init__(
        self, *, dispersion: Dispersion = "predicted", power: Literal["learned"] | float = 1.5
    ) -> None:
        super().__init__(dispersion=dispersion)
        self.power = _Power(power)

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the dispersion; one power per target."""
        dtype, y, weight = y.dtype, y.double(), weight.double()
        self.power.observe(weight.new_zeros(y.shape[1:]).to(dtype))
        p = self.power.value(torch.float64).detach()
        _, floor = unit_and_floor(y, weight)
        mean, sd = weighted_mean(y, weight), weighted_sd(y, weight)
        mean = torch.where(mean > 0, mean, 1.0)
        unit, floor = sd**2 / mean**p, floor**2 / mean**p
        least = torch.maximum(2 * floor, 1e-6 * mean ** (2 - p))
        unit = torch.where(sd > 1e-9 * mean, unit, least)
        self.dispersion.observe(unit.to(dtype), torch.minimum(floor, unit / 2).to(dtype))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Log mean, and the maximum-likelihood phi and p; the scale is sd / mean, at most 1.

        Zeros alone have no finite maximum-likelihood log mean: they start from a mean of 1e-3.
        """
        mean, sd = weighted_mean(y, weight), weighted_sd(y, weight)
        solved = by_target(self._constant, y, weight)
        phi, p = (
            torch.tensor(part).to(y).reshape(y.shape[1:]) for part in zip(*solved, strict=True)
        )
        self.power.start(p)
        mean = torch.where(mean > 0, mean, 1e-3)
        scale = torch.where(sd > 0, (sd / mean).clamp(max=1), 1.0)
        return self.dispersion.append(mean.log(), scale, phi)

    def _constant(self, y: Tensor, weight: Tensor, target: int) -> tuple[float, float]:
        """phi and p of one target."""
        unit, floor, known = (
            float(v.double().reshape(-1).expand(max(v.numel(), target + 1))[target])
            for v in (self.dispersion.unit, self.dispersion.floor, self.dispersion.known)
        )
        power = None if self.power.raw is not None else float(self.power.known)
        if not bool((y > 0).any()):
            return unit, 1.5 if power is None else power
        dispersion = known if self.dispersion.kind == "known" else None
        return fit_tweedie(y, weight, dispersion, power, floor + 1e-4 * unit)

    def distribution(self, raw: Tensor) -> TweedieDistribution:
        """Tweedie with mean exp(raw[0])."""
        power = self.power.value(raw.dtype).expand(raw.shape[:-1])
        return TweedieDistribution(soft_clamp(raw[..., 0]), self.dispersion(raw), power)

    def unit_deviance(self, raw: Tensor, y: Tensor) -> Tensor:
        """d(y, mu) as above; 2 mu^(2-p) / (2 - p) at y = 0."""
        require_same_shape(self.name, raw, y)
        eta, p = soft_clamp(raw[..., 0]), self.power.value(raw.dtype)
        log_y = torch.where(y > 0, y, 1.0).log()
        return torch.where(y > 0, unit_deviance(log_y, eta, p), 2 * ((2 - p) * eta).exp() / (2 - p))

    def variance_function(self, mu: Tensor) -> Tensor:
        """V(mu) = mu^p."""
        return mu ** self.power.value(mu.dtype)


class _Power(Resized):
    """p, known or learned through an unbounded number."""

    resized = ("raw",)
    known: Tensor

    def __init__(self, power: Literal["learned"] | float) -> None:
        super().__init__()
        learned = power == "learned"
        known = isinstance(power, (int, float)) and not isinstance(power, bool)
        if not learned and not (known and LEAST <= float(power) <= MOST):
            raise ValueError(
                f"power of Tweedie must be 'learned' or a number in [{LEAST}, {MOST}], "
                f"got {power!r}. For 1 use poisson, for 2 gamma, for 3 inverse_gaussian."
            )
        self.register_buffer("known", torch.tensor(float(power) if not learned else 1.5))
        self.raw = nn.Parameter(torch.tensor(0.0)) if learned else None

    def observe(self, like: Tensor) -> None:
        """One learned power per target."""
        if self.raw is not None:
            self.raw = nn.Parameter(torch.zeros_like(like))

    def start(self, power: Tensor) -> None:
        """Sets a learned power."""
        if self.raw is not None:
            share = ((power.double() - LEAST) / (MOST - LEAST)).clamp(1e-9, 1 - 1e-9)
            self.raw = nn.Parameter(torch.logit(share).to(power.dtype).detach().clone())

    def value(self, dtype: torch.dtype) -> Tensor:
        """p, ``()`` or ``(K,)``."""
        return self.known.to(dtype) if self.raw is None else power_of(self.raw.to(dtype))


LEAST, MOST = 1.01, 1.99  # of the power: nearer to 1 or 2 the series has no end


def power_of(r: Tensor) -> Tensor:
    """The power of an unbounded number, 1.5 at 0."""
    return LEAST + (MOST - LEAST) * torch.sigmoid(r)


def fit_tweedie(
    y: Tensor, weight: Tensor, dispersion: float | None, power: float | None, floor: float
) -> tuple[float, float]:
    """Fits dispersion phi and power p at a constant mean, the sample's.

    Newton's method in log phi and in the number behind p, on distinct values; many of them start
    where some 5,000 of them lead.
    """
    values, back = y.double().unique(return_inverse=True)
    share = torch.zeros_like(values).index_add_(0, back, weight.double())
    share = share / share.sum()
    mean = (share * values).sum()
    values = values / mean  # phi is in units of mean^(2 - p) from here
    log_mean, log_unit = torch.zeros((), dtype=torch.float64), float(mean.log())
    if len(values) == 1:
        return floor if dispersion is None else dispersion, 1.5 if power is None else power

    def unpack(theta: Tensor) -> tuple[Tensor, Tensor]:
        p = theta.new_tensor(power) if power is not None else power_of(theta[-1])
        if dispersion is None:
            return theta[0].exp(), p
        return dispersion * ((p - 2) * log_unit).exp(), p

    def fit(values: Tensor, share: Tensor, start: np.ndarray) -> np.ndarray:
        def loss(theta: Tensor) -> Tensor:
            terms = log_density(values, log_mean, *(v.expand_as(values) for v in unpack(theta)))
            return -(share * terms).sum()

        return _newton(loss, start)

    variance = float((share * (values - 1) ** 2).sum())
    start = np.array([math.log(variance)] * (dispersion is None) + [0.0] * (power is None))
    if start.size:
        every = len(values) // 5_000
        if every > 1:
            few = share[::every] / share[::every].sum()
            start = fit(values[::every], few, start)
        start = fit(values, share, start)
    phi, p = (float(v) for v in unpack(torch.as_tensor(start)))
    return max(phi * math.exp((2 - p) * log_unit), floor) if dispersion is None else dispersion, p


def _newton(loss, theta: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Damped Newton on one or two numbers, each step at most 1, derivatives by autograd."""

    def derivatives(at: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        point = torch.as_tensor(at).requires_grad_()
        value = loss(point)
        (gradient,) = torch.autograd.grad(value, point, create_graph=True)
        rows = [torch.autograd.grad(g, point, retain_graph=True)[0] for g in gradient]
        return float(value.detach()), gradient.detach().numpy(), torch.stack(rows).numpy()

    with torch.enable_grad():
        value, gradient, hessian = derivatives(theta)
        for _ in range(60):
            roots, basis = np.linalg.eigh(hessian)
            step = -basis @ ((basis.T @ gradient) / np.maximum(np.abs(roots), 1e-6))
            step = np.clip(step, -1, 1)
            for _ in range(30):
                new = np.clip(theta + step, -30, 30)
                found = derivatives(new)
                if found[0] <= value + 1e-13 * (1 + abs(value)):
                    break
                step = step / 2
            theta, (value, gradient, hessian) = new, found
            if np.abs(step).max() < 1e-12 or np.abs(gradient).max() < 1e-14:
                break
    return theta
