"""The negative binomial distribution: counts that vary more than Poisson's."""

import math

import torch
from scipy import special
from torch import Tensor

from ansatz.likelihoods.distribution import LogMeanDistribution
from ansatz.likelihoods.likelihood import (
    Dispersed,
    expand_weight,
    require_same_shape,
    weighted_mean,
    weighted_sd,
)
from ansatz.likelihoods.poisson import PoissonDistribution
from ansatz.likelihoods.special.beta import log_betainc, log_betaincc
from ansatz.likelihoods.special.gamma import HALF_LOG_2PI, digamma_gap, stirling
from ansatz.likelihoods.special.logarithms import soft_cap
from ansatz.likelihoods.special.quadrature import count_difference
from ansatz.likelihoods.special.roots import count_search
from ansatz.likelihoods.special.tensors import elementwise, in_double


class NegativeBinomialDistribution(LogMeanDistribution):
    """Counts with mean mu and variance mu + alpha mu^2 (NB2): Poisson with a gamma rate.

    In SciPy's terms n = 1 / alpha and p = 1 / (1 + alpha mu).

    Args:
        log_mean: the logarithm of the mean, any shape.
        dispersion: alpha, positive, the same shape.

    Example:
        >>> import torch
        >>> d = NegativeBinomialDistribution(torch.zeros(1), torch.ones(1))  # geometric, p = 1/2
        >>> d.cdf(torch.tensor([0.0])), d.variance
        (tensor([0.5000]), tensor([2.]))
    """

    discrete = True
    lower = 0.0

    @property
    def variance(self) -> Tensor:
        """mu + alpha mu^2."""
        return self.mean * (1 + self.dispersion * self.mean)

    @property
    def mode(self) -> Tensor:
        """The largest whole number up to mu (1 - alpha), or 0 where alpha > 1."""
        return (self.mean * (1 - self.dispersion)).floor().clamp(min=0)

    def log_prob(self, y: Tensor) -> Tensor:
        """Log probability, arranged so that large counts and small alphas cancel before rounding.

        -D/2 - log(2 pi y (1 + alpha y))/2 + S(y + 1/alpha) - S(1/alpha) - S(y) with D the unit
        deviance and S Stirling's correction; -log(1 + alpha mu)/alpha at 0. A y that is not a count
        has probability 0.
        """
        count = (y >= 0) & (y == y.floor()) & (y < math.inf)
        positive = torch.where(count & (y > 0), y, 1.0)
        r = 1 / self.dispersion
        norm = HALF_LOG_2PI + 0.5 * (positive.log() + torch.log1p(self.dispersion * positive))
        corrections = stirling(positive + r) - stirling(r) - stirling(positive)
        value = corrections - norm - _half_deviance(self.log_mean, self.dispersion, positive)
        zero = -log1p_over(self.dispersion, self.mean)
        return torch.where(count, torch.where(y == 0, zero, value), -math.inf)

    def log_cdf(self, y: Tensor) -> Tensor:
        """log(1 - I_q(floor(y) + 1, 1 / alpha)), with q = alpha mu / (1 + alpha mu).

        Accurate in both tails and differentiable in mu and alpha.
        """
        return torch.where(y.floor() < 0, -math.inf, log_betaincc(*self._beta(y), logit=True))

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), accurate in both tails and differentiable in mu and alpha."""
        return torch.where(y.floor() < 0, 0.0, log_betainc(*self._beta(y), logit=True))

    def _beta(self, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        k = y.floor().clamp(min=0)
        # The log odds of q: q itself would round to 1 where alpha mu is large.
        return k + 1, 1 / self.dispersion, self.log_mean + self.dispersion.log()

    @in_double
    def _solve(self, q: Tensor) -> Tensor:
        # The gamma distribution with the same mean and variance is near enough to begin with.
        mu = self.mean
        shape = 1 / mu + self.dispersion
        inside = q.clamp(1e-300, 1 - 1e-16)
        guess = elementwise(special.gammaincinv, 1 / shape, inside) * shape * mu
        return count_search(self, q, guess)

    @in_double
    def crps(self, y: Tensor) -> Tensor:
        r"""The closed form up to one smooth integral, in double precision as its terms cancel.

        .. math:: (y - \mu)(2 F(y) - 1) + 2 \mu (1 + \alpha \lfloor y \rfloor) p(\lfloor y \rfloor)
                  - \tfrac12 E|Y - Y'|

        The first two terms are E|Y - y|; the last is Wei and Held's (2014) hypergeometric function.
        """
        alpha, variance, k = self.dispersion, self.variance, y.floor()
        edge = 2 * self.mean * (1 + alpha * k.clamp(min=0)) * self.log_prob(k).exp()
        # |characteristic function|^2 = (1 + 4 alpha v sin^2(t/2))^(-1/alpha), v the variance
        pair = count_difference(lambda u: log1p_over(alpha, 4 * variance * u), variance)
        return (y - self.mean) * (2 * self.cdf(y) - 1) + edge - 0.5 * pair

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """A gamma rate with mean mu and shape 1 / alpha, then Poisson's."""
        r = (1 / self.dispersion).expand(size).contiguous()
        draw = torch._standard_gamma(r, generator=generator)
        return PoissonDistribution((draw / r).log() + self.log_mean).sample((), generator)


