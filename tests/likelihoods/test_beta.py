import mpmath
import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.likelihoods import Beta, BetaDistribution, SqueezedDistribution
from ansatz.likelihoods.beta import beta_quantile, fit_beta
from ansatz.likelihoods.special.beta import log_betainc, log_betaincc


@pytest.mark.parametrize("phi", [1e-4, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("mean", [1e-3, 0.5, 0.999])
def test_any_precision_keeps_its_digits(phi, mean):
    logit = torch.tensor([mean]).logit()
    sd = (mean * (1 - mean) / (1 + phi)) ** 0.5
    y = min(mean + sd, 0.9999) if phi > 10 else 0.3
    distribution = BetaDistribution(logit, torch.tensor([1 / phi]))
    with mpmath.workdps(60):
        mu = 1 / (1 + mpmath.exp(-mpmath.mpf(logit.item())))
        a, b = mu / mpmath.mpf(1 / phi), (1 - mu) / mpmath.mpf(1 / phi)
        Y = mpmath.mpf(y)
        exact = (a - 1) * mpmath.log(Y) + (b - 1) * mpmath.log1p(-Y) - mpmath.log(mpmath.beta(a, b))
        lower = mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
        entropy = lower + (a + b - 2) * mpmath.digamma(a + b)
        entropy -= (a - 1) * mpmath.digamma(a) + (b - 1) * mpmath.digamma(b)
    assert distribution.log_prob(torch.tensor([y])).item() == pytest.approx(
        float(exact), rel=1e-9, abs=1e-7
    )
    assert distribution.entropy.item() == pytest.approx(float(entropy), rel=1e-8, abs=1e-7)
    single = BetaDistribution(distribution.logits.float(), distribution.dispersion.float())
    if phi < 1e6:  # beyond, y itself is not known to the digits that matter
        found = single.log_prob(torch.tensor([y]).float()).item()
        assert found == pytest.approx(float(exact), rel=1e-3, abs=5e-2)


def test_the_uniform_likelihood_and_its_edges():
    distribution = BetaDistribution(torch.zeros(4), torch.full((4,), 0.5))
    y = torch.tensor([0.25, 0.0, 1.0, 1.5])
    assert_close(distribution.log_prob(y), torch.tensor([0.0, *[-torch.inf] * 3]))
    assert_close(distribution.cdf(y), torch.tensor([0.25, 0.0, 1.0, 1.0]))
    assert_close(distribution.log_survival(y), torch.tensor([0.75, 1.0, 0.0, 0.0]).log())
    assert_close(distribution.entropy, torch.zeros(4))
    assert_close(distribution.crps(y)[:3], torch.tensor([0.25**2 - 0.25 + 1 / 3, 1 / 3, 1 / 3]))


def test_a_far_tail_has_a_logarithm():
    distribution = BetaDistribution(torch.zeros(1), torch.tensor([1e-4]))  # a = b = 5000
    with mpmath.workdps(40):
        exact = mpmath.log(mpmath.betainc(5000, 5000, 0, mpmath.mpf(0.1), regularized=True))
    assert distribution.log_cdf(torch.tensor([0.1])).item() == pytest.approx(
        float(exact), rel=1e-12
    )
    assert distribution.log_survival(torch.tensor([0.9])).item() == pytest.approx(
        float(exact), rel=1e-12
    )


def test_the_modes_of_every_shape():
    a, b = torch.tensor([3.0, 0.5, 3.0, 0.5, 0.4]), torch.tensor([2.0, 3.0, 0.5, 0.4, 0.5])
    distribution = BetaDistribution((a / b).log(), 1 / (a + b))
    assert_close(distribution.mode, torch.tensor([2 / 3, 0.0, 1.0, 1.0, 0.0]))


def test_the_start_is_scipys_maximum_likelihood_fit():
    y = stats.beta(0.7, 2.5).rvs(500, random_state=0)
    logit, dispersion = fit_beta(torch.as_tensor(y), torch.ones(500))
    a, b, _, _ = stats.beta.fit(y, floc=0, fscale=1)
    assert logit.item() == pytest.approx(np.log(a / b), abs=1e-6)
    assert 1 / dispersion.item() == pytest.approx(a + b, rel=1e-6)


@pytest.mark.parametrize(
    "a, b", [(2, 5), (0.1, 0.1), (0.02, 3), (1e5, 3e5), (50, 0.3), (3e-2, 4e-3)]
)
def test_newtons_fit_converges_for_every_shape(a, b):
    y = torch.as_tensor(stats.beta(a, b).rvs(100, random_state=1)).clamp(1e-300, 1 - 1e-16)
    start = fit_beta(y, torch.ones(100))
    logit, log_dispersion = start[0].requires_grad_(), start[1].log().requires_grad_()
    value = BetaDistribution(logit, log_dispersion.exp()).log_prob(y).mean()
    for slope in torch.autograd.grad(value, (logit, log_dispersion)):
        assert abs(slope.item()) < 1e-9


def test_the_constant_model_is_that_of_statsmodels():
    beta_model = pytest.importorskip("statsmodels.othermod.betareg").BetaModel
    y = stats.beta(2.0, 6.0).rvs(200, random_state=2)
    fit = beta_model(y, np.ones((200, 1))).fit(disp=0)
    likelihood = Beta(dispersion="constant")
    likelihood.observe(torch.as_tensor(y), torch.ones(200))
    shift, _ = likelihood.start(torch.as_tensor(y), torch.ones(200))
    loss = likelihood.loss(shift.expand(200, 1), torch.as_tensor(y)).sum()
    assert -loss.item() == pytest.approx(fit.llf, abs=1e-6)
    assert shift.item() == pytest.approx(fit.params[0], abs=1e-4)
    precision = 1 / likelihood.dispersion.value(torch.float64).item()
    assert precision == pytest.approx(np.exp(fit.params[1]), rel=1e-3)


def test_exact_zeros_and_ones_are_refused_with_three_ways_out():
    with pytest.raises(DataError, match=r"got 1.0 at y\[1\].*zero_one.*binomial.*squeeze=True"):
        Beta().check(torch.tensor([0.5, 1.0]))
    Beta(squeeze=True).check(torch.tensor([0.0, 0.5, 1.0]))
    with pytest.raises(DataError, match=r"between 0 and 1, got 1.5 at y\[0\]"):
        Beta(squeeze=True).check(torch.tensor([1.5]))


def test_a_squeeze_is_smithson_and_verkuilens_and_is_remembered():
    y, weight = torch.tensor([0.0, 0.2, 0.9, 1.0]), torch.tensor([1.0, 2.0, 1.0, 1.0])
    likelihood = Beta(squeeze=True, dispersion="constant")
    likelihood.observe(y, weight)
    shift, _ = likelihood.start(y, weight)
    moved = (y * 4 + 0.5) / 5
    logit, dispersion = fit_beta(moved, weight)
    assert_close(shift, logit.reshape(1))
    exact = stats.beta(*((logit * s).sigmoid() / dispersion for s in (1, -1))).logpdf(moved)
    jacobian = torch.tensor(4 / 5).log()
    assert_close(likelihood.loss(shift.expand(4, 1), y), -torch.as_tensor(exact) - jacobian)
    fresh = Beta(squeeze=True, dispersion="constant")
    fresh.load_state_dict(likelihood.state_dict())
    assert torch.equal(fresh.loss(shift.expand(4, 1), y), likelihood.loss(shift.expand(4, 1), y))


def test_a_squeezed_likelihood_is_a_distribution_of_the_outcome_itself():
    inner = BetaDistribution(torch.randn(5), torch.rand(5))
    distribution = SqueezedDistribution(inner, torch.tensor(12.0))
    y = torch.rand(5).requires_grad_()
    (slope,) = torch.autograd.grad(distribution.cdf(y).sum(), y)
    assert_close(slope, distribution.log_prob(y).exp().detach())
    q = torch.tensor([0.02, 0.3, 0.5, 0.8, 0.99])
    assert_close(distribution.cdf(distribution.icdf(q)), q)
    draws = distribution.sample((40_000,), torch.Generator().manual_seed(0))
    assert (draws.mean(0) - distribution.mean).abs().max() < 5 * distribution.stddev.max() / 200
    assert_close(draws.var(0), distribution.variance, rtol=0.05, atol=0)
    from ansatz.likelihoods import Distribution

    assert_close(
        distribution.crps(y.detach()),
        Distribution.crps(distribution, y.detach()),
        rtol=1e-6,
        atol=1e-9,
    )
    assert_close(distribution.log_cdf(y).exp() + distribution.log_survival(y).exp(), torch.ones(5))
    assert_close(distribution.mode, (inner.mode * 12 - 0.5) / 11)
    assert_close(distribution.entropy, inner.entropy - torch.tensor(11 / 12).log())


def test_tiny_shapes_are_sampled_inside_the_support():
    distribution = BetaDistribution(torch.zeros(1), torch.full((1,), 1e4))
    y = distribution.sample((1000,), torch.Generator().manual_seed(0))
    assert ((y > 0) & (y < 1)).all()
    assert abs(y.mean().item() - 0.5) < 0.1


SHAPES = [(1.045, 0.263), (2.3, 3.07), (5.8, 35.7), (7.7, 0.17), (400.0, 20.0)]


@pytest.mark.parametrize("a, b", SHAPES)
def test_quantiles_far_down_have_their_level(a, b):
    """SciPy's betaincinv is nan for some of these."""
    q = 10.0 ** -torch.arange(1.0, 290.0, 9.0)
    a, b = torch.full_like(q, a), torch.full_like(q, b)
    x = beta_quantile(a, b, q)
    held = x > 1e-300  # below, no double has its digits
    assert held.sum() > 5
    assert_close(log_betainc(a, b, x)[held], q.log()[held], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("a, b", SHAPES)
def test_quantiles_of_the_upper_half_have_the_complement(a, b):
    rest = 2.0 ** -torch.arange(2.0, 40.0)
    a, b = torch.full_like(rest, a), torch.full_like(rest, b)
    x = beta_quantile(a, b, 1 - rest)
    held = x < 1 - 1e-8
    slack = 1e-15 / (1 - x)  # of x's own rounding
    gap = (log_betaincc(a, b, x) - rest.log()).abs()
    assert (gap[held] < 1e-12 + 100 * slack[held]).all()


def test_levels_outside_have_no_quantile():
    one = torch.ones(4)
    x = beta_quantile(2 * one, 3 * one, torch.tensor([-0.1, 0.0, 1.0, 1.1]))
    assert_close(x, torch.tensor([torch.nan, 0.0, 1.0, torch.nan]), equal_nan=True)
