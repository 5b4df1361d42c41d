"""The likelihoods with a cdf, as the benchmark of likelihoods meets them.

Parameters are drawn for each point, over the ranges that networks predict for standardised
features. ``scipy`` is a frozen scipy.stats likelihood with the same parameters; where there is
none, it is composed of scipy's own functions, in the way a user of scipy would.
"""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import exact_tails
import numpy as np
import torch
from scipy import special, stats
from scipy.optimize import elementwise
from torch import Generator, Tensor

from ansatz.likelihoods import BetaDistribution, Distribution, PoissonDistribution
from ansatz.likelihoods.bernoulli import BernoulliDistribution
from ansatz.likelihoods.beta_binomial import BetaBinomialDistribution
from ansatz.likelihoods.binomial import BinomialDistribution
from ansatz.likelihoods.exponential import ExponentialDistribution
from ansatz.likelihoods.gamma import GammaDistribution
from ansatz.likelihoods.generalized_pareto import GeneralizedParetoDistribution
from ansatz.likelihoods.hurdle_poisson import HurdlePoissonDistribution
from ansatz.likelihoods.inverse_gaussian import InverseGaussianDistribution
from ansatz.likelihoods.laplace import LaplaceDistribution
from ansatz.likelihoods.log_normal import LogNormalDistribution
from ansatz.likelihoods.negative_binomial import NegativeBinomialDistribution
from ansatz.likelihoods.normal import NormalDistribution
from ansatz.likelihoods.normal_mixture_distribution import NormalMixtureDistribution
from ansatz.likelihoods.ordinal import OrdinalDistribution
from ansatz.likelihoods.student_t import StudentTDistribution
from ansatz.likelihoods.tweedie_distribution import TweedieDistribution
from ansatz.likelihoods.von_mises import VonMisesDistribution
from ansatz.likelihoods.weibull import WeibullDistribution
from ansatz.likelihoods.zero_inflated import ZeroInflatedDistribution
from ansatz.likelihoods.zero_one_inflated_beta import ZeroOneInflatedBetaDistribution

Draw = Callable[[Generator, int], Tensor]
Support = Literal["real", "positive", "unit", "circle", "counts", "few"]


class Case(NamedTuple):
    """One likelihood: its parameters, itself, scipy's, and the truth."""

    parameters: tuple[Draw, ...]
    likelihood: Callable[..., Distribution]
    scipy: Callable[..., Any]
    exact: Callable[..., Any]
    support: Support
    fixed: int = 0  # how many of the last parameters have no gradient
    composed: str = ""  # of which functions of scipy's, where it has no such likelihood

    def draw(self, generator: Generator, points: int) -> list[Tensor]:
        return [draw(generator, points) for draw in self.parameters]

    def outcomes(self, parameters: list[Tensor], generator: Generator) -> Tensor:
        """One for each point; angles within pi of the mean, as scipy counts them."""
        likelihood = self.likelihood(*parameters)
        y = likelihood.sample((), generator)
        if self.support != "circle":
            return y
        return (
            likelihood.mean + torch.remainder(y - likelihood.mean + math.pi, 2 * math.pi) - math.pi
        )


def normal(mean: float, sd: float, *more: int) -> Draw:
    def draw(generator, points):
        size = (points, *more)
        return mean + sd * torch.randn(size, generator=generator, dtype=torch.float64)

    return draw


def log_normal(mean: float, sd: float, *more: int) -> Draw:
    return lambda *size: normal(mean, sd, *more)(*size).exp()


def uniform(low: float, high: float) -> Draw:
    def draw(generator, points):
        u = torch.rand(points, generator=generator, dtype=torch.float64)
        return low + (high - low) * u

    return draw


def trials(generator: Generator, points: int) -> Tensor:
    return torch.randint(1, 101, (points,), generator=generator).double()


def thresholds(generator: Generator, points: int) -> Tensor:
    """Five classes with the same thresholds in every row, as the ordinal likelihood has them."""
    steps = torch.tensor([-2.0, 0.5, 0.5, 1.0], dtype=torch.float64)
    return steps.expand(points, -1)


def log_mean_of_counts(generator: Generator, points: int) -> Tensor:
    return normal(1.5, 1.5)(generator, points)


def scipy_beta(logits, dispersion):
    return stats.beta(special.expit(logits) / dispersion, special.expit(-logits) / dispersion)


def scipy_negative_binomial(log_mean, alpha):
    return stats.nbinom(1 / alpha, 1 / (1 + alpha * np.exp(log_mean)))


