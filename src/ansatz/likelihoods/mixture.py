"""Mixtures of distributions, as ensembles predict them."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import (
    Distribution,
    VectorDistribution,
    crps_between,
    crps_levels,
)


class _Mixing:
    """Sums over components; common to numbers and vectors."""

    def __init__(
        self, components: Sequence[Distribution], log_weights: Tensor | None = None
    ) -> None:
        self.components = list(components)
        weights = torch.zeros(len(self.components)) if log_weights is None else log_weights
        self.log_weights = torch.log_softmax(weights.double(), 0)

    def _mean(self, values: Callable[[Distribution], Tensor]) -> Tensor:
        stacked = torch.stack([values(component) for component in self.components])
        weights = self.log_weights.exp().to(stacked)
        return (_leading(weights, stacked) * stacked).sum(0)

    def _log_mean(self, values: Callable[[Distribution], Tensor]) -> Tensor:
        stacked = torch.stack([values(component) for component in self.components])
        return torch.logsumexp(stacked + _leading(self.log_weights.to(stacked), stacked), 0)

    @property
    def mean(self) -> Tensor:
        """The weighted mean of the members' means."""
        return self._mean(lambda c: c.mean)

    @property
    def within_variance(self) -> Tensor:
        """The mean of the members' variances: the part that more data would not remove."""
        return self._mean(lambda c: c.variance)

    @property
    def between_variance(self) -> Tensor:
        """The variance of the members' means: how much they disagree."""
        centre = self.mean
        return self._mean(lambda c: (c.mean - centre) ** 2)

    @property
    def variance(self) -> Tensor:
        """Within and between the members."""
        return self.within_variance + self.between_variance

    def log_prob(self, y: Tensor) -> Tensor:
        """The log of the mean density."""
        return self._log_mean(lambda c: c.log_prob(y))

    def _choose(self, shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        weights = self.log_weights.exp()
        count = math.prod(shape)
        drawn = torch.multinomial(weights, max(count, 1), replacement=True, generator=generator)
        return drawn[:count].reshape(shape)


class Mixture(_Mixing, Distribution):
    r"""Univariate distributions mixed with fixed weights, whatever their likelihood.

    .. math:: F(y) = \sum_s \pi_s F_s(y)

    The cdf is the mean of the members', quantiles are found by root search between theirs, the
    variance is the one within the members plus the one between them, and so is the entropy.
    """

    def __init__(
        self, components: Sequence[Distribution], log_weights: Tensor | None = None
    ) -> None:
        super().__init__(components, log_weights)
        self.discrete = self.components[0].discrete
        self.reparameterized = all(c.reparameterized for c in self.components)
        self.lower = min(c.lower for c in self.components)
        self.upper = max(c.upper for c in self.components)

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of one sample."""
        return self.components[0].batch_shape

    @property
    def mode(self) -> Tensor:
        """The members' mode with the highest density of the mixture; near the true one."""
        modes = torch.stack([c.mode.to(torch.float64) for c in self.components])
        heights = torch.stack([self.log_prob(mode) for mode in modes])
        return modes.gather(0, heights.argmax(0, keepdim=True)).squeeze(0)

    def cdf(self, y: Tensor) -> Tensor:
        """The mean of the members' cdfs."""
        return self._mean(lambda c: c.cdf(y))

    def log_cdf(self, y: Tensor) -> Tensor:
        """The log of the mean, from the members' logarithms."""
        return self._log_mean(lambda c: c.log_cdf(y))

    def log_survival(self, y: Tensor) -> Tensor:
        """The log of the mean, from the members' logarithms."""
        return self._log_mean(lambda c: c.log_survival(y))

    def _bracket(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """The least and the largest quantile of all members, of mixtures among them too."""
        found = [
            c._bracket(q) if isinstance(c, Mixture) else (c.icdf(q),) * 2 for c in self.components
        ]
        lowest, highest = (torch.stack(ends) for ends in zip(*found, strict=True))
        return lowest.min(0).values, highest.max(0).values

    def _solve(self, q: Tensor) -> Tensor:
        low, high = self._bracket(q)
        if self.discrete:
            return _whole(self, q, low, high)
        return _root(self, q, low, high, digits=1e-13)

    def crps(self, y: Tensor) -> Tensor:
        """By quadrature between quantiles, for which rough ones do; counts by a sum."""
        return super().crps(y) if self.discrete else crps_between(self, y, self._rough_quantiles(y))

    def _rough_quantiles(self, y: Tensor) -> Tensor:
        """Quantiles to two digits at the levels of the quadrature, ``(L, ...)``."""
        levels = torch.as_tensor(crps_levels(y.dtype), dtype=y.dtype, device=y.device)
        found = []
        with torch.no_grad():
            # Several levels at once where rows are few, without much memory where they are many.
            for some in levels.split(max(1, 100_000 // max(y.numel(), 1))):
                q = some.reshape(-1, *(1,) * y.ndim).expand(-1, *y.shape)
                found.append(_root(self, q, *self._bracket(q), digits=1e-2))
        return torch.cat(found)

    @property
    def within_entropy(self) -> Tensor:
        """The mean of the members' entropies."""
        return self._mean(lambda c: c.entropy)

    @property
    def between_entropy(self) -> Tensor:
        """The mutual information of the outcome and the member."""
        return self.entropy - self.within_entropy

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent draws, each from a member drawn by weight."""
        with torch.no_grad():
            draws = torch.stack([c.sample(shape, generator) for c in self.components])
            which = self._choose((1, *draws.shape[1:]), generator)
            return draws.gather(0, which).squeeze(0)


class ClassMixture(Mixture):
    """Distributions over ordered classes mixed with fixed weights."""

    @property
    def probs(self) -> Tensor:
        """The mean of the members' probabilities, ``(..., K)``."""
        return self._mean(lambda c: c.probs)  # type: ignore[attr-defined]

    @property
    def mode(self) -> Tensor:
        """The code of the most probable class."""
        return self.probs.argmax(-1)


class VectorMixture(_Mixing, VectorDistribution):
    """Distributions of vectors mixed with fixed weights."""

    @property
    def covariance(self) -> Tensor:
        """The mean of the members' covariances plus that of their means, ``(..., K, K)``."""
        centre = self.mean

        def about(member: Distribution) -> Tensor:
            gap = (member.mean - centre).unsqueeze(-1)
            own: Tensor = member.covariance  # type: ignore[attr-defined]
            return own + gap * gap.mT

        return self._mean(about)

    @property
    def marginal(self) -> Distribution:
        """The mixture of the members' marginals."""
        parts = [c.marginal for c in self.components if isinstance(c, VectorDistribution)]
        return Mixture(parts, self.log_weights)

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent vectors, each from a member drawn by weight."""
        with torch.no_grad():
            draws = torch.stack([c.sample(shape, generator) for c in self.components])
            which = self._choose((1, *draws.shape[1:-1]), generator).unsqueeze(-1)
            return draws.gather(0, which.expand(1, *draws.shape[1:])).squeeze(0)


def _leading(weights: Tensor, stacked: Tensor) -> Tensor:
    return weights.reshape(-1, *(1,) * (stacked.ndim - 1))


def _root(mixture: Mixture, q: Tensor, low: Tensor, high: Tensor, digits: float) -> Tensor:
    """Newton steps kept inside a bracket that halves whenever they leave it."""
    high = torch.where(mixture.cdf(low) >= q, low, high)  # an atom there holds the level
    x = low + (high - low) / 2
    close = digits * torch.minimum(q, 1 - q)
    for step in range(200):
        gap = mixture.cdf(x) - q
        low, high = torch.where(gap <= 0, x, low), torch.where(gap >= 0, x, high)
        moving = (gap.abs() > close) & (high - low > 4e-16 * x.abs())  # not where nan or infinite
        if not bool(moving.any()):
            break
        newton = x - gap * (-mixture.log_prob(x)).exp()
        inside = (newton > low) & (newton < high) & (step % 8 != 7)
        fresh = torch.where(inside, newton, low + (high - low) / 2)
        x = torch.where(moving & fresh.isfinite(), fresh, x)
    x = torch.where(low == high, low, x)
    return torch.where((q > 0) & (q < 1), x, low)


def _whole(mixture: Mixture, q: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The least whole number with cdf >= q, by bisection between the members' quantiles."""
    low, high = low - 1, high.clone()
    for _ in range(1100):
        middle = torch.where(high - low > 1, ((low + high) / 2).floor(), high)
        reached = mixture.cdf(middle) >= q
        low, high = torch.where(reached, low, middle), torch.where(reached, middle, high)
        if not bool((high - low > 1).any()):
            break
    return high
