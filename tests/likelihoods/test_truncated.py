import copy
import math

import numpy as np
import pytest
import torch
from scipy import integrate, optimize, stats
from torch.testing import assert_close

from ansatz.errors import DataError, UsageError
from ansatz.likelihoods import (
    Gamma,
    GammaDistribution,
    Normal,
    NormalDistribution,
    PoissonDistribution,
    StudentTDistribution,
    Truncated,
    TruncatedDistribution,
    create,
)
from ansatz.spec import TargetSpec

BOUNDS = [(-1.0, 2.0), (0.5, math.inf), (-math.inf, -0.3), (6.0, math.inf), (-20.0, -9.0)]


def normal(lower, upper):
    """Mean 0.5, sd 1.5, and scipy's truncated normal."""
    distribution = NormalDistribution(torch.full((1,), 0.5), torch.full((1,), 1.5))
    a, b = (lower - 0.5) / 1.5, (upper - 0.5) / 1.5
    return TruncatedDistribution(distribution, lower, upper), stats.truncnorm(a, b, 0.5, 1.5)


@pytest.mark.parametrize("lower, upper", BOUNDS)
def test_everything_is_scipys_truncated_normal(lower, upper):
    likelihood, exact = normal(lower, upper)
    y = torch.tensor(exact.ppf([1e-6, 0.1, 0.5, 0.97])).unsqueeze(1)
    for ours, theirs in (
        (likelihood.log_prob, exact.logpdf),
        (likelihood.cdf, exact.cdf),
        (likelihood.log_cdf, exact.logcdf),
        (likelihood.log_survival, exact.logsf),
    ):
        assert_close(ours(y), torch.tensor(theirs(y.numpy())), rtol=1e-8, atol=1e-9)
    q = torch.tensor([[1e-6], [0.1], [0.5], [0.97]])
    assert_close(likelihood.icdf(q), torch.tensor(exact.ppf(q.numpy())), rtol=1e-8, atol=1e-9)
    assert likelihood.mean.item() == pytest.approx(exact.mean(), rel=1e-8)
    assert likelihood.variance.item() == pytest.approx(exact.var(), rel=1e-6)
    assert likelihood.mode.item() == pytest.approx(min(max(0.5, lower), upper))


@pytest.mark.parametrize("lower, upper", [(0, math.inf), (2, 6), (-math.inf, 3), (20, math.inf)])
def test_counts_are_the_restricted_sums(lower, upper):
    rate = 2.5
    distribution = TruncatedDistribution(
        PoissonDistribution(torch.tensor([rate]).log()), lower, upper
    )
    k = np.arange(0, 120)
    p = np.where((k > lower) & (k <= upper), stats.poisson(rate).pmf(k), 0.0)
    p = p / p.sum()
    y = torch.tensor(k[:40]).double().unsqueeze(1)
    assert_close(distribution.log_prob(y).exp()[:, 0], torch.tensor(p[:40]), rtol=1e-9, atol=1e-13)
    assert_close(distribution.cdf(y)[:, 0], torch.tensor(p.cumsum()[:40]), rtol=1e-9, atol=1e-12)
    mean = (k * p).sum()
    assert distribution.mean.item() == pytest.approx(mean, rel=1e-9)
    assert distribution.variance.item() == pytest.approx(((k - mean) ** 2 * p).sum(), rel=1e-8)
    q = torch.tensor([0.05, 0.3, 0.8, 0.99])
    found = distribution.icdf(q.unsqueeze(1))[:, 0]
    assert_close(found, torch.tensor(np.searchsorted(p.cumsum(), q.numpy())).double())


def test_outside_the_bounds_there_is_nothing():
    likelihood, _ = normal(-1.0, 2.0)
    y = torch.tensor([-5.0, -1.0, 2.5]).unsqueeze(1)
    assert_close(likelihood.log_prob(y), torch.full((3, 1), -torch.inf))
    assert_close(likelihood.cdf(y)[:, 0], torch.tensor([0.0, 0.0, 1.0]))
    assert_close(likelihood.log_survival(y)[:, 0], torch.tensor([0.0, 0.0, -torch.inf]))


def test_each_row_may_have_its_own_bounds():
    lower = torch.tensor([-torch.inf, 0.0, 8.0])
    distribution = TruncatedDistribution(NormalDistribution(torch.zeros(3), torch.ones(3)), lower)
    exact = [stats.truncnorm(a, np.inf).mean() for a in lower.numpy()]
    assert_close(distribution.mean, torch.tensor(exact), rtol=1e-8, atol=1e-9)
    assert distribution.batch_shape == (3,)


def test_far_out_it_is_exponential():
    """Beyond 40 sd a normal falls like exp(-40 z); its mass there is 1e-350."""
    distribution = TruncatedDistribution(
        NormalDistribution(torch.zeros(1), torch.ones(1)), lower=40.0
    )
    mills = 1 / 40 - 1 / 40**3 + 3 / 40**5 - 15 / 40**7
    assert distribution.mean.item() == pytest.approx(1 / mills, rel=1e-9)
    assert distribution.cdf(distribution.median).item() == pytest.approx(0.5, rel=1e-9)


def test_a_tail_without_a_mean_has_none():
    heavy = StudentTDistribution(torch.zeros(1), torch.ones(1), torch.ones(1))  # Cauchy
    assert not TruncatedDistribution(heavy, lower=0.0).mean.isfinite().any()
    both = TruncatedDistribution(heavy, lower=-3.0, upper=5.0)
    mass = (math.atan(5) + math.atan(3)) / math.pi
    exact = 0.5 * math.log(26 / 10) / math.pi / mass
    assert both.mean.item() == pytest.approx(exact, rel=1e-7)


