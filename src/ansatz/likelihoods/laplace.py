"""The Laplace distribution: regression on the median."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Dispersed, unit_and_floor, weighted_mean, weighted_median
from ansatz.likelihoods.special.tensors import absolute


class LaplaceDistribution(Distribution):
    """The density exp(-|y - location| / scale) / (2 scale).

    Args:
        location: the median, any shape.
        scale: the mean absolute deviation, positive, the same shape.

    Example:
        >>> import torch
        >>> LaplaceDistribution(torch.zeros(1), torch.ones(1)).log_survival(torch.tensor([50.0]))
        tensor([-50.6931])
    """

    symmetric = True

    def __init__(self, location: Tensor, scale: Tensor) -> None:
        self.location, self.scale = torch.broadcast_tensors(location, scale)

    @property
    def mean(self) -> Tensor:
        """The location."""
        return self.location

    @property
    def variance(self) -> Tensor:
        """2 scale^2."""
        return 2 * self.scale**2

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.location

    @property
    def entropy(self) -> Tensor:
        """1 + log(2 scale)."""
        return 1 + (2 * self.scale).log()

    def _z(self, y: Tensor) -> Tensor:
        return (y - self.location) / self.scale

    def log_prob(self, y: Tensor) -> Tensor:
        """-|z| - log(2 scale) with z = (y - location) / scale."""
        return -absolute(self._z(y)) - (2 * self.scale).log()

    def log_cdf(self, y: Tensor) -> Tensor:
        """log(e^z / 2) below the location, log(1 - e^-z / 2) above."""
        return _log_tail(-self._z(y))

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), exact in both tails."""
        return _log_tail(self._z(y))

    def icdf(self, q: Tensor) -> Tensor:
        """Location + scale log(2q) below 1/2, location - scale log(2 - 2q) above."""
        low = torch.where(q < 0.5, q, 0.5)
        high = torch.where(q < 0.5, 0.5, 1 - q)
        return self.location + self.scale * ((2 * low).log() - (2 * high).log())

    def crps(self, y: Tensor) -> Tensor:
        """Scale (|z| + e^-|z| - 3/4) (Jordan, Krueger and Lerch 2019, appendix A)."""
        z = self._z(y).abs()
        return self.scale * (z + torch.expm1(-z) + 0.25)

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """The difference of two exponential ones."""
        pair = torch.empty((2, *size)).to(self.location)
        pair.exponential_(generator=generator)
        return self.location + self.scale * (pair[0] - pair[1])


def _log_tail(z: Tensor) -> Tensor:
    """Log P(Z > z) of the standard distribution: -z - log 2, or log(1 - e^z / 2) where z < 0."""
    outer = -z.clamp(min=0) - math.log(2)
    inner = torch.log1p(-0.5 * z.clamp(max=0).exp())
    return torch.where(z >= 0, outer, inner)


class Laplace(Dispersed):
    r"""Real outcomes with heavier tails than normal; its location is the median.

    .. math:: -\log p(y) = \frac{|y - \mu|}{b} + \log 2b

    with :math:`\mu` = raw[0] (identity link) and b = unit * softplus(raw[1]) + floor. The unit is
    the mean absolute deviation of y from its median; the floor is that of the normal distribution,
    max(1e-3 sd(y), resolution of y / sqrt(12)), over sqrt(2) as sd = sqrt(2) b, and at most half
    the unit. With a known b this is the mean absolute error.

    Args:
        dispersion: b ``"predicted"`` from x, ``"constant"``, or known.

    Shapes:
        - raw: ``(..., 2)``, or ``(..., 1)`` unless the dispersion is predicted.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Laplace
        >>> Laplace(dispersion=0.5).loss(torch.zeros(1, 1), torch.ones(1))
        tensor([2.])

    References:
        Koenker and Bassett (1978), Regression quantiles. https://doi.org/10.2307/1913643
    """

    name = "laplace"
    support = "real"

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the scale."""
        sd, floor = unit_and_floor(y, weight)
        _, b = median_and_deviation(y, weight)
        unit = torch.where(b > 0, b, sd / 2**0.5)
        self.dispersion.observe(unit, torch.minimum(floor / 2**0.5, unit / 2))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Median of y and the mean absolute deviation from it."""
        median, b = median_and_deviation(y, weight)
        return self.dispersion.append(median, torch.where(b > 0, b, torch.ones_like(b)), b)

    def distribution(self, raw: Tensor) -> LaplaceDistribution:
        """Laplace(mu, b)."""
        return LaplaceDistribution(raw[..., 0], self.dispersion(raw))


def median_and_deviation(y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The median of y and the mean absolute deviation from it."""
    median = weighted_median(y, weight)
    return median, weighted_mean((y - median).abs(), weight)
