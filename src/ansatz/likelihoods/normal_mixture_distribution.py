"""A mixture of normal distributions as a distribution."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.normal import NormalDistribution
from ansatz.likelihoods.special.normal import log_ndtr
from ansatz.likelihoods.special.roots import find_root
from ansatz.likelihoods.special.tensors import wide

# Where the slope of the density is looked at around each component's mean, in its sd.
_STEPS = tuple(i / 4 for i in range(-10, 11))


class NormalMixtureDistribution(Distribution):
    r"""Normal distributions k = 1..M, drawn with probabilities :math:`\pi_k`.

    Densities and both tails are sums of the components', taken as logarithms: accurate where every
    component's tail underflows. Components have no identity: only the sum means something.

    Args:
        logits: ``(..., M)``, the :math:`\log \pi_k` up to a constant.
        means: ``(..., M)``.
        sds: ``(..., M)``, positive.

    Example:
        >>> import torch
        >>> two = torch.tensor([-2.0, 2.0])
        >>> d = NormalMixtureDistribution(torch.zeros(2), two, torch.ones(2))
        >>> d.mean, d.variance, d.modes
        (tensor(0.), tensor(5.), tensor(2))

    References:
        McLachlan and Peel (2000), Finite Mixture Models, chapter 1.
    """

    def __init__(self, logits: Tensor, means: Tensor, sds: Tensor) -> None:
        logits, self.means, self.sds = torch.broadcast_tensors(logits, means, sds)
        self.log_weights = torch.log_softmax(logits, -1)

    @property
    def components(self) -> NormalDistribution:
        """The M normal distributions, ``(..., M)``."""
        return NormalDistribution(self.means, self.sds)

    @property
    def weights(self) -> Tensor:
        """The probabilities of the components, ``(..., M)``."""
        return self.log_weights.exp()

    @property
    def mean(self) -> Tensor:
        """The mean of the component means."""
        return (self.weights * self.means).sum(-1)

    @property
    def variance(self) -> Tensor:
        """The mean variance within components, and the variance between them."""
        between = (self.means - self.mean.unsqueeze(-1)) ** 2
        return (self.weights * (self.sds**2 + between)).sum(-1)

    def _sum(self, log_terms: Tensor) -> Tensor:
        return torch.logsumexp(self.log_weights + log_terms, -1)

    def log_prob(self, y: Tensor) -> Tensor:
        """The logsumexp of the components' log densities."""
        return self._sum(self.components.log_prob(y.unsqueeze(-1)))

    def cdf(self, y: Tensor) -> Tensor:
        """The mean of the components' cdfs."""
        return (self.weights * self.components.cdf(y.unsqueeze(-1))).sum(-1)

    def log_cdf(self, y: Tensor) -> Tensor:
        """The logsumexp of the components' log cdfs; towards 0, from the other tail."""
        return self._tails(y)[0]

    def log_survival(self, y: Tensor) -> Tensor:
        """The logsumexp of the components' log survivals; towards 0, from the other tail."""
        return self._tails(y)[1]

    def _tails(self, y: Tensor) -> tuple[Tensor, Tensor]:
        each, y = self.components, y.unsqueeze(-1)
        low, high = self._sum(each.log_cdf(y)), self._sum(each.log_survival(y))
        return _from_smaller(low, high), _from_smaller(high, low)

    def _solve(self, q: Tensor) -> Tensor:
        """Newton's method on the log of the smaller tail, between the components' own quantiles."""
        shape = torch.broadcast_shapes(q.shape, self.mean.shape)
        many = (*shape, self.means.shape[-1])
        table = [t.expand(many).reshape(-1, many[-1]) for t in (self.log_weights, self.means)]
        sds = self.sds.expand(many).reshape(-1, many[-1])
        (level, *rows) = wide(q.expand(shape).reshape(-1), *table, sds)
        each = NormalDistribution(rows[1], rows[2]).icdf(level.unsqueeze(-1))
        low, high = each.min(-1).values, each.max(-1).values
        low, high = (torch.where(end.isfinite(), end, rows[1][:, 0]) for end in (low, high))
        # Between two components the cdf is flat: start where they are, not in the middle.
        start = (rows[0].exp() * each).sum(-1)
        start = torch.where(start.isfinite(), start, low)
        y = find_root(_excess, low, high, start, level, *rows)
        y = torch.where(level <= 0, -math.inf, torch.where(level >= 1, math.inf, y))
        y = torch.where((level >= 0) & (level <= 1), y, math.nan)
        return y.reshape(shape).to(q)

    def _brackets(self) -> tuple[Tensor, Tensor]:
        """Points in ascending order, and where the density turns from rising to falling."""
        steps = self.means.new_tensor(_STEPS)
        grid = self.means.unsqueeze(-1) + self.sds.unsqueeze(-1) * steps  # (..., M, G)
        low, high = self.means.amin(-1, True), self.means.amax(-1, True)
        # Below the lowest mean the density rises, above the highest it falls.
        grid = grid.flatten(-2).clamp(low, high)
        least = self.sds.amin(-1, True)
        grid = torch.cat([low - least, grid, high + least], -1).sort(-1).values
        rising = self._slope(grid) > 0
        return grid, rising[..., :-1] & ~rising[..., 1:]

    def _slope(self, x: Tensor) -> Tensor:
        """d log density / dx at x ``(..., G)``, as a mean over the components of x."""
        gap = (self.means.unsqueeze(-2) - x.unsqueeze(-1)) / self.sds.unsqueeze(-2)
        log_terms = self.log_weights.unsqueeze(-2) - 0.5 * gap**2 - self.sds.log().unsqueeze(-2)
        return (log_terms.softmax(-1) * gap / self.sds.unsqueeze(-2)).sum(-1)

    @property
    def modes(self) -> Tensor:
        """Counts the local maxima of the density that are a quarter sd of a component apart."""
        with torch.no_grad():
            return self._brackets()[1].sum(-1)

    @property
    def is_multimodal(self) -> Tensor:
        """True where there is more than one: the mean may then be a value that hardly occurs."""
        return self.modes > 1

    @property
    def mode(self) -> Tensor:
        """The highest maximum, by a search of every component's surroundings; no gradient."""
        if self.means.is_meta:
            return torch.empty_like(self.mean)
        with torch.no_grad():
            grid, turns = self._brackets()
            low, high = grid[..., :-1], grid[..., 1:]
            for _ in range(60 if grid.dtype == torch.float64 else 30):
                middle = low + (high - low) / 2
                rising = self._slope(middle) > 0
                low, high = torch.where(rising, middle, low), torch.where(rising, high, middle)
            each = NormalMixtureDistribution(
                self.log_weights.unsqueeze(-2), self.means.unsqueeze(-2), self.sds.unsqueeze(-2)
            )
            height = torch.where(turns, each.log_prob(low), -math.inf)
            return low.gather(-1, height.argmax(-1, True)).squeeze(-1)

    def crps(self, y: Tensor) -> Tensor:
        r"""The closed form :math:`\sum_k \pi_k A_k - \tfrac12 \sum_{jk} \pi_j \pi_k A_{jk}`.

        With A the mean of \|N(m, s^2)\|: of y - means and sds, and of the differences of means with
        added variances (Grimit et al. 2006, eq. 5). In double precision, as its terms cancel.
        """
        value, weights, means, sds = wide(y, self.weights, self.means, self.sds)
        first = (weights * _mean_size(value.unsqueeze(-1) - means, sds)).sum(-1)
        gap = means.unsqueeze(-1) - means.unsqueeze(-2)
        sd = torch.hypot(sds.unsqueeze(-1), sds.unsqueeze(-2))
        pair = weights.unsqueeze(-1) * weights.unsqueeze(-2) * _mean_size(gap, sd)
        return (first - 0.5 * pair.sum((-1, -2))).to(y)

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """A component, then a number from it."""
        options = {"dtype": self.means.dtype, "device": self.means.device}
        u = torch.rand((*size, 1), generator=generator, **options)
        bounds = self.weights.cumsum(-1)[..., :-1]
        which = (u > bounds).sum(-1, keepdim=True)  # (*size, 1)
        noise = torch.randn(size, generator=generator, **options)
        means, sds = (t.expand(*size, t.shape[-1]) for t in (self.means, self.sds))
        return means.gather(-1, which).squeeze(-1) + sds.gather(-1, which).squeeze(-1) * noise


