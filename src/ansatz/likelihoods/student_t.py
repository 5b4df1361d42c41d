"""Student's t: regression that outliers do not steer."""

import math
from typing import Literal

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from ansatz.likelihoods.dispersion import Dispersion, PositiveHead
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import (
    Dispersed,
    by_target,
    require_same_shape,
    unit_and_floor,
    weighted_median,
)
from ansatz.likelihoods.special.gamma import log_gamma_half
from ansatz.likelihoods.special.student import log_density, log_student_cdf, student_quantile
from ansatz.likelihoods.special.tensors import wide

LEAST, MOST = 2.0, 1000.0  # of a nu that is estimated


def fit_student(
    z: Tensor, weight: Tensor, scale: Tensor | None, floor: float, nu: float | None
) -> tuple[Tensor, Tensor, float]:
    """Fits location, scale and nu to the weighted loss, by a trust-region Newton method.

    In (location, log(scale - floor), log(nu - 2)). Many rows start where some 10,000 of their
    order statistics lead, and need a few steps from there.
    """
    free_nu = nu is None

    def unpack(theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        s = theta[1].exp() + floor if scale is None else scale
        n = theta[-1].exp() + LEAST if free_nu else torch.as_tensor(nu).to(theta)
        return theta[0], s, n

    def loss(theta: Tensor) -> Tensor:
        m, s, n = unpack(theta)
        return (weight * (s.log() - log_density((z - m) / s, n))).sum()

    if bool((z == z[0]).all()):  # the likelihood rises all the way to a spike: stay at the floor
        return z[0], z.new_tensor(floor) if scale is None else scale, MOST if nu is None else nu
    start = [0.0] + [0.0] * (scale is None) + [math.log(6.0)] * free_nu
    if len(z) > 20_000:
        z, order = z.sort()
        weight, every = weight[order], len(z) // 10_000
        near = fit_student(z[::every], weight[::every], scale, floor, nu)
        start[0] = float(near[0])
        if scale is None:
            start[1] = math.log(max(float(near[1]) - floor, 1e-9))
        if free_nu:
            start[-1] = math.log(min(near[2], 0.8 * MOST) - LEAST)
    theta = _newton(loss, start, z)
    m, s, n = unpack(theta)
    if free_nu and not float(n) < 0.9 * MOST:  # it rises all the way to the normal distribution
        return fit_student(z, weight, scale, floor, MOST)
    return m, s, float(n)


def _newton(loss, start: list[float], like: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
    """Trust-region Newton on a handful of numbers, derivatives by autograd."""

    def value_and_gradient(theta: np.ndarray) -> tuple[float, np.ndarray]:
        point = torch.as_tensor(theta).to(like).requires_grad_()
        value = loss(point)
        (gradient,) = torch.autograd.grad(value, point)
        return float(value.detach()), gradient.cpu().numpy()

    def hessian(theta: np.ndarray) -> np.ndarray:
        point = torch.as_tensor(theta).to(like)
        return torch.autograd.functional.hessian(loss, point).cpu().numpy()

    def halt(theta: np.ndarray) -> None:
        # On its way to infinity: a nu above its cap, a scale at its floor.
        if theta[1:].max(initial=0.0) > math.log(MOST) or theta[1:].min(initial=0.0) < -25:
            raise StopIteration

    with torch.enable_grad():
        found = minimize(
            value_and_gradient,
            np.array(start),
            jac=True,
            hess=hessian,
            method="trust-exact",
            callback=halt,
            options={"gtol": 1e-9, "maxiter": 200},
        ).x
        for _ in range(2):  # the values are flat to rounding there, the gradient is not
            gradient, curvature = value_and_gradient(found)[1], hessian(found)
            if np.linalg.eigvalsh(curvature).min() > 1e-8:
                found = found - np.linalg.solve(curvature, gradient)
    return torch.as_tensor(found).to(like)


_UNIT = 8.0  # of a learned nu


class StudentTDistribution(Distribution):
    """Location + scale * T with T Student's t with nu degrees of freedom.

    Args:
        location: centre of symmetry, any shape.
        scale: positive, the same shape.
        nu: degrees of freedom, positive, the same shape.

    Example:
        >>> import torch
        >>> d = StudentTDistribution(torch.zeros(1), torch.ones(1), torch.ones(1))  # Cauchy
        >>> d.cdf(torch.tensor([1.0])), d.mean
        (tensor([0.7500]), tensor([nan]))
    """

    symmetric = True

    def __init__(self, location: Tensor, scale: Tensor, nu: Tensor) -> None:
        self.location, self.scale, self.nu = torch.broadcast_tensors(location, scale, nu)

    @property
    def mean(self) -> Tensor:
        """The location; nan where nu <= 1."""
        return torch.where(self.nu > 1, self.location, math.nan)

    @property
    def variance(self) -> Tensor:
        """scale^2 nu / (nu - 2); infinite where nu <= 2, nan where nu <= 1."""
        finite = self.nu > 2
        ratio = self.nu / torch.where(finite, self.nu - 2, 1.0)
        value = torch.where(finite, self.scale**2 * ratio, math.inf)
        return torch.where(self.nu > 1, value, math.nan)

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.location

    @property
    def entropy(self) -> Tensor:
        """log(scale) - log f(0) + (nu + 1)/2 (digamma((nu + 1)/2) - digamma(nu/2))."""
        nu = self.nu
        rise = torch.digamma((nu + 1) / 2) - torch.digamma(nu / 2)
        at_zero = log_density(torch.zeros_like(nu), nu)
        return self.scale.log() - at_zero + 0.5 * (nu + 1) * rise

    def _z(self, y: Tensor) -> Tensor:
        return (y - self.location) / self.scale

    def log_prob(self, y: Tensor) -> Tensor:
        """The log density of z = (y - location) / scale, less log(scale)."""
        return log_density(self._z(y), self.nu) - self.scale.log()

    def log_cdf(self, y: Tensor) -> Tensor:
        """log P(T <= z), accurate in both tails, differentiable in everything."""
        return log_student_cdf(self._z(y), self.nu)

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(T <= -z): the distribution is symmetric."""
        return log_student_cdf(-self._z(y), self.nu)

    def _solve(self, q: Tensor) -> Tensor:
        location, scale, nu, level = torch.broadcast_tensors(self.location, self.scale, self.nu, q)
        # By symmetry from the smaller tail, where q has digits to give.
        t = student_quantile(*wide(torch.minimum(level, 1 - level), nu)).to(level)
        return location + scale * torch.where(level < 0.5, -t, t)

    def crps(self, y: Tensor) -> Tensor:
        """Scale times the score of z (Jordan, Krueger and Lerch 2019); infinite where nu <= 1.

        z (2 F(z) - 1) + 2 f(z) (nu + z^2)/(nu - 1)
        - 2 sqrt(nu)/(nu - 1) B(1/2, nu - 1/2) / B(1/2, nu/2)^2.
        """
        exists = self.nu > 1
        z, nu = self._z(y), torch.where(exists, self.nu, 2.0)
        twice = 2 * log_student_cdf(z, nu).exp() - 1
        density = log_density(z, nu).exp()
        # log B(1/2, b) = log sqrt(pi) - (log Gamma(b + 1/2) - log Gamma(b))
        log_ratio = -log_gamma_half(nu - 0.5) + 2 * log_gamma_half(nu / 2) - 0.5 * math.log(math.pi)
        pair = 2 * nu.sqrt() / (nu - 1) * log_ratio.exp()
        score = z * twice + 2 * density * (nu + z * z) / (nu - 1) - pair
        return torch.where(exists, self.scale * score, math.inf)

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """A normal one over the root of a gamma one."""
        half = (self.nu / 2).expand(size).contiguous()
        noise = torch.randn(half.shape, generator=generator, dtype=half.dtype, device=half.device)
        tiny = torch.finfo(half.dtype).tiny
        mix = (torch._standard_gamma(half, generator=generator) / half).clamp(min=tiny)
        return self.location + self.scale * noise / mix.sqrt()


class StudentT(Dispersed):
    r"""Real outcomes with outliers: polynomial tails, so that a far point pulls ever less.

    .. math:: -\log p(y) = \frac{\nu + 1}{2} \log\left(1 + \frac{z^2}{\nu}\right) + \log\sigma
              + \log\frac{\sqrt{\pi\nu}\,\Gamma(\nu/2)}{\Gamma((\nu + 1)/2)},
              \qquad z = \frac{y - \mu}{\sigma}

    with :math:`\mu` = raw[0] (identity link), :math:`\sigma` = unit * softplus(raw[1]) + floor, and
    :math:`\nu` one learned number above 2 (so that the variance exists), or given. The unit of the
    scale is the median absolute deviation of y times 1.4826; the floor is the normal
    distribution's, max(1e-3 sd(y), resolution of y / sqrt(12)), at most half the unit. ``predict``
    gives the location. Where y has no heavier tails than normal, nu starts at 1000.

    Args:
        dispersion: sigma ``"predicted"`` from x, ``"constant"``, or known.
        nu: ``"learned"``, or any number > 0; 1 is the Cauchy distribution, which has no mean.

    Shapes:
        - raw: ``(..., 2)``, or ``(..., 1)`` unless the dispersion is predicted.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import StudentT
        >>> StudentT(dispersion=1.0, nu=1.0).loss(torch.zeros(1, 1), torch.zeros(1))  # log pi
        tensor([1.1447])

    References:
        Lange, Little and Taylor (1989), Robust statistical modeling using the t distribution.
        https://doi.org/10.2307/2290063
    """

    name = "student_t"
    support = "real"

    def __init__(
        self, *, dispersion: Dispersion = "predicted", nu: Literal["learned"] | float = "learned"
    ) -> None:
        super().__init__(dispersion=dispersion)
        if isinstance(nu, str) and nu != "learned":
            raise ValueError(f"nu of StudentT must be 'learned' or a number > 0, got {nu!r}.")
        self.freedom = PositiveHead("constant" if isinstance(nu, str) else nu)
        self.freedom.observe(torch.tensor(_UNIT), torch.tensor(LEAST))

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the scale; one nu per target."""
        sd, floor = unit_and_floor(y, weight)
        mad = 1.4826 * weighted_median((y - weighted_median(y, weight)).abs(), weight)
        unit = torch.where(mad > 0, mad, sd)
        self.dispersion.observe(unit, torch.minimum(floor, unit / 2))
        self.freedom.observe(torch.full_like(unit, _UNIT), torch.full_like(unit, LEAST))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood location, scale and nu, by a trust-region Newton method."""
        solved = by_target(self._solve_constant, y, weight)
        location, sigma, nu = (
            torch.stack(part).reshape(y.shape[1:]).to(y.dtype) for part in zip(*solved, strict=True)
        )
        self.freedom.start(nu)
        unit = self.dispersion.unit.to(y.dtype).expand_as(location)
        return self.dispersion.append(location, unit.clone(), sigma)

    def relax_shapes(self) -> None:
        """Nu of at most 10: the variance of the means hides heavy tails."""
        if self.freedom.constant is not None:
            nu = self.freedom.value(self.freedom.constant.dtype).detach()
            self.freedom.start(nu.clamp(max=LEAST + _UNIT))

    def _solve_constant(self, y: Tensor, weight: Tensor, target: int) -> tuple[Tensor, ...]:
        """Location, scale and nu of one target, all in double precision."""
        centre = weighted_median(y, weight)
        unit, floor, known = (
            v.double().reshape(-1).expand(max(v.numel(), target + 1))[target]
            for v in (self.dispersion.unit, self.dispersion.floor, self.dispersion.known)
        )
        z, weight = (y - centre) / unit, weight / weight.sum()
        scale = known / unit if self.dispersion.kind == "known" else None
        nu = float(self.freedom.known) if self.freedom.kind == "known" else None
        m, s, nu = fit_student(z, weight, scale, float(floor / unit), nu)
        return centre + unit * m, unit * s, torch.as_tensor(nu, dtype=y.dtype, device=y.device)

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The loss; its constant in nu by plain log-gammas, which are faster and exact enough."""
        require_same_shape(self.name, raw, y)
        sigma, nu = self.dispersion(raw), self.freedom.value(raw.dtype)
        z = (y - raw[..., 0]) / sigma
        norm = torch.lgamma(nu / 2) - torch.lgamma((nu + 1) / 2) + 0.5 * (math.pi * nu).log()
        return 0.5 * (nu + 1) * torch.log1p(z * z / nu) + sigma.log() + norm

    def distribution(self, raw: Tensor) -> StudentTDistribution:
        """Student's t at mu with scale sigma and nu degrees of freedom."""
        return StudentTDistribution(raw[..., 0], self.dispersion(raw), self.freedom(raw))

    def point(self, raw: Tensor) -> Tensor:
        """The location, which exists for every nu."""
        return raw[..., 0]
