"""What a likelihood predicts: a distribution, with everything one asks of it."""

import math

import torch
from torch import Tensor


class Distribution:
    """Univariate distributions, one per element of ``batch_shape``.

    A law defines ``log_prob``, ``cdf``, ``mean``, ``variance``, ``mode`` and ``sample``; the rest
    follows from them, and is overridden where a closed form is faster or more accurate.
    ``log_cdf`` and ``log_survival`` are accurate in both tails.

    Our own and not torch's: torch has no ``icdf`` or ``cdf`` for half of the laws, no logarithmic
    tails, and its samplers take no generator.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import NormalDistribution
        >>> d = NormalDistribution(torch.zeros(2), torch.ones(2))
        >>> [round(bound[0].item(), 3) for bound in d.interval(0.95)]
        [-1.96, 1.96]
    """

    discrete = False
    lower, upper = -math.inf, math.inf  # the support's ends

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of one sample."""
        return self.mean.shape

    @property
    def mean(self) -> Tensor:
        """E[Y]; nan or infinite where it does not exist."""
        raise TypeError(f"{type(self).__name__} defines no mean.")

    @property
    def variance(self) -> Tensor:
        """E[(Y - E Y)^2]; infinite where it does not exist."""
        raise TypeError(f"{type(self).__name__} defines no variance.")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise TypeError(f"{type(self).__name__} defines no mode.")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    @property
    def median(self) -> Tensor:
        """The 0.5 quantile."""
        return self.icdf(torch.full_like(self.mean, 0.5))

    def log_prob(self, y: Tensor) -> Tensor:
        """Log density (continuous) or log probability (discrete) of ``y``."""
        raise TypeError(f"{type(self).__name__} defines no density.")

    def cdf(self, y: Tensor) -> Tensor:
        """P(Y <= y)."""
        raise TypeError(f"{type(self).__name__} defines no cdf.")

    def log_cdf(self, y: Tensor) -> Tensor:
        """log P(Y <= y)."""
        return self.cdf(y).log()

    def log_survival(self, y: Tensor) -> Tensor:
        """log P(Y > y)."""
        return torch.log1p(-self.cdf(y))

    def log_interval(self, lower: Tensor, upper: Tensor) -> Tensor:
        """log P(lower < Y <= upper), by the tail in which the interval lies."""
        # Subtract in the smaller tail: where both ends are above the median, survivals differ.
        a, b = self.log_survival(lower), self.log_survival(upper)
        c, d = self.log_cdf(upper), self.log_cdf(lower)
        high = a < c
        return _log_difference(torch.where(high, a, c), torch.where(high, b, d))

    def icdf(self, q: Tensor) -> Tensor:
        """The smallest y with P(Y <= y) >= q, by bisection; no gradient."""
        with torch.no_grad():
            return bisect(self, q)

    def interval(self, level: float) -> tuple[Tensor, Tensor]:
        """The equal-tailed interval that holds ``level`` of the probability."""
        if not 0 < level < 1:
            raise ValueError(f"level must be in (0, 1), got {level}.")
        tail = torch.full_like(self.mean, (1 - level) / 2)
        return self.icdf(tail), self.icdf(1 - tail)

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent draws, ``(*shape, *batch_shape)``; no gradient."""
        with torch.no_grad():
            u = torch.rand(
                (*shape, *self.batch_shape),
                generator=generator,
                dtype=self.mean.dtype,
                device=self.mean.device,
            )
            return self.icdf(u)


def bisect(distribution: Distribution, q: Tensor, iterations: int = 200) -> Tensor:
    """Solves cdf(y) = q for any distribution with a mean and a spread to start the bracket from.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import NormalDistribution
        >>> d = NormalDistribution(torch.zeros(1), torch.ones(1))
        >>> round(bisect(d, torch.tensor([0.975])).item(), 3)
        1.96
    """
    centre = torch.nan_to_num(distribution.mean, nan=0.0, posinf=0.0, neginf=0.0)
    spread = torch.nan_to_num(distribution.stddev, nan=1.0, posinf=1.0).clamp(min=1e-30)
    centre, spread, q = torch.broadcast_tensors(centre, spread, q)
    low, high = centre - spread, centre + spread
    for _ in range(1100):  # doubling reaches the largest double
        too_high = (distribution.cdf(low) >= q) & (low > distribution.lower)
        too_low = (distribution.cdf(high) < q) & (high < distribution.upper)
        if not (too_high.any() or too_low.any()):
            break
        spread = 2 * spread
        low = torch.where(too_high, (centre - spread).clamp(min=distribution.lower), low)
        high = torch.where(too_low, (centre + spread).clamp(max=distribution.upper), high)
    for _ in range(iterations):
        middle = low + (high - low) / 2
        above = distribution.cdf(middle) >= q
        new_low, new_high = torch.where(above, low, middle), torch.where(above, middle, high)
        if torch.equal(new_low, low) and torch.equal(new_high, high):
            break
        low, high = new_low, new_high
    y = high.ceil() if distribution.discrete else high
    if distribution.discrete:  # rounding may have stepped one value past the answer
        y = torch.where(distribution.cdf(y - 1) >= q, y - 1, y)
    y = torch.where(q <= 0, torch.full_like(y, distribution.lower), y)
    y = torch.where(q >= 1, torch.full_like(y, distribution.upper), y)
    return torch.where((q >= 0) & (q <= 1), y, torch.full_like(y, torch.nan))


def _log_difference(a: Tensor, b: Tensor) -> Tensor:
    """log(exp(a) - exp(b)) for a >= b, finite gradient where b is -inf."""
    gap = (a - b).clamp(min=0)
    gap = torch.where(b == -math.inf, torch.full_like(gap, math.inf), gap)
    # log(1 - exp(-gap)) loses digits for small gaps unless expm1 takes over (Maechler 2012).
    small = gap < math.log(2)
    inner = torch.where(small, torch.full_like(gap, 1.0), gap)
    outer = torch.where(small, gap, torch.ones_like(gap))
    return a + torch.where(small, (-torch.expm1(-outer)).log(), torch.log1p(-(-inner).exp()))