def scipy_mixture(logits, means, sds):
    weights, each = special.softmax(logits, -1), stats.norm(means, sds)

    def cdf(y):
        return (weights * each.cdf(y[:, None])).sum(-1)

    def excess(y, q, *columns):
        w, m, s = columns[::3], columns[1::3], columns[2::3]
        return sum(w * stats.norm.cdf(y, m, s) for w, m, s in zip(w, m, s, strict=True)) - q

    def ppf(q):
        ends = each.ppf(q[:, None])
        bracket = ends.min(-1) - 1e-9, ends.max(-1) + 1e-9
        columns = np.stack([weights, means, sds], -1).reshape(len(q), -1).T  # w, m, s, w, ...
        return elementwise.find_root(excess, bracket, args=(q, *columns)).x

    def logsf(y):
        return special.logsumexp(each.logsf(y[:, None]), -1, b=weights)

    return SimpleNamespace(cdf=cdf, ppf=ppf, logsf=logsf)


def scipy_tweedie(log_mean, phi, p):
    mean = np.exp(log_mean)
    rate, alpha = mean ** (2 - p) / (phi * (2 - p)), (2 - p) / (p - 1)
    scale = phi * (p - 1) * mean ** (p - 1)

    def terms():
        most = int((rate + 9 * np.sqrt(rate) + 10).max())
        return [(stats.poisson.pmf(j, rate), j * alpha) for j in range(1, most + 1)]

    def cdf(y):
        return np.exp(-rate) + sum(w * special.gammainc(a, y / scale) for w, a in terms())

    def logsf(y):
        return np.log(sum(w * special.gammaincc(a, y / scale) for w, a in terms()))

    return SimpleNamespace(cdf=cdf, logsf=logsf)


def scipy_unit(logits, dispersion, ends):
    zero, one, rest = special.softmax(np.c_[ends, np.zeros(len(ends))], -1).T
    inner = scipy_beta(logits, dispersion)

    def ppf(q):
        level = np.clip((q - zero) / rest, 0, 1)
        return np.where(q <= zero, 0.0, np.where(q > 1 - one, 1.0, inner.ppf(level)))

    return SimpleNamespace(
        cdf=lambda y: np.where(y >= 1, 1.0, zero + rest * inner.cdf(y)),
        logsf=lambda y: np.where(y >= 1, -np.inf, np.log(one + rest * inner.sf(y))),
        ppf=ppf,
    )


def scipy_ordinal(eta, steps):
    theta = np.cumsum(np.concatenate([steps[:, :1], np.logaddexp(0, steps[:, 1:])], -1), -1)

    def gap(y):
        code = np.minimum(y, steps.shape[1] - 1).astype(int)[:, None]
        return np.take_along_axis(theta, code, -1)[:, 0] - eta

    top = steps.shape[1]
    return SimpleNamespace(
        cdf=lambda y: np.where(y >= top, 1.0, stats.logistic.cdf(gap(y))),
        logsf=lambda y: np.where(y >= top, -np.inf, stats.logistic.logsf(gap(y))),
        ppf=lambda q: (stats.logistic.cdf(theta - eta[:, None]) < q[:, None]).sum(-1),
    )


def behind_zeros(counts, pi):
    return SimpleNamespace(
        cdf=lambda y: pi + (1 - pi) * counts.cdf(y),
        logsf=lambda y: np.log1p(-pi) + counts.logsf(y),
        ppf=lambda q: np.maximum(counts.ppf(np.clip((q - pi) / (1 - pi), 0, 1)), 0),
    )


def scipy_hurdle(log_rate, logits):
    counts = stats.poisson(np.exp(log_rate))
    some, p = counts.sf(0), special.expit(logits)

    def ppf(q):
        level = np.clip((q - 1 + p) / p, 0, 1)
        return np.where(q <= 1 - p, 0, counts.ppf(1 - some * (1 - level)))

    return SimpleNamespace(
        cdf=lambda y: 1 - p * np.where(y < 1, 1, counts.sf(y) / some),
        logsf=lambda y: np.log(p) + np.where(y < 1, 0, counts.logsf(y) - np.log(some)),
        ppf=ppf,
    )


def inflated(likelihood):
    return lambda *p: ZeroInflatedDistribution(likelihood(*p[:-1]), p[-1])


LOG_MEAN, SCALE, ODDS = normal(0, 1.5), log_normal(0, 0.7), normal(0, 1.5)
COUNTS, ALPHA = log_mean_of_counts, log_normal(-0.5, 1.0)
MIX = (normal(0, 1, 3), normal(0, 2, 3), log_normal(-0.5, 0.5, 3))

