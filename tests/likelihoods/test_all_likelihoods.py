"""What every likelihood promises: a new likelihood is one file and one row here."""

import copy
import math
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
import torch
from scipy import integrate, optimize, special, stats
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.likelihoods import (
    Bernoulli,
    Beta,
    BetaBinomial,
    Binomial,
    Categorical,
    Distribution,
    Exponential,
    Gamma,
    GeneralizedPareto,
    HurdleNegativeBinomial,
    HurdlePoisson,
    InverseGaussian,
    Laplace,
    Likelihood,
    LogNormal,
    NegativeBinomial,
    Normal,
    NormalMixture,
    Poisson,
    StudentT,
    Tweedie,
    VonMises,
    Weibull,
    ZeroInflatedNegativeBinomial,
    ZeroInflatedPoisson,
    create,
    names,
)
from ansatz.likelihoods.likelihood import require_same_shape
from ansatz.spec import TargetSpec


class Row(NamedTuple):
    likelihood: Likelihood
    P: int
    scipy: Any  # raw (N, P) tensor -> frozen scipy distribution over rows


def numpy(*tensors):
    return [t.detach().numpy() for t in tensors]


def scipy_normal(likelihood):
    return lambda raw: stats.norm(*numpy(raw[:, 0], likelihood.dispersion(raw)))


def scipy_laplace(likelihood):
    return lambda raw: stats.laplace(*numpy(raw[:, 0], likelihood.dispersion(raw)))


def scipy_gamma(likelihood):
    def frozen(raw):
        mean, phi = numpy(raw[:, 0].exp(), likelihood.dispersion(raw))
        return stats.gamma(1 / phi, scale=phi * mean)

    return frozen


def scipy_exponential(likelihood):
    return lambda raw: stats.expon(scale=raw[:, 0].exp().numpy())


def scipy_log_normal(likelihood):
    def frozen(raw):
        median, sigma = numpy(raw[:, 0].exp(), likelihood.dispersion(raw))
        return stats.lognorm(sigma, scale=median)

    return frozen


def scipy_weibull(likelihood):
    def frozen(raw):
        scale, sigma = numpy(raw[:, 0].exp(), likelihood.dispersion(raw))
        return stats.weibull_min(1 / sigma, scale=scale)

    return frozen


def scipy_inverse_gaussian(likelihood):
    def frozen(raw):
        mean, phi = numpy(raw[:, 0].exp(), likelihood.dispersion(raw))
        return stats.invgauss(phi * mean, scale=1 / phi)

    return frozen


def scipy_generalized_pareto(likelihood):
    def frozen(raw):
        scale, shape = numpy(raw[:, 0].exp(), likelihood.distribution(raw).shape)
        return stats.genpareto(shape, scale=scale)

    return frozen


def scipy_t(likelihood):
    return lambda raw: stats.t(
        *numpy(likelihood.freedom(raw), raw[:, 0], likelihood.dispersion(raw))
    )


class _WithExtraZeros(stats.rv_discrete):
    """A count likelihood of scipy's behind zeros of probability pi, from its own functions."""

    base = stats.poisson

    def _pmf(self, k, *args):
        *args, pi = args
        return (1 - pi) * self.base.pmf(k, *args) + pi * (k == 0)

    def _cdf(self, k, *args):
        *args, pi = args
        return pi + (1 - pi) * self.base.cdf(k, *args)

    def _sf(self, k, *args):
        *args, pi = args
        return (1 - pi) * self.base.sf(k, *args)

    def _ppf(self, q, *args):
        *args, pi = args
        return np.maximum(self.base.ppf(np.clip((q - pi) / (1 - pi), 0, 1), *args), 0)

    def _stats(self, *args):
        *args, pi = args
        m, v = self.base.stats(*args)
        return (1 - pi) * m, (1 - pi) * (v + pi * m**2), None, None


class _Positive(stats.rv_discrete):
    """Poisson counts without the zeros."""

    def _pmf(self, k, mu):
        return np.where(k > 0, stats.poisson.pmf(k, mu) / -np.expm1(-mu), 0)

    def _cdf(self, k, mu):
        return 1 - self._sf(k, mu)

    def _sf(self, k, mu):
        return np.where(k > 0, stats.poisson.sf(k, mu) / -np.expm1(-mu), 1)

    def _ppf(self, q, mu):
        return np.where(q > 0, stats.poisson.ppf(1 + (1 - q) * np.expm1(-mu), mu), 0)

    def _stats(self, mu):
        m = mu / -np.expm1(-mu)
        return m, m * (1 + mu - m), None, None


class _BehindHurdle(_WithExtraZeros):
    base = _Positive(name="positive")


class _PositiveNB(stats.rv_discrete):
    """Negative binomial counts without the zeros."""

    def _some(self, n, p):
        return -np.expm1(n * np.log(p))

    def _pmf(self, k, n, p):
        return np.where(k > 0, stats.nbinom.pmf(k, n, p) / self._some(n, p), 0)

    def _cdf(self, k, n, p):
        return 1 - self._sf(k, n, p)

    def _sf(self, k, n, p):
        return np.where(k > 0, stats.nbinom.sf(k, n, p) / self._some(n, p), 1)

    def _ppf(self, q, n, p):
        return np.where(q > 0, stats.nbinom.ppf(1 - (1 - q) * self._some(n, p), n, p), 0)

    def _stats(self, n, p):
        mean, variance = stats.nbinom.stats(n, p)
        m = mean / self._some(n, p)
        return m, (variance + mean**2) / self._some(n, p) - m**2, None, None


class _BehindHurdleNB(_WithExtraZeros):
    base = _PositiveNB(name="positive_nb")


class _WithExtraZerosNB(_WithExtraZeros):
    base = stats.nbinom


zero_inflated_poisson = _WithExtraZeros(shapes="mu, pi", name="zero_inflated")
zero_inflated_nb = _WithExtraZerosNB(shapes="n, p, pi", name="zero_inflated_nb")
hurdle_nb = _BehindHurdleNB(shapes="n, p, pi", name="hurdle_nb")
hurdle_poisson = _BehindHurdle(shapes="mu, pi", name="hurdle")


def scipy_extra_zeros(likelihood, sign=1):
    """raw = (log mean, log odds): of an extra zero, or with sign -1 of a count above 0."""
    shape = zero_inflated_poisson if sign == 1 else hurdle_poisson
    return lambda raw: shape(*numpy(raw[:, 0].exp(), (sign * raw[:, 1]).sigmoid()))


class _TenTrials(Likelihood):
    """A likelihood of successes with ten trials in every row: its outcomes are then numbers."""

    event_ndim = 0

    def _pair(self, y):
        return torch.stack([y, torch.full_like(y, 10.0)], -1)

    def check(self, y):
        super().check(self._pair(y))

    def observe(self, y, weight):
        super().observe(self._pair(y), weight)

    def start(self, y, weight):
        return super().start(self._pair(y), weight)

    def loss(self, raw, y):
        require_same_shape(self.name, raw, y)
        return super().loss(raw, self._pair(y))

    def distribution(self, raw, trials=10):
        return super().distribution(raw, trials)

    def point(self, raw):
        return self.distribution(raw).mean


