import mpmath
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.likelihoods import Gamma, GammaDistribution


def test_dispersion_one_is_exponential():
    raw, y = torch.randn(10, 1), torch.rand(10)
    exact = stats.expon(scale=raw[:, 0].exp()).logpdf(y)
    assert_close(Gamma(dispersion=1.0).loss(raw, y), -torch.as_tensor(exact))


@pytest.mark.parametrize("dispersion", [1e-8, 1e-4, 1.0, 1e3])
def test_any_dispersion_keeps_its_digits(dispersion):
    mean, y = 3.0, 3.0 * (1 + dispersion**0.5 if dispersion < 1 else 1e-2)
    with mpmath.workdps(60):
        a, r = 1 / mpmath.mpf(dispersion), mpmath.mpf(y) / mpmath.mpf(mean)
        exact = a * mpmath.log(a * r) - a * r - mpmath.loggamma(a) - mpmath.log(mpmath.mpf(y))
        exact = float(exact)
    distribution = GammaDistribution(torch.tensor([mean]).log(), torch.tensor([dispersion]))
    assert distribution.log_prob(torch.tensor([y])).item() == pytest.approx(
        exact, rel=1e-9, abs=1e-7
    )
    single = GammaDistribution(distribution.log_mean.float(), distribution.dispersion.float())
    if dispersion > 1e-6:  # below, y itself is not known to the digits that matter
        assert single.log_prob(torch.tensor([y]).float()).item() == pytest.approx(exact, rel=1e-2)


def test_both_far_tails_have_logarithms():
    distribution = GammaDistribution(torch.zeros(2), torch.tensor([0.01, 1.0]))
    y = torch.tensor([1e-4, 1e4])
    with mpmath.workdps(60):
        a = 1 / mpmath.mpf(0.01)
        lower = float(mpmath.log(mpmath.gammainc(a, 0, a * mpmath.mpf(1e-4), regularized=True)))
    assert distribution.log_cdf(y)[0].item() == pytest.approx(lower, rel=1e-12)
    assert distribution.log_survival(y)[1].item() == pytest.approx(-1e4)


def test_the_edge_of_the_support_has_no_mass():
    distribution = GammaDistribution(torch.zeros(2), torch.ones(2))
    y = torch.tensor([0.0, -1.0])
    assert_close(distribution.log_prob(y), torch.full((2,), -torch.inf))
    assert_close(distribution.cdf(y), torch.zeros(2))
    assert_close(distribution.log_survival(y), torch.zeros(2))


def test_the_start_is_scipys_maximum_likelihood_fit():
    y = stats.gamma(2.5, scale=4).rvs(500, random_state=0)
    likelihood = Gamma()
    likelihood.observe(torch.as_tensor(y), torch.ones(500))
    shift, _ = likelihood.start(torch.as_tensor(y), torch.ones(500))
    shape, _, scale = stats.gamma.fit(y, floc=0)
    found = likelihood.distribution(shift.reshape(1, 2))
    assert found.shape.item() == pytest.approx(shape, rel=1e-6)
    assert found.mean.item() == pytest.approx(shape * scale, rel=1e-6)


def test_tiny_shapes_are_sampled_inside_the_support():
    distribution = GammaDistribution(torch.zeros(1), torch.full((1,), 1e4))
    assert (distribution.sample((1000,), torch.Generator().manual_seed(0)) > 0).all()
