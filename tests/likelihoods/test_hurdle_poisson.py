import mpmath
import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.likelihoods import Bernoulli, HurdlePoisson, HurdlePoissonDistribution
from ansatz.likelihoods.special.logarithms import log_positive, positive_rate


@pytest.mark.parametrize("log_rate", [-700.0, -50.0, -8.0, -0.7, -0.6, 0.0, 3.0])
def test_the_share_of_positive_counts_has_all_digits(log_rate):
    with mpmath.workdps(400):
        exact = float(mpmath.log(-mpmath.expm1(-mpmath.exp(log_rate))))
    assert log_positive(torch.tensor(log_rate)).item() == pytest.approx(exact, rel=1e-14)


def test_the_share_of_positive_counts_has_two_derivatives():
    x = torch.linspace(-6, 3, 19).requires_grad_()
    assert torch.autograd.gradcheck(log_positive, x)
    assert torch.autograd.gradgradcheck(log_positive, x)


def test_positive_rate_inverts_the_truncated_mean():
    mean = 1 + torch.logspace(-12, 4, 33)
    rate = positive_rate(mean)
    with mpmath.workdps(40):
        found = [float(r / -mpmath.expm1(-r) - 1) for r in map(mpmath.mpf, rate.tolist())]
    assert_close(torch.tensor(found), mean - 1, rtol=1e-13, atol=0)


def test_it_is_a_logistic_regression_and_a_zero_truncated_poisson():
    """The loss is the sum of two losses that share no parameter."""
    raw, y = torch.randn(200, 2), torch.randint(0, 4, (200,)).double()
    loss = HurdlePoisson().loss(raw, y)
    mu = raw[:, 0].exp().numpy()
    truncated = stats.poisson.logpmf(y.numpy(), mu) - np.log(-np.expm1(-mu))
    some = Bernoulli().loss(raw[:, 1:], (y > 0).double())
    assert_close(loss, some - torch.where(y > 0, torch.as_tensor(truncated), 0.0))


def test_the_truncated_poisson_is_statsmodels():
    truncated = pytest.importorskip("statsmodels.discrete.truncated_model")
    x, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 5 + 1.0
    beta = np.array([0.3, -0.8])
    theirs = truncated.TruncatedLFPoisson(y, x).loglikeobs(beta)
    raw = torch.stack([torch.as_tensor(x @ beta), torch.full((50,), 40.0)], 1)  # p = 1
    assert_close(-HurdlePoisson().loss(raw, torch.as_tensor(y)), torch.as_tensor(theirs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_rate_of_nothing_leaves_ones(dtype):
    raw = torch.tensor([[-60.0, 0.0], [-1e4, 0.0]], dtype=dtype, requires_grad=True)
    distribution = HurdlePoisson().distribution(raw)
    assert_close(distribution.mean.detach(), torch.full((2,), 0.5, dtype=dtype))
    assert_close(distribution.variance.detach(), torch.full((2,), 0.25, dtype=dtype))
    one = HurdlePoisson().loss(raw, torch.ones(2, dtype=dtype))
    assert_close(one.detach(), torch.full((2,), 2.0, dtype=dtype).log(), atol=1e-5, rtol=0)
    (gradient,) = torch.autograd.grad(one.sum(), raw)
    assert_close(gradient[:, 0], torch.zeros(2, dtype=dtype), atol=1e-6, rtol=0)


@pytest.mark.parametrize("log_rate", [-30.0, -12.0, -3.1, -2.9, 0.5, 3.0])
def test_crps_is_the_sum_of_squared_gaps(log_rate):
    distribution = HurdlePoissonDistribution(
        torch.full((4,), log_rate), torch.tensor([-2.0, 0.0, 1.0, 9.0])
    )
    y = torch.tensor([0.0, 1.0, 2.0, 30.0])
    k = torch.arange(0.0, 200.0).unsqueeze(1).expand(-1, 4)
    gap = torch.where(k < y, distribution.cdf(k), distribution.log_survival(k).exp())
    assert_close(distribution.crps(y), (gap**2).sum(0), rtol=1e-10, atol=1e-13)


def test_both_tails_have_relative_accuracy():
    log_rate, logits = torch.tensor([5.0, -5.0, 3.0]), torch.tensor([300.0, 2.0, 30.0])
    distribution = HurdlePoissonDistribution(log_rate, logits)
    y = torch.tensor([3.0, 12.0, 200.0])
    below, above = [], []
    with mpmath.workdps(200):
        for eta, a, k in zip(log_rate.tolist(), logits.tolist(), y.tolist(), strict=True):
            r, p = mpmath.exp(mpmath.mpf(eta)), 1 / (1 + mpmath.exp(-mpmath.mpf(a)))
            term = [mpmath.exp(-r) * r**i / mpmath.factorial(i) for i in range(1, 900)]
            scale = p / -mpmath.expm1(-r)
            below.append(float(mpmath.log(1 - p + scale * sum(term[: int(k)]))))
            above.append(float(mpmath.log(scale * sum(term[int(k) :]))))
    assert_close(distribution.log_cdf(y), torch.tensor(below), rtol=1e-11, atol=0)
    assert_close(distribution.log_survival(y), torch.tensor(above), rtol=1e-11, atol=0)


def test_fewer_zeros_than_poisson_are_possible():
    y = torch.tensor([1.0, 1.0, 2.0, 3.0, 4.0, 1.0, 0.0, 2.0])
    shift, _ = HurdlePoisson().start(y, torch.ones(8))
    distribution = HurdlePoisson().distribution(shift)
    assert distribution.cdf(torch.zeros(())).item() == pytest.approx(1 / 8)
    assert distribution.mean.item() == pytest.approx(y.mean().item())


def test_quantiles_of_a_rate_of_nothing_are_zero_and_one():
    distribution = HurdlePoissonDistribution(torch.full((3,), -45.0), torch.zeros(3))
    assert distribution.icdf(torch.tensor([0.5, 0.51, 1 - 1e-12])).tolist() == [0.0, 1.0, 1.0]
