"""Proportions that touch 0 and 1, moved a little inside."""

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution


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
