"""Distributions moved or stretched: about their mean, or a little inside 0 and 1."""

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution


class _Moved(Distribution):
    """The distribution of an affine map of Y: ``_in`` leads back to the base, ``_out`` from it."""

    _inside: Distribution
    _log_slope: Tensor  # the log of the slope of _in

    @property
    def reparameterized(self) -> bool:  # type: ignore[override]
        """Whether the base is."""
        return self._inside.reparameterized and not self._inside.discrete

    def _in(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def _out(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """That of the base, moved."""
        return self._out(self._inside.mean)

    @property
    def mode(self) -> Tensor:
        """That of the base, moved."""
        return self._out(self._inside.mode)

    @property
    def entropy(self) -> Tensor:
        """That of the base less the log slope."""
        return self._inside.entropy - self._log_slope

    def log_prob(self, y: Tensor) -> Tensor:
        """The base's log density at the point moved back, plus the log slope."""
        return self._inside.log_prob(self._in(y)) + self._log_slope

    def cdf(self, y: Tensor) -> Tensor:
        """The base's at the point moved back."""
        return self._inside.cdf(self._in(y))

    def log_cdf(self, y: Tensor) -> Tensor:
        """The base's at the point moved back."""
        return self._inside.log_cdf(self._in(y))

    def log_survival(self, y: Tensor) -> Tensor:
        """The base's at the point moved back."""
        return self._inside.log_survival(self._in(y))

    def icdf(self, q: Tensor) -> Tensor:
        """The base's quantile, moved."""
        return self._out(self._inside.icdf(q))

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """The base's draws, moved."""
        return self._out(self._inside.sample(shape, generator))


class Scaled(_Moved):
    r"""The distribution of :math:`m + c\,(Y - m)` with m the mean of Y.

    .. math:: p'(y) = \frac1c\, p\!\left(m + \frac{y - m}{c}\right)

    The mean stays, the standard deviation and the width of every interval become c times as large:
    what recalibrates the mixture of an ensemble as a whole and not its members.
    """

    def __init__(self, base: Distribution, factor: float) -> None:
        if not factor > 0:
            raise ValueError(f"a factor must be positive, got {factor}.")
        self.base, self.factor, self.centre = base, float(factor), base.mean

    @property
    def _inside(self) -> Distribution:  # type: ignore[override]
        return self.base

    @property
    def _log_slope(self) -> Tensor:  # type: ignore[override]
        return -torch.tensor(self.factor, dtype=self.centre.dtype).log()

    def _in(self, y: Tensor) -> Tensor:
        return self.centre + (y - self.centre) / self.factor

    def _out(self, y: Tensor) -> Tensor:
        return self.centre + self.factor * (y - self.centre)

    @property
    def mean(self) -> Tensor:
        """That of the base."""
        return self.centre

    @property
    def variance(self) -> Tensor:
        """c^2 times that of the base."""
        return self.factor**2 * self._inside.variance

    @property
    def between_variance(self) -> Tensor:
        """c^2 times that of the base."""
        return self.factor**2 * self._inside.between_variance

    def crps(self, y: Tensor) -> Tensor:
        """C times the base's at the point moved back."""
        return self.factor * self._inside.crps(self._in(y))


class SqueezedDistribution(_Moved):
    r"""The distribution of Y where Y' = (Y (n - 1) + 1/2) / n follows a distribution on (0, 1).

    Densities, quantiles and moments are those of Y, Jacobian (n - 1) / n included, so that they
    compare with distributions of the proportion itself. The support reaches 1 / (2n - 2) beyond 0
    and 1, and so do a few draws.

    Args:
        inner: the distribution of Y', on (0, 1).
        rows: n, at least 2, of a shape that broadcasts to the distribution's.

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
        self.inner, self.rows, self.slope = inner, rows, (rows - 1) / rows
        margin = 0.0 if rows.is_meta else float(0.5 / (rows.min() - 1))
        self.lower, self.upper = -margin, 1 + margin

    @property
    def _inside(self) -> Distribution:  # type: ignore[override]
        return self.inner

    @property
    def _log_slope(self) -> Tensor:  # type: ignore[override]
        return self.slope.log()

    def _in(self, y: Tensor) -> Tensor:
        return squeeze(y, self.rows)

    def _out(self, y: Tensor) -> Tensor:
        return (y - 0.5 / self.rows) / self.slope

    @property
    def variance(self) -> Tensor:
        """The inner variance times (n / (n - 1))^2."""
        return self.inner.variance / self.slope**2

    def crps(self, y: Tensor) -> Tensor:
        """The inner score times n / (n - 1)."""
        return self.inner.crps(self._in(y)) / self.slope


def squeeze(y: Tensor, rows: Tensor) -> Tensor:
    """(y (n - 1) + 1/2) / n, strictly between 0 and 1 for y in [0, 1]; y itself for infinite n."""
    return y + (0.5 - y) / rows
