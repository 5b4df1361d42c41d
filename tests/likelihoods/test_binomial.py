import mpmath
import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.likelihoods import (
    Bernoulli,
    BetaBinomial,
    BetaBinomialDistribution,
    Binomial,
    BinomialDistribution,
    Distribution,
)
from ansatz.likelihoods.beta_binomial import fit_beta_binomial


def pairs(n=60, dispersion=None):
    trials = torch.randint(1, 30, (n,)).double()
    p = torch.full((n,), 0.3)
    if dispersion:
        p = torch.as_tensor(stats.beta(0.3 / dispersion, 0.7 / dispersion).rvs(n, random_state=0))
    return torch.stack([torch.binomial(trials, p), trials], -1)


def test_the_loss_uses_each_rows_own_trials():
    raw, y = torch.randn(60, 1), pairs()
    exact = stats.binom(y[:, 1], raw[:, 0].sigmoid()).logpmf(y[:, 0])
    assert_close(Binomial().loss(raw, y), -torch.as_tensor(exact))
    likelihood, successes = Binomial().given(raw, y)
    assert_close(successes, y[:, 0])
    assert_close(likelihood.trials, y[:, 1])
    assert_close(Binomial().point(raw), raw[:, 0].sigmoid())


def test_one_trial_is_bernoulli():
    raw, k = torch.randn(20, 1), (torch.rand(20) < 0.5).double()
    y = torch.stack([k, torch.ones(20)], -1)
    assert_close(Binomial().loss(raw, y), Bernoulli().loss(raw, k))
    assert_close(BetaBinomial(dispersion=0.7).loss(raw, y), Bernoulli().loss(raw, k))
    assert_close(Binomial().distribution(raw).mean, Bernoulli().distribution(raw).mean)


@pytest.mark.parametrize("n, k", [(1e9, 3e8), (1e9, 1.0), (1e6, 1e6 - 2), (12.0, 12.0)])
def test_any_number_of_trials_keeps_its_digits(n, k):
    logit = torch.tensor(k / n).clamp(1e-9, 1 - 1e-6).logit() + 1e-4
    with mpmath.workdps(50):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(logit.item())))
        exact = mpmath.log(mpmath.binomial(mpmath.mpf(n), mpmath.mpf(k)))
        exact += k * mpmath.log(p) + (n - k) * mpmath.log1p(-p)
    found = BinomialDistribution(logit, torch.tensor(n)).log_prob(torch.tensor(k))
    assert found.item() == pytest.approx(float(exact), rel=1e-9, abs=1e-9)


def test_far_tails_have_logarithms():
    distribution = BinomialDistribution(torch.zeros(2), torch.full((2,), 2000.0))
    found = distribution.log_cdf(torch.tensor([0.0, 1.0]))
    exact = 2000 * torch.tensor(0.5).log() + torch.tensor([1.0, 2001.0]).log()
    assert_close(found, exact, rtol=1e-12, atol=0)
    assert_close(
        distribution.log_survival(torch.tensor([1999.0, 1998.0])), exact, rtol=1e-12, atol=0
    )


def test_quantiles_are_scipys_for_rows_of_any_size():
    n, logits, q = torch.randint(1, 5000, (200,)).double(), torch.randn(200) * 3, torch.rand(200)
    exact = stats.binom(n.numpy(), logits.sigmoid().numpy()).ppf(q.numpy())
    distribution = BinomialDistribution(logits, n)
    assert_close(distribution.icdf(q), torch.as_tensor(exact))
    assert_close(distribution.icdf(torch.ones(200)), n)


def test_the_constant_model_is_the_pooled_share():
    y, weight = pairs(), torch.randint(0, 3, (60,)).double()
    shift, _ = Binomial().start(y, weight)
    share = (weight * y[:, 0]).sum() / (weight * y[:, 1]).sum()
    assert_close(shift.sigmoid(), share.reshape(1))


def test_no_success_at_all_starts_with_half_a_one():
    y = torch.tensor([[0.0, 5.0], [0.0, 4.0]])
    assert_close(Binomial().start(y, torch.ones(2))[0].sigmoid(), torch.tensor([0.05]))


def test_deviance_and_pearson_residuals_are_those_of_statsmodels():
    api = pytest.importorskip("statsmodels.api")
    raw, y = torch.randn(60, 1), pairs()
    k, n = y.unbind(-1)
    family = api.families.Binomial()
    family.n = n.numpy()
    mu = raw[:, 0].sigmoid().numpy()
    share = (k / n).numpy()
    deviance = family.resid_dev(share, mu, var_weights=1) ** 2
    assert_close(Binomial().unit_deviance(raw, y), torch.as_tensor(deviance))
    pearson = (share - mu) / np.sqrt(mu * (1 - mu) / n.numpy())
    assert_close(Binomial().pearson(raw, y), torch.as_tensor(pearson))