class TenTrialsBinomial(_TenTrials, Binomial):
    pass


class TenTrialsBetaBinomial(_TenTrials, BetaBinomial):
    pass


def scipy_binomial(likelihood):
    return lambda raw: stats.binom(10, *numpy(raw[:, 0].sigmoid()))


def scipy_beta_binomial(likelihood):
    return lambda raw: stats.betabinom(10, *scipy_beta(likelihood)(raw).args)


def scipy_beta(likelihood):
    def frozen(raw):
        mean, dispersion = raw[:, 0].sigmoid(), likelihood.dispersion(raw)
        return stats.beta(*numpy(mean / dispersion, (1 - mean) / dispersion))

    return frozen


def scipy_negative_binomial(likelihood):
    def frozen(raw):
        mean, alpha = numpy(raw[:, 0].exp(), likelihood.dispersion(raw))
        return stats.nbinom(1 / alpha, 1 / (1 + alpha * mean))

    return frozen


class _Mixture:
    """Normal distributions of scipy with probabilities w; has the methods of a frozen one."""

    kwds: ClassVar = {}

    def __init__(self, w, m, s):
        self.args, self.w, self.each, self.dist = (w, m, s), w, stats.norm(m, s), type(self)

    def _log_sum(self, log_terms):
        return special.logsumexp(np.log(self.w) + log_terms, -1)

    def logpdf(self, y):
        return self._log_sum(self.each.logpdf(y[..., None]))

    def cdf(self, y):
        return (self.w * self.each.cdf(np.asarray(y)[..., None])).sum(-1)

    def sf(self, y):
        return (self.w * self.each.sf(np.asarray(y)[..., None])).sum(-1)

    def logcdf(self, y):
        return self._log_sum(self.each.logcdf(y[..., None]))

    def logsf(self, y):
        return self._log_sum(self.each.logsf(y[..., None]))

    def mean(self):
        return (self.w * self.each.mean()).sum(-1)

    def var(self):
        return (self.w * (self.each.var() + self.each.mean() ** 2)).sum(-1) - self.mean() ** 2

    def std(self):
        return self.var() ** 0.5

    def median(self):
        return np.array([one.ppf([0.5])[0] for one in _each(self)])

    def ppf(self, q):
        ends = self.each.ppf(np.asarray(q)[:, None])
        pairs = zip(q, ends.min(-1) - 1e-9, ends.max(-1) + 1e-9, strict=True)
        solve = optimize.brentq
        return np.array(
            [solve(lambda y, p=p: float(self.cdf(y)) - p, a, b, xtol=1e-14) for p, a, b in pairs]
        )


def scipy_mixture(likelihood):
    def frozen(raw):
        d = likelihood.distribution(raw)
        return _Mixture(*numpy(d.weights, d.means, d.sds))

    return frozen


class _Circular(type(stats.vonmises)):
    """scipy's von Mises with the moments of directions, and outcomes wrapped."""

    def _wrapped(self, method, x, kappa, loc):
        x = loc + np.angle(np.exp(1j * (x - loc)))
        return getattr(super(), method)(x, kappa, loc)

    def cdf(self, x, kappa, loc):
        return self._wrapped("cdf", x, kappa, loc)

    def logcdf(self, x, kappa, loc):
        return np.log(self.cdf(x, kappa, loc))

    def logsf(self, x, kappa, loc):
        return np.log(self.cdf(2 * loc - x, kappa, loc))

    def mean(self, kappa, loc):
        return loc

    def var(self, kappa, loc):
        return 1 - special.ive(1, kappa) / special.ive(0, kappa)

    def std(self, kappa, loc):
        return np.sqrt(-2 * np.log(1 - self.var(kappa, loc)))

    def median(self, kappa, loc):
        return loc


def scipy_von_mises(likelihood):
    direction = _Circular(name="circular")
    return lambda raw: direction(*numpy(raw.norm(dim=-1), torch.atan2(raw[:, 1], raw[:, 0])))


def scipy_zero_inflated_nb(likelihood, sign=1):
    """As ``scipy_extra_zeros``, with the dispersion between the two raw numbers."""
    shape = zero_inflated_nb if sign == 1 else hurdle_nb

    def frozen(raw):
        mean, alpha, pi = numpy(
            raw[:, 0].exp(), likelihood.dispersion(raw[:, :-1]), (sign * raw[:, -1]).sigmoid()
        )
        return shape(1 / alpha, 1 / (1 + alpha * mean), pi)

    return frozen


def row(likelihood, P, scipy):
    return Row(likelihood, P, scipy(likelihood))


ROWS = {
    "normal": row(Normal(), 2, scipy_normal),
    "normal, constant": row(Normal(dispersion="constant"), 1, scipy_normal),
    "normal, known": row(Normal(dispersion=0.3), 1, scipy_normal),
    "laplace": row(Laplace(), 2, scipy_laplace),
    "student_t": row(StudentT(), 2, scipy_t),
    "student_t, nu 3.5": row(StudentT(nu=3.5, dispersion="constant"), 1, scipy_t),
    "gamma": row(Gamma(), 2, scipy_gamma),
    "gamma, exponential": row(Gamma(dispersion=1.0), 1, scipy_gamma),
    "exponential": row(Exponential(), 1, scipy_exponential),
    "log_normal": row(LogNormal(), 2, scipy_log_normal),
    "weibull": row(Weibull(), 2, scipy_weibull),
    "weibull, known": row(Weibull(dispersion=0.4), 1, scipy_weibull),
    "inverse_gaussian": row(InverseGaussian(), 2, scipy_inverse_gaussian),
    "generalized_pareto": row(GeneralizedPareto(), 1, scipy_generalized_pareto),
    "generalized_pareto, heavy": row(GeneralizedPareto(shape=0.2), 1, scipy_generalized_pareto),
    "generalized_pareto, bounded": row(GeneralizedPareto(shape=-0.3), 1, scipy_generalized_pareto),
    "beta": row(Beta(), 2, scipy_beta),
    "beta, phi 5": row(Beta(dispersion=0.2), 1, scipy_beta),
    "normal_mixture": row(NormalMixture(), 8, scipy_mixture),
    "normal_mixture, one": row(NormalMixture(components=1), 2, scipy_mixture),
    "von_mises": row(VonMises(), 2, scipy_von_mises),
    "poisson": row(Poisson(), 1, lambda _: lambda raw: stats.poisson(*numpy(raw[:, 0].exp()))),
    "binomial": row(TenTrialsBinomial(), 1, scipy_binomial),
    "beta_binomial": row(TenTrialsBetaBinomial(), 2, scipy_beta_binomial),
    "beta_binomial, rho 1/6": row(TenTrialsBetaBinomial(dispersion=0.2), 1, scipy_beta_binomial),
    "negative_binomial": row(NegativeBinomial(), 2, scipy_negative_binomial),
    "negative_binomial, constant": row(
        NegativeBinomial(dispersion="constant"), 1, scipy_negative_binomial
    ),
    "bernoulli": row(
        Bernoulli(), 1, lambda _: lambda raw: stats.bernoulli(*numpy(raw[:, 0].sigmoid()))
    ),
    "zero_inflated_poisson": row(ZeroInflatedPoisson(), 2, scipy_extra_zeros),
    "hurdle_poisson": row(HurdlePoisson(), 2, lambda likelihood: scipy_extra_zeros(likelihood, -1)),
    "zero_inflated_negative_binomial": row(
        ZeroInflatedNegativeBinomial(), 3, scipy_zero_inflated_nb
    ),
    "hurdle_negative_binomial": row(
        HurdleNegativeBinomial(), 3, lambda likelihood: scipy_zero_inflated_nb(likelihood, -1)
    ),
}
DISCRETE = {
    "binomial",
    "beta_binomial",
    "beta_binomial, rho 1/6",
    "negative_binomial",
    "negative_binomial, constant",
    "poisson",
    "bernoulli",
    "zero_inflated_poisson",
    "zero_inflated_negative_binomial",
    "hurdle_poisson",
    "hurdle_negative_binomial",
}
ROBUST = ("charbonnier", "cauchy", "geman_mcclure", "welsch")
CIRCULAR = {"von_mises"}  # whose crps measures angles
CONTINUOUS = [name for name in ROWS if name not in DISCRETE]
every_likelihood = pytest.mark.parametrize("likelihood, P, scipy", ROWS.values(), ids=ROWS)
every_continuous = pytest.mark.parametrize(
    "likelihood, P, scipy", [ROWS[n] for n in CONTINUOUS], ids=CONTINUOUS
)
LINE = [name for name in ROWS if name not in CIRCULAR]
every_on_the_line = pytest.mark.parametrize(
    "likelihood, P, scipy", [ROWS[n] for n in LINE], ids=LINE
)
# the same, and the two whose outcomes are classes
WIDE = {**ROWS, "categorical": Row(Categorical(), 4, None), "tweedie": Row(Tweedie(), 2, None)}
every_wide = pytest.mark.parametrize("likelihood, P, scipy", WIDE.values(), ids=WIDE)


