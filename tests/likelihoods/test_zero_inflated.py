import mpmath
import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.likelihoods import (
    NegativeBinomial,
    Poisson,
    PoissonDistribution,
    ZeroInflatedDistribution,
    ZeroInflatedNegativeBinomial,
    ZeroInflatedPoisson,
)


def test_poisson_is_statsmodels():
    count_model = pytest.importorskip("statsmodels.discrete.count_model")
    x, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 4 * (np.arange(60) % 3)
    model = count_model.ZeroInflatedPoisson(y, x, exog_infl=x)
    inflate, beta = np.array([0.5, -0.4]), np.array([0.3, -0.8])
    theirs = model.loglikeobs(np.concatenate([inflate, beta]))
    raw = torch.as_tensor(np.stack([x @ beta, x @ inflate], 1))
    ours = -ZeroInflatedPoisson().loss(raw, torch.as_tensor(y).double())
    assert_close(ours, torch.as_tensor(theirs), rtol=1e-12, atol=1e-12)


def test_without_inflation_it_is_poisson():
    raw = torch.stack([torch.randn(50), torch.full((50,), -60.0)], 1)
    y = torch.poisson(raw[:, 0].exp())
    assert_close(ZeroInflatedPoisson().loss(raw, y), Poisson().loss(raw[:, :1], y))


def test_the_probability_of_zero_keeps_its_digits_where_counts_are_rare():
    raw = torch.tensor([[-30.0, 0.0], [-30.0, -40.0], [3.0, -40.0], [20.0, -700.0]])
    found = -ZeroInflatedPoisson().loss(raw, torch.zeros(4))
    with mpmath.workdps(60):
        exact = []
        for a, b in raw.tolist():
            mu, pi = mpmath.exp(a), 1 / (1 + mpmath.exp(-mpmath.mpf(b)))
            exact.append(float(mpmath.log(pi + (1 - pi) * mpmath.exp(-mu))))
    assert_close(found, torch.tensor(exact), rtol=1e-14, atol=0)


def test_the_constant_fit_reproduces_zeros_and_mean():
    y = torch.tensor([0.0] * 12 + [1.0, 2.0, 2.0, 3.0, 5.0])
    shift, _ = ZeroInflatedPoisson().start(y, torch.ones(17))
    distribution = ZeroInflatedPoisson().distribution(shift)
    assert distribution.mean.item() == pytest.approx(y.mean().item())
    assert distribution.log_prob(torch.zeros(())).exp().item() == pytest.approx(12 / 17)


def test_few_zeros_start_as_poisson_with_half_a_row_of_inflation():
    y = torch.tensor([1.0, 1.0, 1.0, 2.0, 0.0, 2.0, 1.0, 1.0])
    shift, _ = ZeroInflatedPoisson().start(y, torch.ones(8))
    distribution = ZeroInflatedPoisson().distribution(shift)
    assert distribution.inflation.item() == pytest.approx(0.5 / 9)
    assert distribution.mean.item() == pytest.approx(y.mean().item())


def test_crps_is_that_of_the_mixture():
    """E|Y - y| - E|Y - Y'| / 2 over the probabilities of 0..80."""
    distribution = ZeroInflatedDistribution(
        PoissonDistribution(torch.full((4,), 1.2)), torch.randn(4)
    )
    y, k = torch.tensor([0.0, 1.0, 4.0, 2.5]), torch.arange(0.0, 80.0)
    p = distribution.log_prob(k.unsqueeze(1).expand(-1, 4)).exp()  # (80, 4)
    first = (p * (k.unsqueeze(1) - y).abs()).sum(0)
    second = torch.einsum("ib,jb,ij->b", p, p, (k - k.unsqueeze(1)).abs()) / 2
    assert_close(distribution.crps(y), first - second)


def test_the_inflated_zeros_show_in_the_samples():
    raw = torch.tensor([1.0, 0.4])
    distribution = ZeroInflatedPoisson().distribution(raw)
    draws = distribution.sample((20_000,), torch.Generator().manual_seed(0))
    pi = stats.logistic.cdf(0.4)
    zero = pi + (1 - pi) * np.exp(-np.exp(1.0))
    assert (draws == 0).double().mean().item() == pytest.approx(zero, abs=5 * 0.5 / 20_000**0.5)


