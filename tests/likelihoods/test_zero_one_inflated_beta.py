import math

import pytest
import torch
from scipy import integrate, stats
from torch.testing import assert_close

from ansatz.likelihoods import (
    BetaDistribution,
    Distribution,
    ZeroOneInflatedBeta,
    ZeroOneInflatedBetaDistribution,
)
from ansatz.likelihoods.beta import fit_beta


def likelihood(n=6):
    inner = BetaDistribution(torch.randn(n), torch.rand(n) + 0.05)
    return ZeroOneInflatedBetaDistribution(inner, torch.randn(n, 2))


def draw(distribution, *shape):
    return distribution.sample(shape, torch.Generator().manual_seed(0))


def test_the_parts_and_the_inside_make_the_likelihood():
    d = likelihood(1)
    zero, one, rest = (p.item() for p in d.parts)
    frozen = stats.beta(*(v.item() for v in d.inner.shapes))
    assert zero + one + rest == pytest.approx(1)
    y = torch.tensor([0.0, 1.0, 0.3, -0.1, 1.1])
    exact = [math.log(zero), math.log(one), math.log(rest) + frozen.logpdf(0.3)]
    assert_close(d.log_prob(y), torch.tensor([*exact, -math.inf, -math.inf]))
    assert_close(d.cdf(y), torch.tensor([zero, 1.0, zero + rest * frozen.cdf(0.3), 0.0, 1.0]))
    survival = [1 - zero, 0.0, one + rest * frozen.sf(0.3), 1.0, 0.0]
    assert_close(d.log_survival(y), torch.tensor(survival).log())
    assert_close(d.cdf(y) + d.log_survival(y).exp(), torch.ones(5))


def test_moments_and_entropy_are_those_of_the_mixture():
    d = likelihood(1)
    zero, one, rest = (p.item() for p in d.parts)
    frozen = stats.beta(*(v.item() for v in d.inner.shapes))
    mean = one + rest * frozen.mean()
    second = one + rest * (frozen.var() + frozen.mean() ** 2)
    assert d.mean.item() == pytest.approx(mean)
    assert d.variance.item() == pytest.approx(second - mean**2)
    entropy = -sum(p * math.log(p) for p in (zero, one, rest)) + rest * frozen.entropy()
    assert d.entropy.item() == pytest.approx(entropy)


def test_samples_follow_the_cdf():
    """Dvoretzky-Kiefer-Wolfowitz: P(sup |F_n - F| > e) <= 2 exp(-2 n e^2) = 1e-9."""
    d, n = likelihood(1), 20_000
    y = draw(d, n).flatten()
    assert ((y == 0).any(), (y == 1).any()) == (True, True)
    at = torch.linspace(0, 1, 101)
    empirical = (y.unsqueeze(0) <= at.unsqueeze(1)).double().mean(1)
    assert (empirical - d.cdf(at)).abs().max() < math.sqrt(math.log(2e9) / (2 * n))


def test_the_score_has_mean_zero():
    raw = torch.randn(1, 4).repeat(50_000, 1).requires_grad_()
    likelihood = ZeroOneInflatedBeta()
    y = draw(likelihood.distribution(raw.detach()))
    (score,) = torch.autograd.grad(likelihood.loss(raw, y).sum(), raw)
    assert (score.mean(0).abs() < 5 * score.std(0) / len(score) ** 0.5).all()


def test_icdf_is_the_smallest_value_that_reaches_q():
    d = likelihood(6)
    q = torch.linspace(1e-6, 1 - 1e-6, 200).unsqueeze(1).expand(200, 6)
    y = d.icdf(q)
    assert ((y >= 0) & (y <= 1)).all()
    assert (d.cdf(y) >= q - 1e-12).all()
    inside = (y > 0) & (y < 1)
    slack = d.cdf(torch.nextafter(y, torch.ones(()))) - d.cdf(torch.nextafter(y, torch.zeros(())))
    assert ((d.cdf(y) - q).abs() <= 1e-9 + slack)[inside].all()
    assert (d.cdf(torch.zeros(6)) >= q)[y == 0].reshape(-1).all()
    ends = d.icdf(torch.tensor([[0.0], [1.0], [2.0]]).expand(3, 6))[:, 0]
    assert_close(ends, torch.tensor([0.0, 1.0, math.nan]), equal_nan=True)