def density(frozen, y):
    return (frozen.logpmf if hasattr(frozen.dist, "pmf") else frozen.logpdf)(y.numpy())


def draw(likelihood, raw, *shape):
    generator = torch.Generator().manual_seed(1)
    return likelihood.distribution(raw.detach()).sample(shape, generator)


@every_likelihood
def test_loss_is_minus_scipys_log_density(likelihood, P, scipy):
    raw = torch.randn(64, P)
    y = draw(likelihood, raw)
    assert_close(
        likelihood.loss(raw, y), -torch.as_tensor(density(scipy(raw), y)), rtol=1e-9, atol=1e-9
    )


@every_likelihood
def test_mean_variance_entropy_and_median_are_scipys(likelihood, P, scipy):
    raw = torch.randn(16, P)
    base, frozen = likelihood.distribution(raw), scipy(raw)
    assert_close(base.mean, torch.as_tensor(frozen.mean()))
    assert_close(base.variance, torch.as_tensor(frozen.var()))
    assert_close(base.stddev, torch.as_tensor(frozen.std()))
    assert_close(base.median, torch.as_tensor(frozen.median()), rtol=1e-9, atol=1e-9)
    if likelihood.name == "normal_mixture":  # neither library has a closed form
        return
    digits = 1e-9 if type(base).entropy is not Distribution.entropy else 1e-6
    assert_close(base.entropy, torch.as_tensor(frozen.entropy()), rtol=digits, atol=digits)


@every_likelihood
def test_the_mode_is_where_the_density_is_largest(likelihood, P, scipy):
    raw = torch.randn(16, P)
    distribution = likelihood.distribution(raw)
    for step in (-1.0, 1.0):
        shift = step if distribution.discrete else step * 1e-3 * distribution.stddev
        beside = (distribution.mode + shift).clamp(min=max(distribution.lower, -1e9))
        beside = torch.where(beside == distribution.lower, distribution.mode, beside)
        inside = torch.ones(16, dtype=torch.bool)
        if not distribution.discrete:
            inside = (distribution.mode > distribution.lower) & (
                distribution.mode < distribution.upper
            )
        assert (distribution.log_prob(distribution.mode) >= distribution.log_prob(beside))[
            inside
        ].all()


@every_wide
def test_score_has_mean_zero(likelihood, P, scipy):
    """E_y[d log p(y | raw) / d raw] = 0; a sampler that disagrees with the density breaks it."""
    raw = torch.randn(1, P).repeat(50_000, 1).requires_grad_()
    y = draw(likelihood, raw)
    (score,) = torch.autograd.grad(likelihood.loss(raw, y).sum(), raw)  # (S, P)
    assert (score.mean(0).abs() < 5 * score.std(0) / len(score) ** 0.5).all()


@every_likelihood
def test_samples_follow_the_cdf(likelihood, P, scipy):
    """Dvoretzky-Kiefer-Wolfowitz: P(sup |F_n - F| > e) <= 2 exp(-2 n e^2) = 1e-9."""
    raw = torch.randn(1, P)
    y, n = draw(likelihood, raw, 20_000).flatten(), 20_000
    at = y.unique()
    empirical = (
        (y.sort().values.unsqueeze(0) <= at.unsqueeze(1)).double().mean(1)
        if len(at) < 100
        else (torch.arange(1, n + 1) / n)
    )
    distribution = likelihood.distribution(raw)
    gap = (empirical - distribution.cdf(at).sort().values).abs().max()  # a circle is cut elsewhere
    assert gap < math.sqrt(math.log(2e9) / (2 * n)) + 1 / n


@every_likelihood
def test_sampling_takes_a_generator_and_a_shape(likelihood, P, scipy):
    distribution = likelihood.distribution(torch.randn(3, P).detach())
    a, b = (distribution.sample((5,), torch.Generator().manual_seed(7)) for _ in range(2))
    assert a.shape == (5, 3)
    assert torch.equal(a, b)
    assert not torch.equal(a, distribution.sample((5,), torch.Generator().manual_seed(8)))


@every_likelihood
def test_cdf_and_tails_are_scipys(likelihood, P, scipy):
    raw = torch.randn(64, P)
    y, frozen = draw(likelihood, raw), scipy(raw)
    distribution = likelihood.distribution(raw)
    for ours, theirs in (
        (distribution.cdf, frozen.cdf),
        (distribution.log_cdf, frozen.logcdf),
        (distribution.log_survival, frozen.logsf),
    ):
        assert_close(ours(y), torch.as_tensor(theirs(y.numpy())), rtol=1e-9, atol=1e-11)


@every_likelihood
def test_cdf_and_survival_add_up_to_one(likelihood, P, scipy):
    raw = torch.randn(64, P)
    distribution = likelihood.distribution(raw)
    y = distribution.mean + torch.randn(64)
    assert_close(distribution.cdf(y) + distribution.log_survival(y).exp(), torch.ones(64))