def log1p_over(alpha: Tensor, x: Tensor) -> Tensor:
    """log(1 + alpha x) / alpha with all its digits, and those of its slopes, down to alpha = 0."""
    t = alpha * x
    small = t.abs() < 0.02
    near = torch.where(small, t, 0)
    series = torch.zeros_like(near)
    for n in range(9, 0, -1):  # sum of (-t)^(n-1) / n; the tenth term is below 1e-16
        series = 1 / n - near * series
    direct = torch.log1p(torch.where(small, 1.0, t)) / torch.where(small, 1.0, alpha)
    return torch.where(small, x * series, direct)


def _half_deviance(log_mean: Tensor, alpha: Tensor, y: Tensor) -> Tensor:
    """(y + 1/alpha) log((1 + alpha mu) / (1 + alpha y)) + y log(y / mu), for y > 0.

    At alpha = 0 it is Poisson's, mu - y + y log(y / mu).
    """
    d = log_mean - y.log()
    one = 1 + alpha * y
    m = y * torch.expm1(d) / one  # (mu - y) / (1 + alpha y)
    near = alpha * m > -0.5
    # 1 + alpha m would round to 0 where alpha y is large and mu small
    apart = torch.log1p(alpha * log_mean.exp()) - one.log()  # log((1 + alpha mu) / (1 + alpha y))
    ratio = torch.where(near, log1p_over(alpha, torch.where(near, m, 0.0)), apart / alpha)
    # apart - d, which is small beside d where alpha y is large
    close = torch.log1p(torch.expm1(-d.clamp(min=-1.0)) / one)
    return ratio + y * torch.where(d > -1, close, apart - d)