CASES = {
    "normal": Case(
        (normal(0, 3), SCALE),
        NormalDistribution,
        stats.norm,
        exact_tails.normal,
        "real",
    ),
    "laplace": Case(
        (normal(0, 3), SCALE),
        LaplaceDistribution,
        stats.laplace,
        exact_tails.laplace,
        "real",
    ),
    "student_t": Case(
        (normal(0, 3), SCALE, log_normal(1.5, 1.0)),
        StudentTDistribution,
        lambda m, s, nu: stats.t(nu, m, s),
        exact_tails.student_t,
        "real",
    ),
    "normal_mixture": Case(
        MIX,
        NormalMixtureDistribution,
        scipy_mixture,
        exact_tails.normal_mixture,
        "real",
        composed="three weighted norms; quantiles by scipy.optimize.elementwise.find_root",
    ),
    "exponential": Case(
        (LOG_MEAN,),
        ExponentialDistribution,
        lambda m: stats.expon(scale=np.exp(m)),
        exact_tails.exponential,
        "positive",
    ),
    "gamma": Case(
        (LOG_MEAN, log_normal(-1, 1.5)),
        GammaDistribution,
        lambda m, phi: stats.gamma(1 / phi, scale=phi * np.exp(m)),
        exact_tails.gamma,
        "positive",
    ),
    "log_normal": Case(
        (LOG_MEAN, SCALE),
        LogNormalDistribution,
        lambda m, s: stats.lognorm(s, scale=np.exp(m)),
        exact_tails.log_normal,
        "positive",
    ),
    "weibull": Case(
        (LOG_MEAN, SCALE),
        WeibullDistribution,
        lambda m, s: stats.weibull_min(1 / s, scale=np.exp(m)),
        exact_tails.weibull,
        "positive",
    ),
    "inverse_gaussian": Case(
        (LOG_MEAN, log_normal(-0.5, 1.0)),
        InverseGaussianDistribution,
        lambda m, phi: stats.invgauss(phi * np.exp(m), scale=1 / phi),
        exact_tails.inverse_gaussian,
        "positive",
    ),
    "tweedie": Case(
        (normal(0.5, 1), log_normal(0, 0.5), uniform(1.2, 1.8)),
        TweedieDistribution,
        scipy_tweedie,
        exact_tails.tweedie,
        "positive",
        composed="the sum of poisson.pmf * gammainc over all counts",
    ),
    "generalized_pareto": Case(
        (LOG_MEAN, normal(0.1, 0.15)),
        GeneralizedParetoDistribution,
        lambda m, xi: stats.genpareto(xi, scale=np.exp(m)),
        exact_tails.generalized_pareto,
        "positive",
    ),
    "beta": Case(
        (ODDS, log_normal(-1.5, 1.0)),
        BetaDistribution,
        scipy_beta,
        exact_tails.beta,
        "unit",
    ),
    "zero_one_inflated_beta": Case(
        (ODDS, log_normal(-1.5, 1.0), normal(-1, 1, 2)),
        lambda m, phi, ends: ZeroOneInflatedBetaDistribution(BetaDistribution(m, phi), ends),
        scipy_unit,
        exact_tails.zero_one_inflated_beta,
        "unit",
        composed="beta and its two atoms",
    ),
    "von_mises": Case(
        (normal(0, 3), normal(0, 3)),
        VonMisesDistribution,
        lambda a, b: stats.vonmises(np.hypot(a, b), np.arctan2(b, a)),
        exact_tails.von_mises,
        "circle",
    ),
    "bernoulli": Case(
        (ODDS,),
        BernoulliDistribution,
        lambda o: stats.bernoulli(special.expit(o)),
        exact_tails.bernoulli,
        "few",
    ),
    "binomial": Case(
        (ODDS, trials),
        BinomialDistribution,
        lambda o, n: stats.binom(n, special.expit(o)),
        exact_tails.binomial,
        "counts",
        1,
    ),
    "beta_binomial": Case(
        (ODDS, log_normal(-1.5, 1.0), trials),
        BetaBinomialDistribution,
        lambda o, phi, n: stats.betabinom(n, special.expit(o) / phi, special.expit(-o) / phi),
        exact_tails.beta_binomial,
        "counts",
        1,
    ),
    "ordinal": Case(
        (normal(0, 1.5), thresholds),
        OrdinalDistribution,
        scipy_ordinal,
        exact_tails.ordinal,
        "few",
        composed="logistic at the five classes' thresholds",
    ),
    "poisson": Case(
        (COUNTS,),
        PoissonDistribution,
        lambda m: stats.poisson(np.exp(m)),
        exact_tails.poisson,
        "counts",
    ),
    "negative_binomial": Case(
        (COUNTS, ALPHA),
        NegativeBinomialDistribution,
        scipy_negative_binomial,
        exact_tails.negative_binomial,
        "counts",
    ),
    "zero_inflated_poisson": Case(
        (COUNTS, normal(-1, 1)),
        inflated(PoissonDistribution),
        lambda m, o: behind_zeros(stats.poisson(np.exp(m)), special.expit(o)),
        exact_tails.zero_inflated_poisson,
        "counts",
        composed="poisson and its atom",
    ),
    "zero_inflated_negative_binomial": Case(
        (COUNTS, ALPHA, normal(-1, 1)),
        inflated(NegativeBinomialDistribution),
        lambda m, a, o: behind_zeros(scipy_negative_binomial(m, a), special.expit(o)),
        exact_tails.zero_inflated_negative_binomial,
        "counts",
        composed="nbinom and its atom",
    ),
    "hurdle_poisson": Case(
        (COUNTS, normal(0.5, 1)),
        HurdlePoissonDistribution,
        scipy_hurdle,
        exact_tails.hurdle_poisson,
        "counts",
        composed="poisson above 0 and its atom",
    ),
}
