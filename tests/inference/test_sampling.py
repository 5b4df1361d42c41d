import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.errors import NumericalError, UsageError
from ansatz.inference import ess_mean, r_hat, sample
from ansatz.inference.diagnosis import energy_fraction
from ansatz.inference.samplers import with_gradient
from ansatz.inference.samplers.adaptation import (
    begin_moments,
    begin_step_size,
    covariance,
    update_moments,
    update_step_size,
    windows,
)
from ansatz.inference.sampling import mode_and_covariance

ZERO = torch.zeros(1, dtype=torch.float64)


def errors(draws, value, expected):
    """The distance of a mean from what it should be, in Monte-Carlo standard errors."""
    x = value(draws).numpy()
    return abs(x.mean() - expected) / (x.std() / float(ess_mean(x)) ** 0.5)


def beta_binomial(x):
    """7 of 10 with a uniform prior, in the logit: Beta(8, 4)."""
    return (8 * torch.nn.functional.logsigmoid(x) + 4 * torch.nn.functional.logsigmoid(-x)).sum(1)


def gamma_poisson(x):
    """Counts 3, 5, 4 with a Gamma(2, 1) prior, in the logarithm: Gamma(14, 4)."""
    return (14 * x - 4 * x.exp()).sum(1)


@pytest.mark.parametrize("method", ["nuts", "hmc", "mala", "mh"])
def test_conjugate_posteriors_are_found(method):
    draws = 2000 if method in ("mala", "mh") else 400
    found = sample(beta_binomial, ZERO, method, warmup=150, draws=draws)
    p = found.draws[..., 0].sigmoid()
    law = stats.beta(8, 4)
    assert errors(p, lambda x: x, law.mean()) < 3.5
    assert errors(p, lambda x: x**2, law.var() + law.mean() ** 2) < 3.5
    found = sample(gamma_poisson, ZERO, method, warmup=150, draws=draws, seed=1)
    rate = found.draws[..., 0].exp()
    assert errors(rate, lambda x: x, 14 / 4) < 3.5
    assert errors(rate, lambda x: x**2, 14 / 16 + (14 / 4) ** 2) < 3.5


def test_correlated_normal_laws_are_found_by_every_metric():
    draw = torch.Generator().manual_seed(0)
    root = torch.randn(4, 4, generator=draw, dtype=torch.float64)
    sigma = root @ root.mT + 0.3 * torch.eye(4)
    precision = torch.linalg.inv(sigma)

    def density(x):
        return -0.5 * ((x @ precision) * x).sum(1)

    for metric in ("auto", "diagonal", sigma.diagonal()):
        found = sample(density, torch.zeros(4), metric=metric, warmup=100, draws=150)
        for k in range(4):
            assert errors(found.draws, lambda x, k=k: x[..., k] ** 2, float(sigma[k, k])) < 4
        assert float(r_hat(found.draws.numpy()).max()) < 1.1


def test_the_same_seed_gives_the_same_draws_and_another_seed_others():
    def ask(seed):
        return sample(beta_binomial, ZERO, warmup=50, draws=20, seed=seed).draws

    assert_close(ask(3), ask(3), atol=0, rtol=0)
    assert not torch.equal(ask(3), ask(4))


def test_the_users_random_state_is_left_alone():
    before = torch.get_rng_state()
    sample(beta_binomial, ZERO, warmup=20, draws=10)
    sample(beta_binomial, ZERO, "hmc", warmup=20, draws=10)
    assert torch.equal(before, torch.get_rng_state())


def test_a_written_out_gradient_gives_the_same_law():
    def both(x):
        p = x.sigmoid()
        return beta_binomial(x), 8 - 12 * p

    found = sample(None, ZERO, gradient=both, warmup=100, draws=300)
    assert errors(found.draws[..., 0].sigmoid(), lambda x: x, stats.beta(8, 4).mean()) < 3.5


