"""The normal distribution: regression with a mean and a standard deviation."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods.dispersion import Dispersion
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import (
    Dispersed,
    require_same_shape,
    unit_and_floor,
    weighted_mean,
    weighted_sd,
)
from ansatz.likelihoods.special.normal import log_ndtr


class NormalDistribution(Distribution):
    """N(mean, sd^2).

    Args:
        mean: location, any shape.
        sd: standard deviation, positive, the same shape.

    Example:
        >>> import torch
        >>> NormalDistribution(torch.zeros(1), torch.ones(1)).log_survival(torch.tensor([40.0]))
        tensor([-804.6085])
    """

    symmetric = True

    def __init__(self, mean: Tensor, sd: Tensor) -> None:
        self._mean, self.sd = torch.broadcast_tensors(mean, sd)

    @property
    def mean(self) -> Tensor:
        """The location."""
        return self._mean

    @property
    def variance(self) -> Tensor:
        """The squared standard deviation."""
        return self.sd**2

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self._mean

    @property
    def entropy(self) -> Tensor:
        """Log sd + log(2 pi e)/2."""
        return self.sd.log() + 0.5 * math.log(2 * math.pi * math.e)

    def _z(self, y: Tensor) -> Tensor:
        return (y - self._mean) / self.sd

    def log_prob(self, y: Tensor) -> Tensor:
        """-z^2/2 - log sd - log(2 pi)/2 with z = (y - mean)/sd."""
        return -0.5 * self._z(y) ** 2 - self.sd.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, y: Tensor) -> Tensor:
        """Phi(z)."""
        # erfc, as torch's ndtr is (1 + erf)/2, which has lost ten digits at z = -6
        return 0.5 * torch.erfc(-self._z(y) / math.sqrt(2))

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log Phi(z), accurate in both tails."""
        return log_ndtr(self._z(y))

    def log_survival(self, y: Tensor) -> Tensor:
        """Log Phi(-z)."""
        return log_ndtr(-self._z(y))

    def icdf(self, q: Tensor) -> Tensor:
        """Mean + sd Phi^{-1}(q)."""
        return self._mean + self.sd * torch.special.ndtri(q)

    def crps(self, y: Tensor) -> Tensor:
        """Sd (z (2 Phi(z) - 1) + 2 phi(z) - 1/sqrt(pi)) (Gneiting and Raftery 2007, eq. 21)."""
        z = self._z(y)
        density = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        return self.sd * (z * torch.erf(z / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi))

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        sd = self.sd
        noise = torch.randn(size, generator=generator, dtype=sd.dtype, device=sd.device)
        return self._mean + sd * noise


class Normal(Dispersed):
    r"""Real outcomes with symmetric, light-tailed noise.

    .. math:: -\log p(y) = \frac{(y - \mu)^2}{2 \sigma^2} + \log \sigma + \frac12 \log 2\pi

    with :math:`\mu` = raw[0] (identity link) and :math:`\sigma` = unit * softplus(raw[1]) + floor.
    The unit is sd(y); the floor is max(1e-3 sd(y), resolution of y / sqrt(12)).

    A predicted standard deviation overfits before the mean has converged, so the training loss is
    beta-NLL: each row's loss is weighted by :math:`\sigma^{2\beta}`, held constant. Scores use the
    plain NLL.

    Args:
        dispersion: ``"predicted"`` from x, ``"constant"`` as in a linear model, or the known sd.
        beta: 0 trains by the plain NLL, 1 by squared error; 0.5 is a good compromise.

    Shapes:
        - raw: ``(..., 2)``, or ``(..., 1)`` unless the dispersion is predicted.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Normal
        >>> Normal(dispersion=1.0).loss(torch.zeros(1, 1), torch.zeros(1))
        tensor([0.9189])

    References:
        Seitzer et al. (2022), On the pitfalls of heteroscedastic uncertainty estimation.
        https://arxiv.org/abs/2203.09168
    """

    name = "normal"
    support = "real"

    def __init__(self, *, dispersion: Dispersion = "predicted", beta: float = 0.5) -> None:
        super().__init__(dispersion=dispersion)
        if not 0 <= beta <= 1:
            raise ValueError(f"beta of Normal must be in [0, 1], got {beta}.")
        self.beta = beta

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the standard deviation."""
        self.dispersion.observe(*unit_and_floor(y, weight))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and sd of y."""
        mean, sd = weighted_mean(y, weight), weighted_sd(y, weight)
        return self.dispersion.append(mean, torch.where(sd > 0, sd, torch.ones_like(sd)), sd)

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood times sd^(2 beta), in units of sd(y) and held constant."""
        if not self.dispersion.outputs or self.beta == 0:
            return self.loss(raw, y)
        sd = (self.dispersion(raw) / self.dispersion.unit.to(raw.dtype)).detach()
        return self.loss(raw, y) * sd ** (2 * self.beta)

    def distribution(self, raw: Tensor) -> NormalDistribution:
        """N(mu, sigma^2)."""
        return NormalDistribution(raw[..., 0], self.dispersion(raw))

    def unit_deviance(self, raw: Tensor, y: Tensor) -> Tensor:
        """(y - mu)^2."""
        require_same_shape(self.name, raw, y)
        return (y - raw[..., 0]) ** 2

    def variance_function(self, mu: Tensor) -> Tensor:
        """V(mu) = 1."""
        return torch.ones_like(mu)
