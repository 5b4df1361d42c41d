import mpmath
import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.likelihoods import NegativeBinomial, NegativeBinomialDistribution, PoissonDistribution
from ansatz.likelihoods.special.roots import count_search


def log_probability(mu, alpha, y):
    mu, alpha, y = (mpmath.mpf(v) for v in (mu, alpha, y))
    r = 1 / alpha
    gammas = mpmath.loggamma(y + r) - mpmath.loggamma(r) - mpmath.loggamma(y + 1)
    return gammas - (y + r) * mpmath.log1p(alpha * mu) + y * mpmath.log(alpha * mu)


@pytest.mark.parametrize(
    "mu, alpha, y",
    [
        (3.0, 1e-12, 5.0),
        (1e6, 1e-9, 1.001e6),
        (1e9, 1e-3, 9e8),
        (1e-8, 50.0, 1e6),
        (5.0, 1e4, 2.0),
        (7.0, 0.019, 8.0),
        (1e5, 0.5, 0.0),
    ],
)
def test_any_mean_and_dispersion_keep_their_digits(mu, alpha, y):
    A, log_mean = torch.tensor(alpha, requires_grad=True), torch.tensor(mu).log()
    value = NegativeBinomialDistribution(log_mean, A).log_prob(torch.tensor(y))
    (slope,) = torch.autograd.grad(value, A)
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -12
        mean = mpmath.exp(mpmath.mpf(log_mean.item()))  # its logarithm rounds
        exact = log_probability(mean, alpha, y)
        near = [log_probability(mean, alpha * (1 + s * h), y) for s in (1, -1)]
        exact_slope = float((near[0] - near[1]) / (2 * h * alpha))
    assert value.item() == pytest.approx(float(exact), rel=1e-10, abs=1e-11)
    assert slope.item() == pytest.approx(exact_slope, rel=1e-8)


def test_a_vanishing_dispersion_is_poisson():
    log_mean, y = torch.randn(20) * 2, torch.arange(20.0)
    distribution = NegativeBinomialDistribution(log_mean, torch.tensor(1e-13))
    poisson = PoissonDistribution(log_mean)
    for method in ("log_prob", "cdf", "log_cdf", "log_survival", "crps"):
        ours, theirs = getattr(distribution, method)(y), getattr(poisson, method)(y)
        assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


def test_the_first_order_of_a_small_dispersion():
    """dF/dalpha = mu^2/2 d2F/dmu2 at alpha = 0: a mixture over the rate."""
    alpha = torch.full((3,), 1e-6, requires_grad=True)
    y, log_mean = torch.tensor([2.0, 7.0, 12.0]), torch.full((3,), 5.0).log()
    value = NegativeBinomialDistribution(log_mean, alpha).cdf(y)
    (slope,) = torch.autograd.grad(value.sum(), alpha)
    pmf = PoissonDistribution(log_mean).log_prob(y).exp()
    assert_close(slope, -2.5 * pmf * (y - 5), rtol=1e-4, atol=0)


def test_far_tails_have_logarithms():
    distribution = NegativeBinomialDistribution(
        torch.tensor([2.0]), torch.tensor([1.0])
    )  # geometric
    q = torch.sigmoid(torch.tensor([2.0]))
    assert_close(
        distribution.log_survival(torch.tensor([1e5])), (1e5 + 1) * q.log(), rtol=1e-12, atol=0
    )


def test_scipys_heavy_quantiles():
    log_mean, alpha = torch.randn(300) * 4, (2 * torch.randn(300)).exp()
    q = torch.rand(300)
    distribution = NegativeBinomialDistribution(log_mean, alpha)
    frozen = stats.nbinom(1 / alpha.numpy(), 1 / (1 + (alpha * distribution.mean).numpy()))
    assert_close(distribution.icdf(q), torch.as_tensor(frozen.ppf(q.numpy())))
    ends = distribution.icdf(torch.tensor([0.0, 1.0, -0.1]).repeat(100))[:3]
    assert_close(ends, torch.tensor([0.0, torch.inf, torch.nan]), equal_nan=True)


@pytest.mark.parametrize("guess", [0.0, 3.0, 1e6])
def test_a_poor_guess_costs_no_accuracy(guess):
    log_rate, q = torch.linspace(-5, 8, 50), torch.rand(50)
    found = count_search(PoissonDistribution(log_rate), q, torch.full((50,), guess))
    exact = stats.poisson(log_rate.exp().numpy()).ppf(q.numpy())
    assert_close(found, torch.as_tensor(exact))


def test_crps_of_a_wide_likelihood_scales_like_the_gamma_likelihoods():
    """A large mean forgets the counting: crps / mu is that of gamma with dispersion alpha."""
    from ansatz.likelihoods import GammaDistribution

    mu, alpha = torch.full((3,), 1e8), torch.tensor([0.01, 0.5, 3.0])
    y = torch.tensor([9e7, 2e8, 1e6])
    ours = NegativeBinomialDistribution(mu.log(), alpha).crps(y)
    assert_close(ours, GammaDistribution(mu.log(), alpha).crps(y), rtol=1e-6, atol=0)


def test_the_start_is_the_fit_of_statsmodels():
    api = pytest.importorskip("statsmodels.api")
    y = stats.nbinom(1.7, 0.2).rvs(400, random_state=3).astype(float)
    fit = api.NegativeBinomial(y, np.ones((400, 1))).fit(disp=0, gtol=1e-10, maxiter=200)
    likelihood = NegativeBinomial()
    likelihood.observe(torch.as_tensor(y), torch.ones(400))
    shift, _ = likelihood.start(torch.as_tensor(y), torch.ones(400))
    found = likelihood.distribution(shift.reshape(1, 2))
    assert found.log_mean.item() == pytest.approx(fit.params[0], rel=1e-5)
    assert found.dispersion.item() == pytest.approx(fit.params[1], rel=1e-4)
    loss = likelihood.loss(shift.expand(400, 2), torch.as_tensor(y)).sum()
    assert -loss.item() == pytest.approx(fit.llf, abs=1e-6)


def test_counts_that_vary_less_than_poissons_start_at_the_floor():
    y = torch.tensor([3.0, 4.0, 4.0, 5.0, 4.0])
    likelihood = NegativeBinomial()
    likelihood.observe(y, torch.ones(5))
    shift, _ = likelihood.start(y, torch.ones(5))
    found = likelihood.distribution(shift.reshape(1, 2))
    assert 0 < found.dispersion.item() < 1e-3
    assert found.mean.item() == pytest.approx(4.0)


def test_deviance_and_pearson_residuals_are_those_of_statsmodels():
    families = pytest.importorskip("statsmodels.api").families
    likelihood, raw = NegativeBinomial(dispersion=0.7), torch.randn(30, 1)
    family = families.NegativeBinomial(alpha=0.7)
    y = likelihood.distribution(raw).sample((), torch.Generator().manual_seed(0))
    mu = raw[:, 0].exp().numpy()
    assert_close(
        likelihood.unit_deviance(raw, y), torch.as_tensor(family.resid_dev(y.numpy(), mu) ** 2)
    )
    pearson = (y.numpy() - mu) / np.sqrt(family.variance(mu))
    assert_close(likelihood.pearson(raw, y), torch.as_tensor(pearson))