@pytest.mark.parametrize(
    "likelihood", [Binomial(), BetaBinomial()], ids=lambda likelihood: likelihood.name
)
def test_what_is_no_pair_is_refused_by_name(likelihood):
    likelihood.check(torch.tensor([[0.0, 1.0], [3.0, 3.0]]))
    for bad, message in (
        (torch.zeros(3), r"pairs \(successes, trials\).*got \(3,\).*bernoulli"),
        (torch.tensor([[0.5, 1.0]]), r"whole numbers >= 0, got 0.5 at y\[0, 0\]"),
        (torch.tensor([[0.0, 2.0], [0.0, 0.0]]), r"at least 1, got 0.0 at y\[1, 1\]"),
        (torch.tensor([[1.0, 2.0], [3.0, 2.0]]), r"at most the trials, got 3.0 at y\[1, 0\]"),
        (torch.tensor([[torch.nan, 2.0]]), r"whole numbers >= 0, got nan"),
    ):
        with pytest.raises(DataError, match=message):
            likelihood.check(bad)
    with pytest.raises(ValueError, match=r"goes with y \(5, 2\), got y \(5,\)"):
        likelihood.loss(torch.zeros(5, 2), torch.zeros(5))


def test_a_vanishing_dispersion_is_binomial():
    logits, n = torch.randn(30), torch.randint(1, 50, (30,)).double()
    y = (n * torch.rand(30)).floor()
    narrow = BetaBinomialDistribution(logits, torch.tensor(1e-12), n)
    for method in ("log_prob", "log_cdf", "log_survival", "crps"):
        exact = getattr(BinomialDistribution(logits, n), method)(y)
        assert_close(getattr(narrow, method)(y), exact, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("phi, n", [(1e6, 1e6), (1e-3, 50.0), (3.0, 1e8), (1e8, 7.0)])
def test_any_precision_keeps_its_digits(phi, n):
    logit, k = torch.tensor(-0.7), round(0.4 * n)
    with mpmath.workdps(50):
        mu = 1 / (1 + mpmath.exp(mpmath.mpf(0.7)))
        a, b, N = mu / mpmath.mpf(1 / phi), (1 - mu) / mpmath.mpf(1 / phi), mpmath.mpf(n)

        def log_beta(x, y):
            return mpmath.loggamma(x) + mpmath.loggamma(y) - mpmath.loggamma(x + y)

        exact = log_beta(k + a, N - k + b) - log_beta(a, b) - log_beta(k + 1, N - k + 1)
        exact -= mpmath.log(N + 1)
    distribution = BetaBinomialDistribution(logit, torch.tensor(1 / phi), torch.tensor(n))
    assert distribution.log_prob(torch.tensor(float(k))).item() == pytest.approx(
        float(exact), rel=1e-8
    )


def test_sums_in_blocks_are_sums(monkeypatch):
    import ansatz.likelihoods.beta_binomial as module

    distribution = BetaBinomialDistribution(
        torch.randn(4), torch.rand(4), torch.tensor([5.0, 9, 40, 200])
    )
    y, q = torch.tensor([2.0, 8.0, 20.0, 199.0]), torch.rand(4)
    whole = [
        distribution.log_cdf(y),
        distribution.log_survival(y),
        distribution.crps(y),
        distribution.icdf(q),
    ]
    monkeypatch.setattr(module, "_BLOCK", 4 * 7)
    assert_close(
        [
            distribution.log_cdf(y),
            distribution.log_survival(y),
            distribution.crps(y),
            distribution.icdf(q),
        ],
        whole,
    )
    assert_close(distribution.crps(y), Distribution.crps(distribution, y))
    exact = stats.betabinom(distribution.trials.numpy(), *(v.numpy() for v in distribution.shapes))
    assert_close(
        distribution.log_survival(y), torch.as_tensor(exact.logsf(y.numpy())), rtol=1e-8, atol=0
    )


def test_the_beta_binomial_start_is_a_maximum():
    y, weight = pairs(300, dispersion=0.3), torch.randint(1, 3, (300,)).double()
    likelihood = BetaBinomial()
    likelihood.observe(y, weight)
    shift, _ = likelihood.start(y, weight)
    shift = shift.requires_grad_()
    total = (weight * likelihood.loss(shift.expand(300, 2), y)).sum() / weight.sum()
    (slope,) = torch.autograd.grad(total, shift)
    assert_close(slope, torch.zeros(2), atol=1e-9, rtol=0)
    found = likelihood.distribution(shift.detach().reshape(1, 2))
    assert 0.15 < found.dispersion.item() < 0.6  # about 0.3, from 300 rows


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dispersion", [1e-3, 0.05, 2.0, 100.0])
def test_newtons_fit_converges_from_narrow_to_wide(dispersion, seed):
    generator = torch.Generator().manual_seed(seed)
    logit = torch.randn((), generator=generator) * 2
    n = torch.randint(2, 40, (80,), generator=generator).double()
    k = BetaBinomialDistribution(logit, torch.tensor(dispersion), n).sample((), generator)
    start = fit_beta_binomial(torch.stack([k, n], -1), torch.ones(80))
    if start[1] > 0:
        eta, log_dispersion = start[0].requires_grad_(), start[1].log().requires_grad_()
        value = BetaBinomialDistribution(eta, log_dispersion.exp(), n).log_prob(k).mean()
        for slope in torch.autograd.grad(value, (eta, log_dispersion)):
            assert abs(slope.item()) < 1e-9
    else:  # less variable than binomial: no dispersion is better than 1e-6
        likelihood = [
            BetaBinomialDistribution(start[0], torch.tensor(d), n).log_prob(k).sum()
            for d in (1e-6, 1e-4)
        ]
        assert likelihood[0] > likelihood[1]
