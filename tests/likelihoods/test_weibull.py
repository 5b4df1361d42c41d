import math

import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.likelihoods import Exponential, Weibull, WeibullDistribution


def test_sigma_one_is_exponential():
    raw, y = torch.randn(10, 1), torch.rand(10)
    assert_close(Weibull(dispersion=1.0).loss(raw, y), Exponential().loss(raw, y))


def test_the_smallest_of_many_is_again_weibull():
    """min of n draws has the scale times n^-sigma: survivals multiply."""
    sigma, y = torch.rand(6) + 0.2, torch.rand(6) * 2
    one = WeibullDistribution(torch.zeros(6), sigma)
    least = WeibullDistribution(-sigma * math.log(5.0), sigma)
    assert_close(5 * one.log_survival(y), least.log_survival(y))


def test_a_coefficient_stretches_time():
    sigma, shift, y = torch.rand(6) + 0.2, torch.randn(6), torch.rand(6) * 2
    base, moved = WeibullDistribution(torch.zeros(6), sigma), WeibullDistribution(shift, sigma)
    assert_close(moved.log_survival(y * shift.exp()), base.log_survival(y))


@pytest.mark.parametrize("shape, size", [(0.5, 60), (1.0, 300), (3.0, 300), (20.0, 60)])
def test_the_start_is_scipys_maximum_likelihood_fit(shape, size):
    y = stats.weibull_min(shape, scale=4).rvs(size, random_state=0)
    likelihood = Weibull()
    likelihood.observe(torch.as_tensor(y), torch.ones(size))
    shift, _ = likelihood.start(torch.as_tensor(y), torch.ones(size))
    found = likelihood.distribution(shift.reshape(1, 2))
    k, _, scale = stats.weibull_min.fit(y, floc=0)
    best = -stats.weibull_min(k, scale=scale).logpdf(y).mean()
    assert -found.log_prob(torch.as_tensor(y)).mean().item() <= best + 1e-12
    assert 1 / found.sigma.item() == pytest.approx(k, rel=1e-3)
    assert found.log_scale.exp().item() == pytest.approx(scale, rel=1e-3)


def test_the_variance_of_a_sharp_likelihood_keeps_its_digits():
    """As sigma -> 0 the sd over the mean is sigma pi / sqrt(6)."""
    distribution = WeibullDistribution(torch.zeros(1), torch.tensor([1e-5]))
    ratio = (distribution.stddev / distribution.mean).item()
    assert ratio == pytest.approx(1e-5 * math.pi / math.sqrt(6), rel=1e-4)


def test_far_tails_have_logarithms():
    distribution = WeibullDistribution(torch.zeros(2), torch.tensor([0.5, 0.1]))
    y = torch.tensor([100.0, 1e-200])
    assert distribution.log_survival(y)[0].item() == pytest.approx(-1e4)
    assert distribution.log_cdf(y)[1].item() == pytest.approx(10 * math.log(1e-200))


def test_both_tails_have_second_derivatives():
    eta, sigma = torch.randn(4).requires_grad_(), (torch.rand(4) + 0.3).requires_grad_()
    y = torch.rand(4).requires_grad_()
    for tail in ("log_cdf", "log_survival"):
        assert torch.autograd.gradgradcheck(
            lambda m, s, y, tail=tail: getattr(WeibullDistribution(m, s), tail)(y), (eta, sigma, y)
        )