def test_two_far_modes_are_a_failure():
    def two(x):
        return torch.logsumexp(torch.stack([-0.5 * (x - m) ** 2 for m in (-20.0, 20.0)]), 0).sum(1)

    start = torch.tensor([[-20.0], [-20.0], [20.0], [20.0]], dtype=torch.float64)
    found = sample(two, start, warmup=100, draws=200)
    assert any("disagree" in each for each in found.problems)


def test_a_funnel_is_a_failure():
    def funnel(x):
        v, rest = x[:, 0], x[:, 1:]
        return -0.5 * (v / 3) ** 2 - 0.5 * (rest**2).sum(1) * (-v).exp() - 0.5 * 5 * v

    start = torch.zeros(6, dtype=torch.float64)
    found = sample(funnel, start, warmup=60, draws=100, max_depth=5)
    assert found.problems


def test_the_mode_and_its_hessian():
    density = with_gradient(gamma_poisson)
    shape = mode_and_covariance(density, ZERO, "auto")
    assert float(shape.mode) == pytest.approx(math.log(14 / 4), abs=1e-5)
    assert float(shape.covariance) == pytest.approx(1 / 14, rel=1e-4)
    flat = with_gradient(lambda x: 0.0 * x.sum(1))
    assert mode_and_covariance(flat, ZERO, "auto") is None


def test_dual_averaging_finds_the_step_size_of_an_acceptance():
    state = begin_step_size(1.0)
    for _ in range(2000):
        state = update_step_size(state, math.exp(-state.current), 0.8)
    assert state.settled == pytest.approx(-math.log(0.8), rel=0.02)


def test_moments_are_those_of_all_positions():
    x = np.random.default_rng(0).normal(size=(50, 3))
    state = begin_moments(3, dense=True)
    for each in x:
        state = update_moments(state, each)
    np.testing.assert_allclose(state.scatter, np.cov(x.T) * 49)
    shrunk = covariance(state, np.eye(3))
    np.testing.assert_allclose(shrunk, (np.cov(x.T) * 49 + 8 * np.eye(3)) / 58)


@pytest.mark.parametrize("warmup", [1, 19, 20, 100, 149, 150, 200, 1000, 1001, 5000])
def test_windows_grow_and_end_before_warm_up_does(warmup):
    ends = windows(warmup)
    assert ends == sorted(set(ends)) and all(0 < end <= warmup for end in ends)
    assert bool(ends) == (warmup >= 20)


def test_the_energy_of_independent_draws_moves_freely():
    energy = np.random.default_rng(0).normal(size=(2, 4000))
    np.testing.assert_allclose(energy_fraction(energy), 2, rtol=0.1)
    assert (energy_fraction(energy.cumsum(1)) < 0.1).all()


def test_the_summary_names_what_it_describes():
    found = sample(gamma_poisson, ZERO, warmup=100, draws=200)
    table = found.summary(["log rate"])
    assert list(table.index) == ["log rate"]
    assert table["mean"].iloc[0] == pytest.approx(float(found.draws.mean()))
    assert table["5%"].iloc[0] < table["mean"].iloc[0] < table["95%"].iloc[0]


def test_thinning_takes_every_other_draw():
    every = sample(gamma_poisson, ZERO, warmup=50, draws=40)
    other = sample(gamma_poisson, ZERO, warmup=50, draws=20, thin=2)
    assert_close(other.draws, every.draws[:, 1::2], atol=0, rtol=0)


def test_bad_arguments_are_named():
    with pytest.raises(NumericalError, match="log density is nan where chain 2 begins"):
        sample(lambda x: x.log().sum(1), torch.tensor([[1.0], [-1.0]]).double(), metric="diagonal")
    with pytest.raises(UsageError, match="method must be one of nuts, hmc, mala, mh, got 'gibbs'"):
        sample(gamma_poisson, ZERO, "gibbs")
    with pytest.raises(UsageError, match="warmup must be a whole number of 1 or more, got 0"):
        sample(gamma_poisson, ZERO, warmup=0)
    with pytest.raises(UsageError, match="metric must be auto"):
        sample(gamma_poisson, ZERO, metric="sparse")
    with pytest.raises(UsageError, match="needs a log density"):
        sample(None, ZERO)