@every_continuous
def test_the_density_is_the_derivative_of_the_cdf(likelihood, P, scipy):
    raw = torch.randn(64, P)
    y = draw(likelihood, raw).requires_grad_()
    distribution = likelihood.distribution(raw)
    for tail, sign in ((distribution.cdf, 1), (lambda y: distribution.log_survival(y).exp(), -1)):
        (slope,) = torch.autograd.grad(tail(y).sum(), y)
        assert_close(sign * slope, distribution.log_prob(y).exp().detach(), rtol=1e-8, atol=1e-9)


@every_continuous
def test_icdf_inverts_the_cdf(likelihood, P, scipy):
    raw, q = torch.randn(7, 1, P), torch.tensor([1e-10, 1e-3, 0.2, 0.5, 0.9, 1 - 1e-6])
    distribution = likelihood.distribution(raw)
    y = distribution.icdf(q.expand(7, 6))
    up, down = (distribution.cdf(torch.nextafter(y, torch.tensor(s * math.inf))) for s in (1, -1))
    slack = up - down  # what the neighbours of y differ by, as those of a beta distribution near 1
    assert ((distribution.cdf(y) - q).abs() <= 1e-9 * q + 1e-12 + slack).all()
    assert (slack < 1e-9).double().mean() > 0.9


@pytest.mark.parametrize("name", sorted(DISCRETE))
def test_a_discrete_icdf_is_the_smallest_value_that_reaches_q(name):
    likelihood, P, scipy = ROWS[name]
    raw, q = torch.randn(64, P) * 3, torch.rand(64)
    distribution = likelihood.distribution(raw)
    y = distribution.icdf(q)
    assert (distribution.cdf(y) >= q).all()
    assert (distribution.cdf(y - 1) < q).all()
    assert_close(y, torch.as_tensor(scipy(raw).ppf(q.numpy())), check_dtype=False)


@every_continuous
def test_icdf_is_differentiable_in_level_and_parameters(likelihood, P, scipy):
    raw, q = (
        torch.randn(4, P).requires_grad_(),
        torch.tensor([0.1, 0.4, 0.6, 0.95]).requires_grad_(),
    )
    assert torch.autograd.gradcheck(
        lambda raw, q: likelihood.distribution(raw).icdf(q), (raw, q), eps=1e-5, atol=1e-5
    )


@every_continuous
def test_interval_holds_its_level(likelihood, P, scipy):
    distribution = likelihood.distribution(torch.randn(8, P))
    lower, upper = distribution.interval(0.9)
    assert_close(distribution.cdf(lower), torch.full((8,), 0.05))
    assert_close(distribution.log_interval(lower, upper).exp(), torch.full((8,), 0.9))
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got 1.5"):
        distribution.interval(1.5)


@every_likelihood
def test_log_interval_is_the_mass_between(likelihood, P, scipy):
    raw = torch.randn(32, P)
    base, frozen = likelihood.distribution(raw), scipy(raw)
    lower, upper = draw(likelihood, raw), draw(likelihood, raw) + 1.5
    lower = torch.minimum(lower, upper - 1)
    mass = frozen.cdf(upper.numpy()) - frozen.cdf(lower.numpy())
    mass = np.where(mass < 0, 1 + mass, mass)  # an arc over the cut of the circle
    assert_close(
        base.log_interval(lower, upper).exp(), torch.as_tensor(mass), rtol=1e-7, atol=1e-12
    )


@every_continuous
def test_log_interval_with_infinite_ends_is_a_tail_with_finite_gradients(likelihood, P, scipy):
    raw = torch.randn(3, P).requires_grad_()
    base, inf = likelihood.distribution(raw), torch.tensor(math.inf)
    y = base.median.detach()
    lower = torch.stack([-inf, y[1], -inf])
    upper = torch.stack([y[0], inf, inf])
    value = base.log_interval(lower, upper)
    assert_close(value.detach(), torch.tensor([0.5, 0.5, 1.0]).log(), atol=1e-9, rtol=0)
    (gradient,) = torch.autograd.grad(value.sum(), raw)
    assert gradient.isfinite().all()


def test_a_far_interval_keeps_its_digits():
    distribution = Normal(dispersion=1.0).distribution(torch.zeros(1, 1))
    for a, b in ((20.0, 21.0), (-31.0, -30.0)):
        peak = min(a * a, b * b) / 2  # taken out of the integral, which would underflow
        mass, _ = integrate.quad(lambda x, peak=peak: math.exp(peak - x * x / 2), a, b)
        exact = math.log(mass) - peak - 0.5 * math.log(2 * math.pi)
        found = distribution.log_interval(torch.tensor([a]), torch.tensor([b]))
        assert_close(found, torch.tensor([exact]), rtol=1e-9, atol=0)


@every_wide
def test_gradient_of_the_loss(likelihood, P, scipy):
    raw = torch.randn(8, P).requires_grad_()
    y = draw(likelihood, raw)
    assert torch.autograd.gradcheck(lambda raw: likelihood.loss(raw, y), raw)
    assert torch.autograd.gradgradcheck(lambda raw: likelihood.loss(raw, y), raw)


@every_likelihood
def test_gradient_of_both_tails_in_every_parameter(likelihood, P, scipy):
    raw = torch.randn(6, P).requires_grad_()
    y = draw(likelihood, raw)
    for tail in ("log_cdf", "log_survival"):

        def function(raw, tail=tail):
            value = getattr(likelihood.distribution(raw), tail)(y)
            return value[value.isfinite()]

        assert torch.autograd.gradcheck(function, raw, eps=1e-5, atol=1e-6)


def test_gradient_of_the_tails_in_a_learned_nu():
    likelihood = StudentT(dispersion=1.0)
    y, raw = torch.linspace(-8, 8, 9), torch.zeros(9, 1)

    def function(r, tail):
        distribution = torch.func.functional_call(
            _Distribution(likelihood), {"likelihood.freedom.constant": r}, (raw, y, tail)
        )
        return distribution

    r = torch.tensor(-0.5, requires_grad=True)
    for tail in ("log_cdf", "log_survival", "crps"):
        assert torch.autograd.gradcheck(lambda r, tail=tail: function(r, tail), r, atol=1e-6)


class _Distribution(torch.nn.Module):
    def __init__(self, likelihood):
        super().__init__()
        self.likelihood = likelihood

    def forward(self, raw, y, method):
        return getattr(self.likelihood.distribution(raw), method)(y)


@every_on_the_line
def test_crps_is_the_integral_of_the_squared_gap(likelihood, P, scipy):
    raw = torch.randn(3, P)
    y, base = draw(likelihood, raw), likelihood.distribution(raw)
    for i, one in enumerate(_each(scipy(raw))):
        found = base.crps(y)[i].item()
        if base.discrete:
            k = np.arange(0, 200)
            exact = ((one.cdf(k) - (k >= y[i].item())) ** 2).sum()
        else:
            mid, ends = y[i].item(), one.ppf([1e-13, 1 - 1e-13])
            cuts = np.sort([mid, *ends, *one.ppf([1e-6, 0.01, 0.5, 0.99, 1 - 1e-6])])
            exact = sum(_squared_gap(one, mid, a, b) for a, b in pairwise(cuts))
        assert found == pytest.approx(exact, rel=1e-7, abs=1e-10)


