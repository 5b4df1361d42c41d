"""The compound Poisson-gamma distribution: an atom at 0 and a density above."""

import math

import torch
from scipy import special
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution, bisect
from ansatz.likelihoods.poisson import PoissonDistribution
from ansatz.likelihoods.special.gamma import HALF_LOG_2PI, log_gammainc, log_gammaincc, stirling
from ansatz.likelihoods.special.roots import positive_quantile
from ansatz.likelihoods.special.tensors import elementwise, wide
from ansatz.likelihoods.special.tweedie import log_density

_BLOCK = 2**17  # terms at a time, so that a million outcomes fit into memory


class TweedieDistribution(Distribution):
    r"""A Poisson number N of independent gamma amounts, added up: mean mu, variance phi mu^p.

    .. math:: N \sim \mathrm{Poisson}\left(\lambda = \frac{\mu^{2-p}}{\phi (2-p)}\right), \qquad
              \text{amounts} \sim \mathrm{Gamma}\left(\text{shape } \alpha = \frac{2-p}{p-1},
              \text{ scale } \tau = \phi (p-1) \mu^{p-1}\right)

    The probability of 0 is :math:`e^{-\lambda}`; ``log_prob`` is its logarithm there, and the log
    density above. The cdf is the sum of gamma cdfs with Poisson weights, over nine standard
    deviations of N around where the tail lies; many terms are taken in steps, which changes no
    digit of a smooth sum. Tails are accurate to some ten digits, with first derivatives in y, mu,
    phi and p.

    Args:
        log_mean: log mu, any shape.
        dispersion: phi > 0, the same shape.
        power: p in (1, 2), the same shape.

    Example:
        >>> import torch
        >>> d = TweedieDistribution(torch.zeros(1), torch.ones(1), torch.tensor([1.5]))
        >>> d.cdf(torch.tensor([0.0])), d.median
        (tensor([0.1353]), tensor([0.7347]))

    References:
        Dunn and Smyth (2005), Series evaluation of Tweedie exponential dispersion model densities.
    """

    lower = 0.0
    reparameterized = False  # the probability of 0 depends on the parameters

    def __init__(self, log_mean: Tensor, dispersion: Tensor, power: Tensor) -> None:
        self.log_mean, self.dispersion, self.power = torch.broadcast_tensors(
            log_mean, dispersion, power
        )

    @property
    def mean(self) -> Tensor:
        """mu."""
        return self.log_mean.exp()

    @property
    def variance(self) -> Tensor:
        """phi mu^p."""
        return self.dispersion * (self.power * self.log_mean).exp()

    @property
    def mode(self) -> Tensor:
        """0, the only value that has a probability."""
        return torch.zeros_like(self.log_mean)

    def _log_rate(self, log_mean: Tensor) -> Tensor:
        """log lambda of a distribution with this mean."""
        return (2 - self.power) * log_mean - (2 - self.power).log() - self.dispersion.log()

    def log_prob(self, y: Tensor) -> Tensor:
        """Log density for y > 0, log probability for y = 0, -inf below; twice differentiable."""
        inside = (y >= 0) & (y < math.inf)
        values = wide(torch.where(inside, y, 0.0), self.log_mean, self.dispersion, self.power)
        return torch.where(inside, log_density(*values).to(y), -math.inf)

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log P(Y <= y), accurate in both tails, differentiable once in everything."""
        positive, at_most, more, atom = self._tails(y)
        # The branch not taken gets a harmless number: its gradient would be nan.
        small = at_most < math.log(0.5)
        rest = torch.log1p(-torch.where(small, -1.0, more).exp())
        value = torch.where(small, at_most, rest)
        value = torch.where(positive, value, torch.where(y == math.inf, 0.0, atom))
        return torch.where(y >= 0, value, -math.inf).to(y)

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), accurate in both tails, differentiable once in everything."""
        positive, at_most, more, atom = self._tails(y)
        small = more < math.log(0.5)
        rest = torch.log1p(-torch.where(small, -1.0, at_most).exp())
        value = torch.where(small, more, rest)
        some = torch.log(-torch.expm1(atom))
        value = torch.where(positive, value, torch.where(y == math.inf, -math.inf, some))
        return torch.where(y >= 0, value, 0.0).to(y)

    def _tails(self, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """True for 0 < y < infinity; log P(Y <= y) and log P(Y > y) there; log P(Y = 0)."""
        y, *rest = torch.broadcast_tensors(y, self.log_mean, self.dispersion, self.power)
        value, *parameters = wide(y, *rest)
        positive = (value > 0) & (value < math.inf)
        distribution = TweedieDistribution(*parameters)
        atom = -distribution._log_rate(distribution.log_mean).exp()
        if y.is_meta:
            return positive, torch.empty_like(y), torch.empty_like(y), atom
        log_y = torch.where(positive, value, 1.0).log()
        none = torch.zeros_like(positive)
        lower, upper = distribution._sum(log_y, ~none), distribution._sum(log_y, none)
        return positive, torch.logaddexp(atom, lower), upper, atom

    def _sum(self, log_y: Tensor, low: Tensor) -> Tensor:
        """log P(0 < Y <= y) where ``low`` holds, log P(Y > y) elsewhere, in double precision."""
        parts = [part.reshape(-1) for part in (log_y, self.log_mean, self.dispersion, self.power)]
        low = low.reshape(-1)
        with torch.no_grad():
            distribution = TweedieDistribution(*parts[1:])
            here, there = (
                distribution._log_rate(distribution.log_mean).exp(),
                distribution._log_rate(parts[0]).exp(),
            )
            # Where the terms of a tail are: at the distribution's own rate, or beyond, at that of
            # y.
            rate = torch.where(low, torch.minimum(here, there), torch.maximum(here, there))
            first, step, count = _grid(rate, (2 - distribution.power) / (distribution.power - 1))
            order = torch.argsort(torch.where(low, -count, count))
        blocks = []
        for span in _blocks(count[order], low[order]):
            rows = order[span]
            block = (part[rows] for part in (*parts, first, step))
            blocks.append(_log_sum(bool(low[rows[0]]), int(count[rows].max()), *block))
        if not blocks:
            return torch.zeros_like(log_y)
        value = torch.cat(blocks)
        return value[torch.argsort(order)].reshape(log_y.shape)

    def icdf(self, q: Tensor) -> Tensor:
        """The smallest y with P(Y <= y) >= q: 0 up to the probability of 0, where it is constant.

        Differentiable in q and in the parameters above that.
        """
        with torch.no_grad():
            y = self._solve(q)
        return torch.where(y > 0, self._implicit(torch.where(y > 0, y, 1.0), q), y)

    def _implicit(self, y: Tensor, q: Tensor) -> Tensor:
        # An infinite or undefined quantile has no derivative.
        good = y.isfinite()
        return torch.where(good, super()._implicit(torch.where(good, y, 1.0), q), y)

    def _solve(self, q: Tensor) -> Tensor:
        if q.is_meta:
            return torch.empty_like(q)
        every = torch.broadcast_tensors(q, self.log_mean, self.dispersion, self.power)
        level, *parameters = (part.reshape(-1) for part in wide(*every))
        atom = (-TweedieDistribution(*parameters)._log_rate(parameters[0]).exp()).exp()
        y = torch.where(level >= 1, math.inf, torch.zeros_like(level))
        y = torch.where((level >= 0) & (level <= 1), y, math.nan)
        some = (level > atom) & (level < 1)
        level, below, distribution = (
            level[some],
            (level - atom)[some],
            TweedieDistribution(*(part[some] for part in parameters)),
        )
        x, lost = positive_quantile(
            distribution._sum,
            lambda x: distribution.log_prob(x.exp()) + x,
            below,
            1 - level,
            distribution._guess(level),
        )
        found = x.exp()
        if lost.any():
            rest = TweedieDistribution(*(part[some][lost] for part in parameters))
            found = found.masked_scatter(lost, bisect(rest, level[lost]))
        return y.masked_scatter(some, found).reshape(every[0].shape).to(q)

    def _guess(self, q: Tensor) -> Tensor:
        """log y where y^(1 - p/2), whose variance hardly depends on the mean, is a normal one's."""
        k = 1 - self.power / 2
        sd = k * self.dispersion.sqrt() * (-k * self.log_mean).exp()
        root = (1 + torch.special.ndtri(q) * sd).clamp(min=0.05)
        return self.log_mean + root.log() / k

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """Independent draws of the number of amounts, and of their sum."""
        log_mean, dispersion, power = (
            part.expand(size) for part in (self.log_mean, self.dispersion, self.power)
        )
        number = PoissonDistribution(self._log_rate(log_mean)).sample((), generator)
        a = number * (2 - power) / (power - 1)
        draw = torch._standard_gamma(torch.where(a > 0, a, 1.0), generator=generator)
        y = draw * dispersion * (power - 1) * ((power - 1) * log_mean).exp()
        return torch.where(number > 0, y.clamp(min=torch.finfo(y.dtype).tiny), 0.0)


def _grid(rate: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """First term, step and number of terms of sums around ``rate``.

    Where they are many, in steps of 1/7 sd of N, and within 0.6 of the width over which the gamma
    cdf rises in N: a sum of a smooth function equals its integral, however it is sampled.
    """
    sd = rate.sqrt()
    first = (rate - 9 * sd).floor().clamp(min=1)
    width = (rate + 9 * sd + 10).ceil() - first
    step = torch.minimum(sd / 7, 0.6 * (rate / alpha).sqrt()).clamp(min=1)
    return first, step, (width / step).ceil() + 1


def _blocks(count: Tensor, low: Tensor) -> list[slice]:
    """Rows that are summed together: of one tail, of similar length, few enough for memory."""
    blocks, start, rows = [], 0, len(count)
    while start < rows:
        length = float(count[start])
        end = min(start + max(1, int(_BLOCK / length)), rows)
        # Rows are sorted: the last one differs most.
        while end > start + 1 and (
            bool(low[end - 1] != low[start])
            or not length / 1.5 < float(count[end - 1]) < length * 1.5
        ):
            end = start + (end - start + 1) // 2
        blocks.append(slice(start, end))
        start = end
    return blocks


def _log_sum(
    low: bool,
    count: int,
    log_y: Tensor,
    log_mean: Tensor,
    dispersion: Tensor,
    power: Tensor,
    first: Tensor,
    step: Tensor,
) -> Tensor:
    """log of the sum over j >= 1 of Po(j; lambda) P(j alpha, y / tau), or Q in place of P."""
    distribution = TweedieDistribution(*(v.unsqueeze(-1) for v in (log_mean, dispersion, power)))
    step = step.unsqueeze(-1)
    j = first.unsqueeze(-1) + step * torch.arange(count, dtype=step.dtype)
    log_rate, alpha = (
        distribution._log_rate(distribution.log_mean),
        (2 - distribution.power) / (distribution.power - 1),
    )
    # y / tau
    x = log_y.unsqueeze(-1) - (distribution.power - 1) * distribution.log_mean
    x = (x - (distribution.power - 1).log() - distribution.dispersion.log()).exp()
    d = log_rate - j.log()
    log_weight = -j * (torch.expm1(d) - d) - HALF_LOG_2PI - 0.5 * j.log() - stirling(j)
    shape, x = torch.broadcast_tensors(j * alpha, x)
    if torch.is_grad_enabled() and (shape.requires_grad or x.requires_grad):
        tail = (log_gammainc if low else log_gammaincc)(shape, x)
        return torch.logsumexp(log_weight + tail, -1) + step.squeeze(-1).log()
    # Without a gradient the plain functions will do, except where every term underflows.
    tail = elementwise(special.gammainc if low else special.gammaincc, shape, x).log()
    value = torch.logsumexp(log_weight + tail, -1)
    far = ~(value > -600)
    if far.any():
        tail = (log_gammainc if low else log_gammaincc)(shape[far], x[far])
        value = value.masked_scatter(far, torch.logsumexp(log_weight[far] + tail, -1))
    return value + step.squeeze(-1).log()