class NegativeBinomial(Dispersed):
    r"""Counts from 0 on whose variance exceeds their mean (NB2).

    .. math:: -\log p(y) = \log\frac{\Gamma(1/\alpha)\, y!}{\Gamma(y + 1/\alpha)}
              + \left(y + \frac1\alpha\right) \log(1 + \alpha\mu) - y \log(\alpha\mu)

    with :math:`\log\mu` = raw[0] (log link) and the dispersion :math:`\alpha` = unit *
    softplus(raw[1]) + floor, so that the variance is :math:`\mu + \alpha\mu^2` and the linear model
    with constant dispersion is negative binomial regression. As :math:`\alpha \to 0` it is the
    Poisson distribution. The unit is the maximum-likelihood :math:`\alpha` of the constant model;
    the floor is 1e-4 over the largest count, at most half the unit: there the variance exceeds
    Poisson's by less than 1e-4 of it. raw[0] beyond 50 grows logarithmically.

    Args:
        dispersion: alpha ``"predicted"`` from x, ``"constant"``, or known (1: geometric).

    Shapes:
        - raw: ``(..., 2)``, or ``(..., 1)`` unless the dispersion is predicted.
        - y: ``(...)``, whole numbers >= 0.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import NegativeBinomial
        >>> NegativeBinomial(dispersion=1.0).loss(torch.zeros(1, 1), torch.zeros(1))  # log 2
        tensor([0.6931])

    References:
        Cameron and Trivedi (2013), Regression Analysis of Count Data, section 3.3.
    """

    name = "negative_binomial"
    support = "counts"
    link_name = "log"

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the dispersion."""
        y = y.to(weight.dtype)
        mean, alpha = _mean(y, weight), _dispersion(y, weight)
        total = expand_weight(weight, y)
        floor = 1e-4 / torch.where(total > 0, y, 0).amax(0).clamp(min=1)
        # Where the counts vary no more than Poisson's: what chance alone makes alpha look like.
        unit = torch.where(alpha > 0, alpha, (2 / total.sum(0)).sqrt() / mean)
        unit = torch.where(alpha > 0, unit, torch.maximum(unit, 2 * floor))
        self.dispersion.observe(unit, torch.minimum(floor, unit / 2))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Log mean and maximum-likelihood alpha; the scale is the coefficient of variation.

        Zeros alone have no finite maximum-likelihood log mean: half a count is added to them.
        """
        y = y.to(weight.dtype)
        mean, sd = _mean(y, weight), weighted_sd(y, weight)
        scale = torch.where(sd > 0, (sd / mean).clamp(max=1), 1.0)
        return self.dispersion.append(mean.log(), scale, _dispersion(y, weight))

    def distribution(self, raw: Tensor) -> NegativeBinomialDistribution:
        """Negative binomial with mean exp(raw[0])."""
        return NegativeBinomialDistribution(soft_cap(raw[..., 0]), self.dispersion(raw))

    def _alpha(self, like: Tensor) -> Tensor:
        """The alpha of deviances, the constant model's where it is predicted: one for all rows."""
        if self.dispersion.kind == "predicted":
            return self.dispersion.unit.to(like.dtype)
        return self.dispersion.value(like.dtype)

    def unit_deviance(self, raw: Tensor, y: Tensor) -> Tensor:
        """2 (y log(y / mu) - (y + 1/alpha) log((1 + alpha y) / (1 + alpha mu))).

        With the constant or known alpha; where alpha is predicted, with that of the constant model,
        so that the deviances of two models can be compared.
        """
        require_same_shape(self.name, raw, y)
        eta = soft_cap(raw[..., 0])
        alpha = self._alpha(raw).expand_as(eta)
        positive = torch.where(y > 0, y, 1.0)
        zero = log1p_over(alpha, eta.exp())
        return 2 * torch.where(y > 0, _half_deviance(eta, alpha, positive), zero)

    def variance_function(self, mu: Tensor) -> Tensor:
        """V(mu) = mu + alpha mu^2, with the alpha of the deviance."""
        return mu * (1 + self._alpha(mu) * mu)


def _mean(y: Tensor, weight: Tensor) -> Tensor:
    mean = weighted_mean(y, weight)
    return torch.where(mean > 0, mean, 0.5 / (expand_weight(weight, y).sum(0) + 1))


def _dispersion(y: Tensor, weight: Tensor) -> Tensor:
    """The maximum-likelihood alpha of the constant model, 0 where y varies no more than Poisson's.

    r = 1 / alpha solves mean(digamma(r + y) - digamma(r)) = log(1 + mean / r); Newton's method in
    log r from the moment estimate, in a bracket.
    """
    dtype, y, weight = y.dtype, y.double(), weight.double()
    mean, excess = _mean(y, weight), weighted_sd(y, weight) ** 2 - weighted_mean(y, weight)
    over = excess > 1e-10 * mean
    log_r = torch.where(over, mean**2 / torch.where(over, excess, 1.0), 1.0).log().clamp(-20, 30)
    low, high = torch.full_like(log_r, -35.0), torch.full_like(log_r, 35.0)
    seen = torch.where(expand_weight(weight, y) > 0, y, 0)
    for _ in range(60):
        r = log_r.exp()
        # r^2 d loglik / dr, positive below the root
        gap = weighted_mean(digamma_gap(r.expand_as(y), seen), weight) - torch.log1p(mean / r)
        low, high = torch.where(gap > 0, log_r, low), torch.where(gap > 0, high, log_r)
        bend = torch.special.polygamma(1, r + seen) - torch.special.polygamma(1, r)
        slope = r * (weighted_mean(bend, weight) + mean / (r * (r + mean)))  # d gap / d log r
        new = log_r - gap / torch.where(slope < 0, slope, -torch.inf)
        new = torch.where((new > low) & (new < high) & (slope < 0), new, (low + high) / 2)
        if bool(((new - log_r).abs() < 1e-14 * new.abs().clamp(min=1))[over].all()):
            break
        log_r = new
    return torch.where(over, (-log_r).exp(), 0).to(dtype)
