import math

import numpy as np
import pytest
import torch
from scipy import integrate, special, stats
from torch.testing import assert_close

from ansatz.likelihoods import Tweedie, TweedieDistribution
from ansatz.likelihoods.special.tweedie import log_series
from ansatz.likelihoods.tweedie import fit_tweedie

CASES = [  # mean, phi, p
    (1.0, 1.0, 1.5),
    (10.0, 0.1, 1.2),
    (3.0, 4.0, 1.8),
    (100.0, 0.05, 1.5),
    (2.0, 0.02, 1.05),
    (5.0, 0.5, 1.95),
    (0.1, 1.0, 1.5),
]


class Compound:
    """A Poisson number of gamma amounts, term by term with scipy."""

    def __init__(self, mean, phi, p):
        self.rate = mean ** (2 - p) / (phi * (2 - p))
        self.alpha, self.tau = (2 - p) / (p - 1), phi * (p - 1) * mean ** (p - 1)
        self.j = np.arange(1, int(3 * self.rate + 30 * math.sqrt(self.rate) + 200))
        self.weight = stats.poisson(self.rate).logpmf(self.j)
        self.gamma = stats.gamma(self.j * self.alpha, scale=self.tau)

    def logpdf(self, y):
        return special.logsumexp(self.weight + self.gamma.logpdf(y)) if y > 0 else -self.rate

    def logcdf(self, y):
        return np.logaddexp(-self.rate, special.logsumexp(self.weight + self.gamma.logcdf(y)))

    def logsf(self, y):
        return special.logsumexp(self.weight + self.gamma.logsf(y))


def distribution_of(case, size=1):
    mean, phi, p = (torch.full((size,), v) for v in case)
    return TweedieDistribution(mean.log(), phi, p)


def outcomes(case):
    mean, phi, p = case
    sd = math.sqrt(phi * mean**p)
    return torch.tensor([1e-3 * mean, max(mean - 2 * sd, 0.1 * mean), mean, mean + 3 * sd])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_density_and_tails_are_those_of_the_compound_sum(case):
    exact, y = Compound(*case), outcomes(case)
    likelihood = distribution_of(case, 4)
    for ours, theirs in ((likelihood.log_prob, exact.logpdf), (likelihood.log_cdf, exact.logcdf)):
        expected = torch.tensor([float(theirs(t)) for t in y.tolist()])
        assert_close(ours(y), expected, rtol=1e-9, atol=1e-11)
    upper = torch.tensor([float(exact.logsf(t)) for t in y.tolist()])
    assert_close(likelihood.log_survival(y), upper, rtol=1e-9, atol=1e-11)
    zero = torch.zeros(4)
    assert_close(likelihood.log_prob(zero), torch.full((4,), -exact.rate))
    assert_close(likelihood.cdf(zero), torch.full((4,), math.exp(-exact.rate)))


@pytest.mark.parametrize("case", [case for case in CASES if case[2] > 1.1], ids=str)  # smooth ones
def test_the_density_and_the_atom_add_up_to_one(case):
    ends = distribution_of(case, 2).icdf(torch.tensor([1e-9, 1 - 1e-11])).clamp(min=1e-30 * case[0])
    x = torch.linspace(*ends.log().tolist(), 4001)
    density = (distribution_of(case, 4001).log_prob(x.exp()) + x).exp()  # of log y
    mass = distribution_of(case).cdf(ends[:1]).item() + integrate.simpson(
        density.numpy(), x=x.numpy()
    )
    assert mass == pytest.approx(1, abs=1e-7)


def test_samples_have_the_mean_the_variance_and_the_zeros():
    case, n = (2.0, 1.5, 1.6), 200_000
    likelihood = distribution_of(case)
    y = likelihood.sample((n,), torch.Generator().manual_seed(0)).flatten()
    sd = likelihood.stddev.item()
    assert abs(y.mean().item() - 2) < 5 * sd / math.sqrt(n)
    assert y.var().item() == pytest.approx(sd**2, rel=0.03)
    zeros = likelihood.cdf(torch.zeros(1)).item()
    assert abs((y == 0).double().mean().item() - zeros) < 5 * math.sqrt(zeros / n)


def test_samples_follow_the_cdf():
    likelihood, n = distribution_of((2.0, 1.5, 1.6)), 5_000
    y = likelihood.sample((n,), torch.Generator().manual_seed(0)).flatten().sort().values
    above = y > 0
    empirical = (torch.arange(1, n + 1) / n)[above]
    gap = (empirical - distribution_of((2.0, 1.5, 1.6), int(above.sum())).cdf(y[above])).abs().max()
    assert gap < math.sqrt(math.log(2e9) / (2 * n)) + 1 / n


@pytest.mark.parametrize("case", CASES, ids=str)
def test_quantiles_invert_the_cdf_above_the_atom_and_are_zero_below(case):
    likelihood = distribution_of(case, 6)
    q = torch.tensor([1e-8, 1e-3, 0.2, 0.5, 0.9, 1 - 1e-8])
    y = likelihood.icdf(q)
    atom = likelihood.cdf(torch.zeros(6))
    assert_close(likelihood.cdf(y), torch.maximum(q, atom), rtol=1e-9, atol=1e-13)
    assert (y[q <= atom] == 0).all()
    ends = likelihood.icdf(torch.tensor([0.0, 1.0, -0.1, 1.1, 0.5, 0.5]))
    assert ends[0] == 0 and ends[1].isinf() and ends[2:4].isnan().all()