def _from_smaller(this: Tensor, other: Tensor) -> Tensor:
    """log P from the log of 1 - P where P is near 1: a sum of parts ends at rounding there."""
    most = this > -0.5
    return torch.where(most, torch.log1p(-torch.where(most, other, -1.0).exp()), this)


def _mean_size(m: Tensor, s: Tensor) -> Tensor:
    """E|N(m, s^2)| = 2 s phi(m / s) + m (2 Phi(m / s) - 1)."""
    z = m / s
    density = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return 2 * s * density + m * torch.erf(z / math.sqrt(2))


def _excess(
    y: Tensor, level: Tensor, logits: Tensor, means: Tensor, sds: Tensor
) -> tuple[Tensor, Tensor]:
    """log cdf - log level, or log(1 - level) - log survival above the median; and the slope."""
    upper = level > 0.5
    z = (y.unsqueeze(-1) - means) / sds
    side = torch.where(upper, -1.0, 1.0)
    tail = torch.logsumexp(logits + log_ndtr(side.unsqueeze(-1) * z), -1)
    density = logits - 0.5 * z * z - sds.log() - 0.5 * math.log(2 * math.pi)
    slope = (torch.logsumexp(density, -1) - tail).exp()
    goal = torch.where(upper, torch.log1p(-level), level.log())
    return side * (tail - goal), slope