def _squared_gap(frozen, y, a, b):
    return integrate.quad(lambda x: (frozen.cdf(x) if x < y else frozen.sf(x)) ** 2, a, b)[0]


def _each(frozen):
    arguments = [*frozen.args, *frozen.kwds.values()]
    rows = np.broadcast_arrays(*arguments)
    for i in range(len(rows[0])):
        args = [r[i] for r in rows[: len(frozen.args)]]
        kwds = dict(zip(frozen.kwds, [r[i] for r in rows[len(frozen.args) :]], strict=True))
        yield frozen.dist(*args, **kwds)


@every_on_the_line
def test_crps_of_the_family_default_is_the_closed_form(likelihood, P, scipy):
    from ansatz.likelihoods import Distribution

    raw = torch.randn(4, P).requires_grad_()
    y = draw(likelihood, raw)
    distribution = likelihood.distribution(raw)
    closed, default = distribution.crps(y), Distribution.crps(distribution, y)
    assert_close(default, closed, rtol=1e-6, atol=1e-8)
    gradients = [torch.autograd.grad(v.sum(), raw, retain_graph=True)[0] for v in (closed, default)]
    assert_close(*gradients, rtol=1e-4, atol=1e-6)


@every_likelihood
def test_crps_is_that_of_scoringrules(likelihood, P, scipy):
    scoringrules = pytest.importorskip("scoringrules")
    raw = torch.randn(8, P)
    y, base = draw(likelihood, raw), likelihood.distribution(raw)
    match likelihood.name:
        case "normal":
            theirs = scoringrules.crps_normal(*numpy(y, base.mean, base.sd))
        case "laplace":
            theirs = scoringrules.crps_laplace(*numpy(y, base.location, base.scale))
        case "student_t":
            theirs = scoringrules.crps_t(*numpy(y, base.nu, base.location, base.scale))
        case "gamma":
            theirs = scoringrules.crps_gamma(*numpy(y, base.shape, base.shape / base.mean))
        case "exponential":
            theirs = scoringrules.crps_exponential(*numpy(y, 1 / base.mean))
        case "log_normal":
            theirs = scoringrules.crps_lognormal(*numpy(y, base.log_median, base.sigma))
        case "generalized_pareto" if likelihood.excess.kind == "known":  # theirs cancels at 0
            zero = torch.zeros_like(y)
            theirs = scoringrules.crps_gpd(*numpy(y, base.shape, zero, base.log_scale.exp()))
        case "normal_mixture":
            theirs = scoringrules.crps_mixnorm(*numpy(y, base.means, base.sds, base.weights))
        case "poisson":
            theirs = scoringrules.crps_poisson(*numpy(y, base.mean))
        case "beta":
            theirs = scoringrules.crps_beta(*numpy(y, *base.shapes))
        case "negative_binomial":
            r = 1 / base.dispersion
            theirs = scoringrules.crps_negbinom(*numpy(y, r, r / (r + base.mean)))
        case "bernoulli":
            theirs = scoringrules.brier_score(*numpy(y, base.probs))
        case _:
            pytest.skip("scoringrules does not have it")
    assert_close(base.crps(y), torch.as_tensor(theirs), rtol=1e-8, atol=1e-10, check_dtype=False)


EXTREMES = [0.0, 50.0, -50.0, 100.0, -1e4, 1e4]
EDGES = {  # the smallest, ordinary and largest outcomes of a support
    "normal": [-1e6, 0.0, 1e6],
    "laplace": [-1e6, 0.0, 1e6],
    "student_t": [-1e6, 0.0, 1e6],
    "normal_mixture": [-1e6, 0.0, 1e6],
    "von_mises": [-6.28, 0.0, 3.14],
    "gamma": [1e-38, 1.0, 1e9],
    "exponential": [0.0, 1.0, 1e9],
    "log_normal": [1e-38, 1.0, 1e9],
    "weibull": [1e-38, 1.0, 1e9],
    "inverse_gaussian": [1e-38, 1.0, 1e9],
    "generalized_pareto": [0.0, 1e-38, 1.0, 1e9],
    "tweedie": [0.0, 1e-38, 1.0, 1e9],
    "beta": [1e-38, 0.5, 1 - 2**-24],
    "binomial": [0.0, 3.0, 10.0],
    "beta_binomial": [0.0, 3.0, 10.0],
    "poisson": [0.0, 1.0, 1e9],
    "negative_binomial": [0.0, 1.0, 1e9],
    "bernoulli": [0.0, 1.0],
    "zero_inflated_poisson": [0.0, 1.0, 1e9],
    "zero_inflated_negative_binomial": [0.0, 1.0, 1e9],
    "hurdle_poisson": [0.0, 1.0, 1e9],
    "hurdle_negative_binomial": [0.0, 1.0, 1e9],
    "categorical": [0, 3],
}


@every_wide
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_raw_numbers_and_outcomes_give_finite_losses_and_gradients(
    likelihood, P, scipy, dtype
):
    likelihood = copy.deepcopy(likelihood).to(dtype)
    grid = torch.cartesian_prod(*[torch.tensor(EXTREMES)] * min(P, 2))
    grid = grid.reshape(-1, min(P, 2))
    raw = torch.cat([grid, torch.zeros(len(grid), P - grid.shape[1])], 1).to(dtype)
    for value in EDGES[likelihood.name]:
        y = torch.full((len(raw),), value, dtype=dtype if isinstance(value, float) else torch.long)
        for loss in (likelihood.loss, likelihood.training_loss):
            leaf = raw.clone().requires_grad_()
            terms = loss(leaf, y)
            gradients = torch.autograd.grad(terms.sum(), [leaf, *likelihood.parameters()])
            assert terms.dtype == dtype
            assert terms.isfinite().all()
            assert all(g.isfinite().all() for g in gradients)


@every_likelihood
def test_a_wildly_wrong_first_raw_number_is_pulled_back(likelihood, P, scipy):
    raw = torch.zeros(2, P)
    raw[:, 0] = torch.tensor([200.0, -200.0])
    if likelihood.name == "normal_mixture":  # all components: one alone may be where it likes
        raw[:, 1 : likelihood.components] = raw[:, :1]
    raw.requires_grad_()
    # the outcome that contradicts the raw number where the likelihood has only two
    y = torch.tensor([0.0, 1.0]) if likelihood.name == "bernoulli" else torch.ones(2)
    if likelihood.name.startswith("hurdle"):  # a 1 does not contradict a rate of nothing
        y = torch.full((2,), 2.0)
    if likelihood.name == "beta":  # a 1 is no outcome of it
        y = torch.full((2,), 0.5)
    (gradient,) = torch.autograd.grad(likelihood.loss(raw, y).sum(), raw)
    if (
        likelihood.name == "inverse_gaussian"
    ):  # the limit of an infinite mean is a likelihood: Levy's
        assert gradient[0, 0] >= 0
    else:
        assert gradient[0, 0] > 1e-6
    assert gradient[1, 0] < -1e-6