def test_negative_binomial_is_statsmodels():
    count_model = pytest.importorskip("statsmodels.discrete.count_model")
    x, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 4 * (np.arange(60) % 3)
    model = count_model.ZeroInflatedNegativeBinomialP(y, x, exog_infl=x, p=2)
    inflate, beta, alpha = np.array([0.5, -0.4]), np.array([0.3, -0.8]), 0.6
    theirs = model.loglikeobs(np.concatenate([inflate, beta, [alpha]]))
    raw = torch.as_tensor(np.stack([x @ beta, x @ inflate], 1))
    likelihood = ZeroInflatedNegativeBinomial(dispersion=alpha)
    ours = -likelihood.loss(raw, torch.as_tensor(y).double())
    assert_close(ours, torch.as_tensor(theirs), rtol=1e-7, atol=1e-7)  # alpha is held in float32


def test_without_inflation_it_is_negative_binomial():
    raw = torch.cat([torch.randn(50, 2), torch.full((50, 1), -60.0)], 1)
    y = torch.poisson(3 * torch.rand(50))
    ours = ZeroInflatedNegativeBinomial().loss(raw, y)
    assert_close(ours, NegativeBinomial().loss(raw[:, :2], y))


def test_little_dispersion_is_zero_inflated_poisson():
    raw, y = torch.randn(50, 2), torch.poisson(3 * torch.rand(50))
    ours = ZeroInflatedNegativeBinomial(dispersion=1e-9).loss(raw, y)
    assert_close(ours, ZeroInflatedPoisson().loss(raw, y), rtol=1e-7, atol=1e-7)


def overdispersed(n, inflated):
    generator = torch.Generator().manual_seed(2)
    rate = 6 * torch._standard_gamma(torch.full((n,), 2.0), generator=generator) / 2
    kept = torch.rand(n, generator=generator) >= inflated
    return torch.poisson(rate, generator=generator) * kept


def test_the_constant_fit_finds_inflation_and_dispersion():
    y = overdispersed(4000, 0.3)
    likelihood, weight = ZeroInflatedNegativeBinomial(), torch.ones(4000)
    likelihood.observe(y, weight)
    shift, _ = likelihood.start(y, weight)
    found = likelihood.distribution(shift)
    assert found.inflation.item() == pytest.approx(0.3, abs=0.05)
    assert found.counts.dispersion.item() == pytest.approx(0.5, abs=0.1)
    assert found.counts.mean.item() == pytest.approx(6, abs=0.3)
    assert found.log_prob(torch.zeros(())).exp().item() == pytest.approx((y == 0).double().mean())


def test_counts_that_need_no_inflation_start_as_negative_binomial():
    y = overdispersed(300, 0.0)
    y = y[y > 0]  # fewer zeros than any negative binomial distribution
    likelihood, weight = ZeroInflatedNegativeBinomial(), torch.ones(len(y))
    likelihood.observe(y, weight)
    found = likelihood.distribution(likelihood.start(y, weight)[0])
    assert found.inflation.item() == pytest.approx(0.5 / (len(y) + 1))
    assert found.mean.item() == pytest.approx(y.mean().item())


def test_counts_that_need_no_dispersion_start_near_zero_inflated_poisson():
    """A mixture of two counts around a zero-truncated mean is under-dispersed."""
    y = torch.tensor([0.0] * 40 + [3.0] * 20 + [4.0] * 20 + [5.0] * 20)
    likelihood, weight = ZeroInflatedNegativeBinomial(), torch.ones(100)
    likelihood.observe(y, weight)
    shift, _ = likelihood.start(y, weight)
    poisson, _ = ZeroInflatedPoisson().start(y, weight)
    assert_close(shift[[0, -1]], poisson, rtol=1e-3, atol=1e-3)
    assert likelihood.distribution(shift).counts.dispersion.item() < 1e-3