def test_crps_is_the_integral_of_the_squared_gap():
    likelihood, exact = normal(-1.0, 2.0)
    parts = [
        integrate.quad(lambda x: exact.cdf(x) ** 2, -1, 0.7)[0],
        integrate.quad(lambda x: exact.sf(x) ** 2, 0.7, 2)[0],
    ]
    assert likelihood.crps(torch.tensor([0.7])).item() == pytest.approx(sum(parts), rel=1e-7)


def test_samples_lie_inside_and_follow_the_cdf():
    distribution = TruncatedDistribution(
        GammaDistribution(torch.zeros(1), torch.full((1,), 0.5)), 1.0, 3.0
    )
    y = distribution.sample((5000,), torch.Generator().manual_seed(0))[:, 0]
    assert (y > 1).all() and (y <= 3).all()
    assert (
        stats.kstest(y.numpy(), lambda x: distribution.cdf(torch.tensor(x)).numpy()).pvalue > 1e-4
    )


@pytest.mark.parametrize("name", ["normal", "gamma", "weibull", "poisson"])
def test_score_has_mean_zero(name):
    outer = Truncated(name, lower=1.0, upper=4.0)
    raw = (0.3 * torch.randn(1, outer.outputs(TargetSpec()))).repeat(5000, 1).requires_grad_()
    y = outer.distribution(raw.detach()[:1]).sample((5000,), torch.Generator().manual_seed(1))
    (score,) = torch.autograd.grad(outer.loss(raw, y[:, 0]).sum(), raw)
    assert (score.mean(0).abs() < 5 * score.std(0) / len(score) ** 0.5 + 1e-12).all()


def test_loss_is_minus_the_log_density_of_its_distribution():
    likelihood, raw = Truncated(Gamma(), lower=0.5, upper=2.0), torch.randn(6, 2)
    y = likelihood.distribution(raw).sample((), torch.Generator().manual_seed(0))
    assert_close(likelihood.loss(raw, y), -likelihood.distribution(raw).log_prob(y))
    raw.requires_grad_()
    assert torch.autograd.gradcheck(lambda raw: likelihood.loss(raw, y), raw, eps=1e-5, atol=1e-6)


def test_gradients_of_tails_and_moments():
    likelihood = Truncated(Normal(), lower=0.0)
    raw = torch.randn(2, 2).requires_grad_()
    y = torch.tensor([0.5, 2.0])
    for method in ("log_cdf", "log_survival"):
        assert torch.autograd.gradcheck(
            lambda raw, m=method: getattr(likelihood.distribution(raw), m)(y), raw
        )
    assert torch.autograd.gradcheck(lambda raw: likelihood.distribution(raw).mean, raw, atol=1e-6)


def test_the_start_of_a_zero_truncated_poisson_solves_its_equation():
    y = torch.tensor([1.0, 1, 1, 2, 3, 1, 2, 5])
    weight = torch.tensor([1.0, 2, 1, 1, 3, 1, 1, 1])
    likelihood = Truncated("poisson", lower=0)
    likelihood.check(y)
    likelihood.observe(y, weight)
    shift, _ = likelihood.start(y, weight)
    mean = (weight * y).sum().item() / weight.sum().item()
    rate = optimize.brentq(lambda r: r / -np.expm1(-r) - mean, 1e-6, 20)
    assert shift.exp().item() == pytest.approx(rate, rel=1e-9)


def test_the_start_of_a_truncated_normal_is_scipys_optimum():
    y = stats.truncnorm(-0.5, 1.5, 1.0, 2.0).rvs(300, random_state=0)  # between 0 and 4
    likelihood = Truncated("normal", lower=0.0, upper=4.0)
    likelihood.observe(torch.tensor(y), torch.ones(300))
    shift, _ = likelihood.start(torch.tensor(y), torch.ones(300))

    def minus_log(theta):
        sd = np.exp(theta[1])
        return (
            -stats.truncnorm((0 - theta[0]) / sd, (4 - theta[0]) / sd, theta[0], sd).logpdf(y).sum()
        )

    exact = optimize.minimize(minus_log, [1.0, 0.5], method="Nelder-Mead", options={"fatol": 1e-10})
    total = likelihood.loss(shift.expand(300, -1), torch.tensor(y)).sum().item()
    assert total == pytest.approx(exact.fun, abs=1e-7)
    assert likelihood.likelihood.distribution(shift).mean.item() == pytest.approx(
        exact.x[0], abs=1e-3
    )


def test_an_unobserved_row_may_be_nan():
    y, weight = torch.rand(20) + 0.1, torch.ones(20)
    weight[3] = 0
    starts = []
    for _ in range(2):
        likelihood = Truncated("gamma", upper=1.5)
        likelihood.observe(y, weight)
        starts.append(likelihood.start(y, weight))
        y[3] = torch.nan
    assert_close(*starts)


def test_name_and_options_remake_it():
    likelihood = Truncated(Normal(dispersion="constant"), lower=-1.0)
    again = create("truncated", **likelihood.options)
    again.load_state_dict(likelihood.state_dict())
    raw, y = torch.randn(5, 1), torch.rand(5)
    assert torch.equal(again.double().loss(raw, y), copy.deepcopy(likelihood).double().loss(raw, y))
    assert again.options == likelihood.options
    assert again.link_name == "identity"


def test_wrong_use_is_named():
    with pytest.raises(UsageError, match="lower < upper, got 2 and 1"):
        Truncated("normal", lower=2, upper=1)
    with pytest.raises(UsageError, match="single numbers, got 'mse'"):
        Truncated("mse")
    with pytest.raises(DataError, match=r"in \(0.0, inf\], got -1.0 at y\[1\].*never recorded"):
        Truncated("normal", lower=0.0).check(torch.tensor([1.0, -1.0]))
