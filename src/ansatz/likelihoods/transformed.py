"""Distributions moved or stretched: about their mean, or a little inside 0 and 1."""

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


class SqueezedDistribution(Distribution):
    r"""The likelihood of Y where Y' = (Y (n - 1) + 1/2) / n follows a likelihood on (0, 1).

    Densities, quantiles and moments are those of Y, Jacobian (n - 1) / n included, so that they
    compare with likelihoods of the proportion itself. The support reaches 1 / (2n - 2) beyond 0 and
    1.

    Args:
        inner: the likelihood of Y', on (0, 1).
        rows: n, at least 2, of a shape that broadcasts to the likelihood's.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import BetaDistribution
        >>> uniform = BetaDistribution(torch.zeros(1), torch.full((1,), 0.5))
        >>> SqueezedDistribution(uniform, torch.tensor(10.0)).cdf(torch.tensor([0.0]))
        tensor([0.0500])

    References:
        Smithson and Verkuilen (2006), A better lemon squeezer?
        https://doi.org/10.1037/1082-989X.11.1.54
    """

    def __init__(self, inner: Distribution, rows: Tensor) -> None:
        self.inner = inner
        self.rows, self.slope = rows, (rows - 1) / rows
        margin = 0.0 if rows.is_meta else float(0.5 / (rows.min() - 1))
        self.lower, self.upper = -margin, 1 + margin

    def _in(self, y: Tensor) -> Tensor:
        return squeeze(y, self.rows)

    def _out(self, y: Tensor) -> Tensor:
        return (y - 0.5 / self.rows) / self.slope

    @property
    def mean(self) -> Tensor:
        """(n m - 1/2) / (n - 1), m being the inner mean."""
        return self._out(self.inner.mean)

    @property
    def variance(self) -> Tensor:
        """The inner variance times (n / (n - 1))^2."""
        return self.inner.variance / self.slope**2

    @property
    def mode(self) -> Tensor:
        """The inner mode, moved back."""
        return self._out(self.inner.mode)

    @property
    def entropy(self) -> Tensor:
        """The inner entropy - log((n - 1) / n)."""
        return self.inner.entropy - self.slope.log()

    def log_prob(self, y: Tensor) -> Tensor:
        """The inner log density + log((n - 1) / n)."""
        return self.inner.log_prob(self._in(y)) + self.slope.log()

    def cdf(self, y: Tensor) -> Tensor:
        """The inner cdf at y'."""
        return self.inner.cdf(self._in(y))

    def log_cdf(self, y: Tensor) -> Tensor:
        """The inner log cdf at y'."""
        return self.inner.log_cdf(self._in(y))

    def log_survival(self, y: Tensor) -> Tensor:
        """The inner log survival at y'."""
        return self.inner.log_survival(self._in(y))

    def icdf(self, q: Tensor) -> Tensor:
        """The inner quantile, moved back."""
        return self._out(self.inner.icdf(q))

    def crps(self, y: Tensor) -> Tensor:
        """The inner score times n / (n - 1)."""
        return self.inner.crps(self._in(y)) / self.slope

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent draws, moved back; a few lie beyond 0 or 1 by up to 1 / (2n - 2)."""
        return self._out(self.inner.sample(shape, generator))


def squeeze(y: Tensor, rows: Tensor) -> Tensor:
    """(y (n - 1) + 1/2) / n, strictly between 0 and 1 for y in [0, 1]; y itself for infinite n."""
    return y + (0.5 - y) / rows