@every_likelihood
def test_float32_agrees_with_float64(likelihood, P, scipy):
    raw = torch.randn(64, P)
    y = draw(likelihood, raw).float().double()
    raw = raw.float().double()
    half = copy.deepcopy(likelihood).float()
    one, other = half.distribution(raw.float()), likelihood.distribution(raw)
    assert_close(
        half.loss(raw.float(), y.float()).double(), likelihood.loss(raw, y), rtol=1e-4, atol=1e-4
    )
    for method in ("cdf", "log_cdf", "log_survival", "crps"):
        found, exact = getattr(one, method)(y.float()), getattr(other, method)(y)
        assert found.dtype == torch.float32
        assert_close(found.double(), exact, rtol=1e-3, atol=1e-4)
    assert one.icdf(torch.full((64,), 0.3).float()).dtype == torch.float32
    assert one.sample().dtype == torch.float32


@every_wide
def test_runs_on_the_meta_device(likelihood, P, scipy):
    meta = copy.deepcopy(likelihood).to("meta")
    raw = torch.randn(5, P, device="meta", requires_grad=True)
    y = torch.empty(5, device="meta")
    for loss in (meta.loss, meta.training_loss):
        assert loss(raw, y).shape == (5,)
        loss(raw, y).sum().backward()
    distribution = meta.distribution(raw)
    if likelihood.name != "categorical":
        assert (
            distribution.mean.shape
            == distribution.cdf(y).shape
            == distribution.log_survival(y).shape
            == (5,)
        )
    assert meta.point(raw).shape == (5,)


TARGETS = {  # outcomes to fit a constant to
    "normal": lambda n: torch.randn(n) * 3 + 5,
    "laplace": lambda n: torch.randn(n) * 3 + 5,
    "student_t": lambda n: torch.as_tensor(stats.t(3, 5, 2).rvs(n, random_state=0)),
    "normal_mixture": lambda n: torch.randn(n) + torch.randint(-1, 2, (n,)) * 8,
    "von_mises": lambda n: torch.randn(n),
    "gamma": lambda n: torch.rand(n) ** 2 * 30 + 0.01,
    "exponential": lambda n: torch.rand(n) ** 2 * 30 + 0.01,
    "log_normal": lambda n: torch.rand(n) ** 2 * 30 + 0.01,
    "weibull": lambda n: torch.rand(n) ** 2 * 30 + 0.01,
    "inverse_gaussian": lambda n: torch.rand(n) ** 2 * 30 + 0.01,
    "generalized_pareto": lambda n: torch.rand(n) ** -0.3 - 1,
    "tweedie": lambda n: (torch.rand(n) * 30 - 10).clamp(min=0) + (torch.arange(n) < 1),
    "beta": lambda n: torch.rand(n) ** 2 * 0.9 + 0.02,
    "binomial": lambda n: torch.binomial(torch.full((n,), 10.0), torch.full((n,), 0.4)),
    "beta_binomial": lambda n: torch.binomial(torch.full((n,), 10.0), torch.rand(n)),
    "zero_one_inflated_beta": lambda n: (torch.rand(n) * 1.6 - 0.3).clamp(0, 1),
    "poisson": lambda n: torch.poisson(torch.full((n,), 4.0)),
    "negative_binomial": lambda n: torch.poisson(torch.rand(n) ** 2 * 30) + 1,
    "bernoulli": lambda n: (torch.rand(n) < 0.3).double(),
    "zero_inflated_poisson": lambda n: torch.poisson(torch.full((n,), 4.0)) * (torch.rand(n) < 0.7),
    "zero_inflated_negative_binomial": lambda n: (
        torch.poisson(6 * torch._standard_gamma(torch.full((n,), 2.5)) / 2.5)
        * (torch.rand(n) < 0.7)
    ),
    "hurdle_negative_binomial": lambda n: (
        torch.poisson(torch._standard_gamma(torch.full((n,), 2.0))) * (torch.rand(n) < 0.7)
    ),
    "hurdle_poisson": lambda n: torch.poisson(torch.full((n,), 2.0)) * (torch.rand(n) < 0.7),
    "categorical": lambda n: torch.randint(4, (n,)),
    "ordinal": lambda n: torch.randint(4, (n,)),
    "mse": lambda n: torch.randn(n) * 3 + 5,
    "mae": lambda n: torch.randn(n) * 3 + 5,
    "huber": lambda n: torch.randn(n) ** 3 * 3 + 5,
    "quantiles": lambda n: torch.randn(n) * 3 + 5,
    "tukey": lambda n: torch.randn(n) ** 3 * 3 + 5,
    **dict.fromkeys(ROBUST, lambda n: torch.randn(n) ** 3 * 3 + 5),
    "barron": lambda n: torch.as_tensor(stats.t(3, 5, 2).rvs(n, random_state=0)),
    "cross_entropy": lambda n: torch.randint(4, (n,)),
    "focal": lambda n: torch.randint(4, (n,)),
}
CLASSES = ("categorical", "cross_entropy", "focal", "ordinal")
VECTORS = {
    "energy_forces",  # an energy and the forces on all atoms
    "autoregressive",  # a whole sequence
    "span",  # two steps of a sequence
    "sum",
    "binomial",
    "beta_binomial",
    "censored",
    "cox",
    "dice",
    "dirichlet",
    "discrete_hazard",
    "kl",
    "multivariate_normal",
    "plackett_luce",
    "truncated",  # a wrapper, like censored
}  # outcomes of many numbers: their promises are in their own files
FITTED = {**{name: row.likelihood for name, row in WIDE.items()}}
FITTED |= {
    "student_t, known scale": StudentT(dispersion=2.0),
    "student_t, cauchy": StudentT(nu=1.0, dispersion="constant"),
    "beta, constant": Beta(dispersion="constant"),
    "beta, squeezed": Beta(squeeze=True),
    "beta_binomial, constant": TenTrialsBetaBinomial(dispersion="constant"),
    "zero_one_inflated_beta": create("zero_one_inflated_beta"),
    "zero_one_inflated_beta, constant": create("zero_one_inflated_beta", dispersion="constant"),
    "gamma, constant": Gamma(dispersion="constant"),
    "weibull, constant": Weibull(dispersion="constant"),
    "inverse_gaussian, constant": InverseGaussian(dispersion="constant"),
    "generalized_pareto, predicted": GeneralizedPareto(shape="predicted"),
    "tweedie, learned": Tweedie(power="learned"),
    "tweedie, constant": Tweedie(power=1.3, dispersion="constant"),
    "zero_inflated_negative_binomial, constant": create(
        "zero_inflated_negative_binomial", dispersion="constant"
    ),
    "zero_inflated_negative_binomial, known": create(
        "zero_inflated_negative_binomial", dispersion=0.3
    ),
    "categorical, reference": Categorical(reference=True),
    "ordinal": create("ordinal"),
    "mse": create("mse"),
    "mae": create("mae"),
    "huber": create("huber"),
    "quantiles": create("quantiles"),
    "tukey": create("tukey"),
    **{name: create(name) for name in ROBUST},
    "barron": create("barron"),
    "barron, predicted": create("barron", dispersion="predicted"),
    "barron, charbonnier": create("barron", alpha=1.0, dispersion="mad"),
    "barron, geman-mcclure": create("barron", alpha=-2.0, dispersion="mad"),
    "cross_entropy": create(
        "cross_entropy", class_weight=[1.0, 2.0, 3.0, 0.5], label_smoothing=0.1
    ),
    "cross_entropy, balanced": create("cross_entropy", class_weight="balanced"),
    "focal": create("focal", alpha=[1.0, 2.0, 3.0, 0.5]),
}
every_fit = pytest.mark.parametrize("likelihood", FITTED.values(), ids=FITTED)
_first = {
    likelihood.name: name for name, likelihood in reversed(FITTED.items())
}  # one of each likelihood
one_of_each = pytest.mark.parametrize(
    "likelihood",
    [
        pytest.param(likelihood, marks=[pytest.mark.slow] * (name not in _first.values()), id=name)
        for name, likelihood in FITTED.items()
    ],
)