def test_gradients_of_tails_quantiles_and_crps_in_every_raw_number():
    likelihood = ZeroOneInflatedBeta()
    raw, y = torch.randn(5, 4).requires_grad_(), torch.tensor([0.0, 1.0, 0.2, 0.7, 0.99])
    assert torch.autograd.gradcheck(lambda raw: likelihood.loss(raw, y), raw)
    assert torch.autograd.gradgradcheck(lambda raw: likelihood.loss(raw, y), raw)
    for method in ("log_cdf", "log_survival", "crps"):

        def function(raw, method=method):
            value = getattr(likelihood.distribution(raw), method)(y)
            return value[value.isfinite()]

        assert torch.autograd.gradcheck(function, raw, eps=1e-5, atol=1e-6)
    q = torch.tensor([0.3, 0.45, 0.5, 0.55, 0.6])
    assert torch.autograd.gradcheck(
        lambda raw: likelihood.distribution(raw).icdf(q), raw, eps=1e-5, atol=1e-5
    )


def test_crps_is_the_integral_of_the_squared_gap():
    d = likelihood(1)
    for value in (0.0, 0.2, 0.9, 1.0):

        def gap(x, value=value):
            return (d.cdf(torch.tensor([x])).item() - (x >= value)) ** 2

        exact = integrate.quad(gap, 0, 1, points=[value], limit=200)[0]
        assert d.crps(torch.tensor([value])).item() == pytest.approx(exact, abs=1e-6)


def test_log_interval_counts_the_atoms():
    d = likelihood(6)
    zero, one, rest = d.parts
    low, high = torch.full((6,), -0.5), torch.full((6,), 1.0)
    assert_close(d.log_interval(low, high), torch.zeros(6), atol=1e-12, rtol=0)
    assert_close(d.log_interval(torch.zeros(6), high).exp(), one + rest)
    assert_close(d.log_interval(low, torch.zeros(6)).exp(), zero)


def test_the_start_is_the_shares_and_the_inner_fit():
    y = torch.cat([torch.zeros(5), torch.ones(3), torch.rand(12)])
    likelihood = ZeroOneInflatedBeta()
    likelihood.observe(y, torch.ones(20))
    shift, _ = likelihood.start(y, torch.ones(20))
    d = likelihood.distribution(shift.reshape(1, 4))
    assert_close(torch.cat(d.parts), torch.tensor([0.25, 0.15, 0.6]))
    assert_close((d.inner.logits[0], d.inner.dispersion[0]), fit_beta(y[8:], torch.ones(12)))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_outcomes_at_one_end_alone_do_not_break_it(value):
    y = torch.full((4,), value)
    likelihood = ZeroOneInflatedBeta()
    likelihood.check(y)
    likelihood.observe(y, torch.ones(4))
    shift, scale = likelihood.start(y, torch.ones(4))
    assert shift.isfinite().all() and (scale > 0).all()
    assert abs(likelihood.point(shift.reshape(1, 4)).item() - value) < 0.2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_raw_numbers_and_outcomes_give_finite_losses_and_gradients(dtype):
    likelihood = ZeroOneInflatedBeta().to(dtype)
    extremes = torch.tensor([0.0, 50.0, -50.0, 1e4, -1e4], dtype=dtype)
    raw = torch.cartesian_prod(extremes, extremes, extremes, extremes)
    for value in (0.0, 1e-38, 0.5, 1 - 2**-24, 1.0):
        leaf = raw.clone().requires_grad_()
        terms = likelihood.loss(leaf, torch.full((len(raw),), value, dtype=dtype))
        (slope,) = torch.autograd.grad(terms.sum(), leaf)
        assert terms.dtype == dtype
        assert terms.isfinite().all() and slope.isfinite().all()


def test_float32_stays_float32():
    d = ZeroOneInflatedBeta().float().distribution(torch.randn(3, 4).float())
    y = torch.tensor([0.0, 0.5, 1.0]).float()
    for method in ("log_prob", "cdf", "log_cdf", "log_survival", "crps", "icdf"):
        assert getattr(d, method)(y).dtype == torch.float32
    assert {v.dtype for v in (d.mean, d.variance, d.mode, d.sample())} == {torch.float32}


def test_without_jumps_the_crps_is_the_beta_likelihoods():
    inner = BetaDistribution(torch.randn(4), torch.rand(4))
    d = ZeroOneInflatedBetaDistribution(inner, torch.full((4, 2), -200.0))
    y = torch.rand(4)
    assert_close(d.crps(y), inner.crps(y))
    assert_close(d.crps(y), Distribution.crps(inner, y), rtol=1e-6, atol=1e-9)
