"""A distribution stretched about its mean."""

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution


class Scaled(Distribution):
    r"""The likelihood of :math:`m + c\,(Y - m)` with m the mean of Y.

    .. math:: p'(y) = \frac1c\, p\!\left(m + \frac{y - m}{c}\right)

    The mean stays, the standard deviation and the width of every interval become c times as large:
    what recalibrates the mixture of an ensemble as a whole and not its members.

    Args:
        base: the distribution of Y, on the whole line.
        factor: c > 0.
    """

    def __init__(self, base: Distribution, factor: float) -> None:
        if not factor > 0:
            raise ValueError(f"a factor must be positive, got {factor}.")
        self.base, self.factor, self.centre = base, float(factor), base.mean

    def _back(self, y: Tensor) -> Tensor:
        return self.centre + (y - self.centre) / self.factor

    @property
    def mean(self) -> Tensor:
        """That of the base."""
        return self.centre

    @property
    def variance(self) -> Tensor:
        """c^2 times that of the base."""
        return self.factor**2 * self.base.variance

    @property
    def mode(self) -> Tensor:
        """As far from the mean as c says."""
        return self.centre + self.factor * (self.base.mode - self.centre)

    @property
    def entropy(self) -> Tensor:
        """That of the base plus log c."""
        return self.base.entropy + torch.tensor(self.factor, dtype=self.centre.dtype).log()

    def log_prob(self, y: Tensor) -> Tensor:
        """The base's density at the point moved back, over c."""
        log_factor = torch.tensor(self.factor, dtype=self.centre.dtype).log()
        return self.base.log_prob(self._back(y)) - log_factor

    def cdf(self, y: Tensor) -> Tensor:
        """The base's at the point moved back."""
        return self.base.cdf(self._back(y))

    def log_cdf(self, y: Tensor) -> Tensor:
        """The base's at the point moved back."""
        return self.base.log_cdf(self._back(y))

    def log_survival(self, y: Tensor) -> Tensor:
        """The base's at the point moved back."""
        return self.base.log_survival(self._back(y))

    def icdf(self, q: Tensor) -> Tensor:
        """The base's quantile, moved out."""
        return self.centre + self.factor * (self.base.icdf(q) - self.centre)

    def crps(self, y: Tensor) -> Tensor:
        """C times the base's at the point moved back."""
        return self.factor * self.base.crps(self._back(y))

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """The base's draws, moved out."""
        return self.centre + self.factor * (self.base.sample(shape, generator) - self.centre)