def fitted(likelihood, y, weight):
    likelihood = copy.deepcopy(likelihood)
    if likelihood.name in CLASSES:
        likelihood.outputs(TargetSpec(classes=4))
    likelihood.check(y)
    likelihood.observe(y, weight)
    return likelihood, *likelihood.start(y, weight)


def risk_gradient(likelihood, shift, y, weight):
    """Of the weighted mean loss of the constant model, in units of each raw number's scale."""
    shift = shift.clone().requires_grad_()
    weight = weight.reshape(-1, *(1,) * (y.ndim - 1))
    terms = likelihood.loss(shift.expand(*y.shape, shift.shape[-1]), y)
    total = (weight * terms).sum() / weight.sum()
    return torch.autograd.grad(total, [shift, *likelihood.parameters()])


@every_fit
def test_start_is_the_maximum_likelihood_constant(likelihood):
    y = TARGETS[likelihood.name](101)
    weight = torch.randint(1, 4, (101,)).double()
    if likelihood.name in ("laplace", "mae"):  # a kink at the median: with ties no gradient is 0
        weight = torch.ones(101)
    if likelihood.name == "quantiles":  # 5 % of 100 rows: between two outcomes the gradient is 0
        y, weight = y[:100], torch.ones(100)
    likelihood, shift, scale = fitted(likelihood, y, weight)
    assert (scale > 0).all()
    for gradient in risk_gradient(likelihood, shift, y, weight):
        assert_close(gradient, torch.zeros_like(gradient), atol=1e-8, rtol=0)


@every_fit
def test_weights_are_repetitions(likelihood):
    y, weight = TARGETS[likelihood.name](40), torch.randint(0, 4, (40,)).double()
    y[0] = y[weight > 0][0]
    weighted, *start = fitted(likelihood, y, weight)
    again = y.repeat_interleave(weight.long())
    repeated, *start_again = fitted(likelihood, again, torch.ones(len(again)))
    assert_close(start, start_again, rtol=1e-8, atol=1e-8)
    assert_close(dict(weighted.state_dict()), dict(repeated.state_dict()), rtol=1e-8, atol=1e-8)


@one_of_each
def test_several_targets_are_several_likelihoods(likelihood):
    y = torch.stack([TARGETS[likelihood.name](50), TARGETS[likelihood.name](50)], 1)
    weight = torch.randint(1, 4, (50,)).double()
    both, shift, scale = fitted(likelihood, y, weight)
    assert shift.shape == scale.shape == (2, shift.shape[-1])
    raw = shift.expand(50, *shift.shape) + 0.1 * torch.randn(50, *shift.shape)
    loss, training = both.loss(raw, y), both.training_loss(raw, y)
    point = both.point(raw)
    for k in range(2):
        one, one_shift, one_scale = fitted(likelihood, y[:, k], weight)
        assert_close((shift[k], scale[k]), (one_shift, one_scale))
        assert_close(loss[:, k], one.loss(raw[:, k], y[:, k]))
        assert_close(training[:, k], one.training_loss(raw[:, k], y[:, k]))
        assert_close(point[:, k], one.point(raw[:, k]))


@one_of_each
def test_state_dict_round_trip_with_several_targets(likelihood):
    y = torch.stack([TARGETS[likelihood.name](50), TARGETS[likelihood.name](50)], 1)
    both, shift, _ = fitted(likelihood, y, torch.ones(50))
    fresh = copy.deepcopy(likelihood).double()
    fresh.load_state_dict(both.state_dict())
    raw = shift.expand(50, *shift.shape)
    assert torch.equal(fresh.loss(raw, y), both.loss(raw, y))
    assert torch.equal(copy.deepcopy(both).loss(raw, y), both.loss(raw, y))


@every_fit
@pytest.mark.parametrize("rows", [1, pytest.param(2, marks=pytest.mark.slow), 20])
def test_equal_outcomes_and_a_single_row_do_not_break_it(likelihood, rows):
    value = TARGETS[likelihood.name](20)[0]
    y = value.expand(rows).clone()
    likelihood, shift, scale = fitted(likelihood, y, torch.ones(rows))
    assert shift.isfinite().all()
    assert (scale > 0).all() and scale.isfinite().all()
    raw = shift.expand(rows, -1).clone().requires_grad_()
    terms = likelihood.training_loss(raw, y)
    (gradient,) = torch.autograd.grad(terms.sum(), raw)
    assert terms.isfinite().all()
    assert gradient.isfinite().all()
    expected = value if likelihood.name != "bernoulli" else value * 0.9 + 0.05
    # half a row is added where no finite number is best, also to a single row
    half_a_row = {"bernoulli": 0.21, "zero_inflated_poisson": 0.26, "hurdle_poisson": 0.38}
    half_a_row |= {"zero_inflated_negative_binomial": 0.26, "hurdle_negative_binomial": 0.38}
    half_a_row |= {"beta_binomial": 0.46, "zero_one_inflated_beta": 0.51}
    # a beta distribution that is known to be wide has its likeliest mean beside the outcomes
    off_centre = likelihood.name == "beta" and likelihood.dispersion.kind == "known"
    # and so has a Weibull distribution, and exceedances, which are never concentrated
    off_centre |= likelihood.name == "weibull" and likelihood.dispersion.kind == "known"
    off_centre |= likelihood.name == "generalized_pareto"
    if likelihood.name not in CLASSES and not off_centre:
        assert_close(
            likelihood.point(raw)[0].detach(),
            expected,
            atol=half_a_row.get(likelihood.name, 1e-6),
            rtol=0.26 if likelihood.name.startswith("hurdle") else 1e-6,
        )


@every_fit
def test_a_column_against_a_vector_is_refused(likelihood):
    y = TARGETS[likelihood.name](5)
    raw = torch.zeros(5, 3 if likelihood.name in CLASSES else 2)
    with pytest.raises(ValueError, match=r"raw \(5, \d\) goes with y \(5,\), got y \(5, 1\)"):
        likelihood.loss(raw, y.unsqueeze(1))


@pytest.mark.parametrize("name", sorted(set(names()) - set(CLASSES) - VECTORS))
def test_an_unobserved_row_may_be_nan(name):
    likelihood = create(name)
    y, weight = TARGETS[name](30), torch.ones(30)
    weight[3] = 0
    _, *start = fitted(likelihood, y, weight)
    y[3] = torch.nan
    base = copy.deepcopy(likelihood)
    base.observe(y, weight)
    assert_close(tuple(base.start(y, weight)), tuple(start))