def test_tails_and_quantiles_are_differentiable_in_everything():
    log_mean, phi = torch.tensor([0.3, -0.5]), torch.tensor([0.7, 1.2])
    p, y = torch.tensor([1.4, 1.7]), torch.tensor([0.8, 2.0])
    inputs = [v.requires_grad_() for v in (log_mean, phi, p, y)]
    for tail in ("log_cdf", "log_survival"):
        assert torch.autograd.gradcheck(
            lambda m, s, p, y, tail=tail: getattr(TweedieDistribution(m, s, p), tail)(y),
            inputs,
            atol=1e-6,
        )
    q = torch.tensor([0.01, 0.8]).requires_grad_()  # the first one in the atom
    assert torch.autograd.gradcheck(
        lambda m, s, p, q: TweedieDistribution(m, s, p).icdf(q), [*inputs[:3], q], atol=1e-5
    )


def test_the_density_has_two_derivatives_in_everything():
    log_mean, phi = torch.tensor([0.3, -0.5, 2.0]), torch.tensor([0.7, 1.2, 0.05])
    p, y = torch.tensor([1.4, 1.7, 1.2]), torch.tensor([0.8, 0.0, 9.0])
    inputs = [v.requires_grad_() for v in (log_mean, phi, p)]
    function = lambda m, s, p: TweedieDistribution(m, s, p).log_prob(y)  # noqa: E731
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


@pytest.mark.parametrize("alpha", [0.0102, 0.3, 1.0, 9.0, 99.0])
def test_the_series_is_its_terms_whether_few_or_many(alpha):
    for log_rate in (-20.0, 0.0, 2.0, 3.7, 5.0, 8.0):
        rate = math.exp(log_rate)
        sd = math.sqrt(rate / (1 + alpha))
        j = np.arange(max(1, int(rate - 12 * sd)), int(rate + 12 * sd + 40))
        x = alpha * rate
        terms = stats.poisson(rate).logpmf(j) + j * alpha * math.log(x) - x
        exact = special.logsumexp(terms - special.gammaln(j * alpha))
        found = log_series(torch.tensor(log_rate), torch.tensor(alpha)).item()
        assert found == pytest.approx(exact, rel=1e-9, abs=1e-8)


def test_the_series_of_a_large_rate_is_the_normal_limit():
    """y f(y; y) -> sqrt((2 - p) rate / 2 pi); the first correction is of order 1 / rate."""
    alpha = torch.tensor([0.5, 2.0])
    for log_rate in (17.0, 18.5, 25.0):
        limit = 0.5 * (alpha / (1 + alpha)).log() + 0.5 * log_rate - 0.5 * math.log(2 * math.pi)
        assert_close(log_series(torch.tensor(log_rate), alpha), limit, rtol=0, atol=2e-7)


def test_the_crps_is_the_integral_of_the_squared_gap():
    case, y = (1.0, 1.0, 1.5), 0.7
    exact = Compound(*case)
    below = integrate.quad(lambda x: np.exp(2 * exact.logcdf(x)), 0, y)[0]
    above = integrate.quad(lambda x: np.exp(2 * exact.logsf(x)), y, 60, limit=200)[0]
    assert distribution_of(case).crps(torch.tensor([y])).item() == pytest.approx(
        below + above, rel=1e-6
    )


def test_a_learned_power_is_found_again():
    y = distribution_of((2.7, 1.7, 1.4), 4000).sample((), torch.Generator().manual_seed(0))
    phi, p = fit_tweedie(y, torch.ones(4000), None, None, 1e-6)
    assert p == pytest.approx(1.4, abs=0.04)
    assert phi == pytest.approx(1.7, abs=0.1)


def test_the_linear_model_is_statsmodels_glm():
    sm = pytest.importorskip("statsmodels.api")
    from ansatz.linear import fit_linear

    x = torch.randn(200, 2)
    distribution = TweedieDistribution(
        0.5 + x @ torch.tensor([0.3, -0.2]), torch.ones(200), torch.tensor(1.5)
    )
    y = distribution.sample((), torch.Generator().manual_seed(0))
    family = sm.families.Tweedie(sm.families.links.Log(), var_power=1.5)
    theirs = sm.GLM(y.numpy(), sm.add_constant(x.numpy()), family=family).fit(tol=1e-14)
    ours = fit_linear(Tweedie(dispersion="constant"), x, y)
    assert_close(
        ours.coefficients.flatten()[:3], torch.as_tensor(theirs.params), rtol=1e-6, atol=1e-8
    )


def test_zeros_alone_have_a_finite_start():
    likelihood = Tweedie(power="learned")
    likelihood.observe(torch.zeros(4), torch.ones(4))
    shift, scale = likelihood.start(torch.zeros(4), torch.ones(4))
    assert shift.isfinite().all() and (scale > 0).all()


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0, "any", True])
def test_an_impossible_power_is_refused(power):
    with pytest.raises(ValueError, match=r"'learned' or a number in \[1.01, 1.99\], got .*gamma"):
        Tweedie(power=power)