REFUSED = {
    "normal": (torch.nan, r"finite numbers, got nan at y\[1\]"),
    "laplace": (torch.inf, r"finite numbers, got inf at y\[1\]"),
    "student_t": (-torch.inf, r"finite numbers, got -inf at y\[1\]"),
    "normal_mixture": (torch.nan, r"finite numbers, got nan at y\[1\]"),
    "von_mises": (90.0, r"radians between -2 pi and 2 pi, got 90.0 at y\[1\].*np.deg2rad"),
    "mse": (torch.nan, r"finite numbers, got nan at y\[1\]"),
    "mae": (torch.nan, r"finite numbers, got nan at y\[1\]"),
    "quantiles": (torch.inf, r"finite numbers, got inf at y\[1\]"),
    "huber": (torch.nan, r"finite numbers, got nan at y\[1\]"),
    "tukey": (torch.nan, r"finite numbers, got nan at y\[1\]"),
    **dict.fromkeys(ROBUST, (torch.nan, r"finite numbers, got nan at y\[1\]")),
    "barron": (torch.inf, r"finite numbers, got inf at y\[1\]"),
    "gamma": (
        0.0,
        r"> 0, got 0.0 at y\[1\].*Likelihoods that fit all of y: bernoulli, .*poisson, .*normal",
    ),
    "beta": (0.0, r"strictly between 0 and 1, got 0.0 at y\[1\].*zero_one_inflated_beta"),
    "zero_one_inflated_beta": (1.5, r"from 0 to 1, got 1.5 at y\[1\].*normal"),
    "poisson": (1.5, r">= 0, got 1.5 at y\[1\].*Likelihoods that fit all of y: gamma, .*normal"),
    "exponential": (-1.0, r">= 0, got -1.0 at y\[1\].*Likelihoods that fit all of y: normal"),
    "log_normal": (0.0, r"> 0, got 0.0 at y\[1\].*Likelihoods that fit all of y: bernoulli"),
    "weibull": (0.0, r"> 0, got 0.0 at y\[1\].*Likelihoods that fit all of y: bernoulli"),
    "inverse_gaussian": (0.0, r"> 0, got 0.0 at y\[1\].*Likelihoods that fit all of y: bernoulli"),
    "generalized_pareto": (
        -0.5,
        r">= 0, got -0.5 at y\[1\].*Likelihoods that fit all of y: normal",
    ),
    "tweedie": (-0.5, r">= 0, got -0.5 at y\[1\].*Likelihoods that fit all of y: normal"),
    "negative_binomial": (-2.0, r">= 0, got -2.0 at y\[1\].*Likelihoods that fit all of y: normal"),
    "bernoulli": (-1.0, r"0 or 1, got -1.0 at y\[1\].*Likelihoods that fit all of y: normal"),
    "zero_inflated_poisson": (1.5, r"whole numbers >= 0, got 1.5 at y\[1\].*gamma, .*normal"),
    "zero_inflated_negative_binomial": (1.5, r"whole numbers >= 0, got 1.5 at y\[1\].*gamma"),
    "hurdle_negative_binomial": (-1.0, r"whole numbers >= 0, got -1.0 at y\[1\].*normal"),
    "hurdle_poisson": (-1.0, r"whole numbers >= 0, got -1.0 at y\[1\].*normal"),
    "ordinal": (0.5, r"whole numbers >= 0, got 0.5 at y\[1\].*gamma"),
    "categorical": (0.5, r"whole numbers >= 0, got 0.5 at y\[1\].*gamma"),
    "focal": (-1.0, r"whole numbers >= 0, got -1.0 at y\[1\].*normal"),
    "cross_entropy": (-1.0, r"whole numbers >= 0, got -1.0 at y\[1\].*normal"),
}


@pytest.mark.parametrize("name", sorted(set(names()) - VECTORS))
def test_check_names_the_row_the_value_and_the_likelihoods_that_fit(name):
    value, message = REFUSED[name]
    likelihood, fine = create(name), 0.5 if name == "beta" else 1.0
    with pytest.raises(DataError, match=message):
        likelihood.check(torch.tensor([fine, value]))
    likelihood.check(torch.tensor([fine, fine]))


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_code_beyond_the_last_is_refused(name):
    likelihood = create(name)
    likelihood.outputs(TargetSpec(classes=3))
    with pytest.raises(DataError, match=r"below the number of classes, 3, got 3 at y\[1\]"):
        likelihood.check(torch.tensor([0, 3]))
    with pytest.raises(ValueError, match="needs the number of classes"):
        likelihood.outputs(TargetSpec())


def test_the_registry_holds_all_of_them():
    assert set(names()) == set(TARGETS) | VECTORS
    assert all(create(name).name == name for name in names())


@pytest.mark.parametrize(
    "name", ["mse", "mae", "huber", "quantiles", "tukey", "cross_entropy", "focal"]
)
def test_a_loss_has_no_distribution(name):
    assert not create(name).has_distribution
    with pytest.raises(TypeError, match="is a loss, not a likelihood"):
        create(name).distribution(torch.zeros(1, 2))


@pytest.mark.parametrize("name", ["laplace", "student_t", "categorical", "mse", "weibull"])
def test_what_is_no_exponential_family_has_no_deviance(name):
    with pytest.raises(TypeError, match=f"{name} is not an exponential family"):
        create(name).unit_deviance(torch.zeros(1, 2), torch.zeros(1))


@pytest.mark.parametrize(
    "name",
    ["normal", "poisson", "gamma", "bernoulli", "exponential", "inverse_gaussian", "tweedie"],
)
def test_deviance_and_pearson_residuals_are_those_of_statsmodels(name):
    families = pytest.importorskip("statsmodels.api").families
    likelihood = WIDE[name].likelihood
    log = families.links.Log()
    family = {
        "normal": families.Gaussian,
        "poisson": families.Poisson,
        "gamma": lambda: families.Gamma(log),
        "exponential": lambda: families.Gamma(log),
        "inverse_gaussian": lambda: families.InverseGaussian(log),
        "tweedie": lambda: families.Tweedie(log, var_power=1.5),
        "bernoulli": families.Binomial,
    }[name]()
    assert likelihood.link_name == {"normal": "identity", "bernoulli": "logit"}.get(name, "log")
    raw = torch.randn(20, likelihood.outputs(TargetSpec()))
    y = draw(likelihood, raw)
    mu = family.link.inverse(raw[:, 0].numpy())
    residual = torch.as_tensor(family.resid_dev(y.numpy(), mu))
    assert_close(likelihood.unit_deviance(raw, y), residual**2)
    pearson = (y.numpy() - mu) / np.sqrt(family.variance(mu))
    assert_close(likelihood.pearson(raw, y), torch.as_tensor(pearson))
    assert_close(
        likelihood.variance_function(torch.as_tensor(mu)), torch.as_tensor(family.variance(mu))
    )
