"""Each sampler keeps the law it is said to keep; wrong formulas are seen to break it."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ansatz.inference import ess_mean
from ansatz.inference.samplers import (
    Metric,
    batched,
    hmc,
    langevin,
    mala,
    metropolis,
    nuts,
    sghmc,
    sgld,
    with_gradient,
)

COVARIANCE = torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=torch.float64)
PRECISION = torch.linalg.inv(COVARIANCE)


def log_normal(x):
    return -0.5 * ((x @ PRECISION) * x).sum(1)


DENSITY = with_gradient(log_normal)
EXACT = {
    "metropolis": (metropolis, log_normal, metropolis.Settings(torch.tensor(1.7), torch.ones(2))),
    "mala": (mala, DENSITY, mala.Settings(torch.tensor(1.2), Metric.of(torch.ones(2)))),
    "hmc": (hmc, DENSITY, hmc.Settings(torch.tensor(0.4), Metric.of(torch.ones(2)))),
    "hmc, dense": (hmc, DENSITY, hmc.Settings(torch.tensor(0.5), Metric.of(COVARIANCE))),
    "nuts": (nuts, DENSITY, nuts.Settings(torch.tensor(0.5), Metric.of(torch.ones(2)))),
    "nuts, dense": (nuts, DENSITY, nuts.Settings(torch.tensor(0.8), Metric.of(COVARIANCE))),
}


def run(module, density, settings, *, chains=200, steps=120, burn=20, seed=0):
    draw = torch.Generator().manual_seed(seed)
    state = module.start(torch.zeros(chains, 2, dtype=torch.float64), density)
    kept = []
    for number in range(steps):
        state, _ = module.step(state, density, settings, draw)
        if number >= burn:
            kept.append(state.position)
    return torch.stack(kept, 1)  # (C, N, D)


def standardised(draws, value, expected):
    """The distance of a mean from what it should be, in Monte-Carlo standard errors.

    Chains are independent of each other: the error is that of the means of the chains.
    """
    means = value(draws).mean(1)
    return float((means.mean() - expected).abs() / (means.std() / len(means) ** 0.5))


@pytest.mark.parametrize("name", EXACT)
def test_exact_samplers_have_the_moments_of_their_law(name):
    module, density, settings = EXACT[name]
    many = dict(chains=60, steps=60) if module is nuts else {}
    draws = run(module, density, settings, **many)
    for coordinate in (0, 1):
        assert standardised(draws, lambda x, k=coordinate: x[..., k], 0.0) < 3.5
        variance = COVARIANCE[coordinate, coordinate]
        assert standardised(draws, lambda x, k=coordinate: x[..., k] ** 2, variance) < 3.5
    assert standardised(draws, lambda x: x[..., 0] * x[..., 1], 0.6) < 3.5


def test_the_ratio_upside_down_would_sample_another_law():
    upside_down = metropolis.Settings(torch.tensor(1.7), torch.ones(2))
    draws = run(metropolis, lambda x: -log_normal(x), upside_down)
    assert standardised(draws, lambda x: x[..., 0] ** 2, 1.0) > 10


@pytest.mark.parametrize("h", [0.1, 0.5])
def test_langevin_has_the_variance_of_its_step_size(h):
    normal = with_gradient(lambda x: -0.5 * (x**2).sum(1))
    draws = run(langevin, normal, langevin.Settings(torch.tensor(h)), steps=400, burn=150)
    assert standardised(draws, lambda x: x**2, 1 / (1 - h / 4)) < 4


def minibatch(scaled):
    """Estimates the posterior of a mean by 5 of 50 rows: y ~ N(mu, 1), mu ~ N(0, 1)."""
    draw = torch.Generator().manual_seed(3)
    y = torch.randn(50, generator=draw, dtype=torch.float64) + 1

    def density(position):
        rows = torch.stack([torch.randperm(50, generator=draw)[:5] for _ in position])
        residual = y[rows].unsqueeze(-1) - position.unsqueeze(1)  # (C, 5, D)
        weight = 50 / 5 if scaled else 1.0
        value = -0.5 * (position**2).sum(1) - 0.5 * weight * (residual**2).sum((1, 2))
        return value, -position + weight * residual.sum(1)

    return density, float(y.sum() / 51)


@pytest.mark.parametrize("name", ["sgld", "sghmc"])
def test_minibatch_samplers_find_the_mean_of_the_posterior(name):
    density, expected = minibatch(scaled=True)
    settings = {
        "sgld": (sgld, sgld.Settings(torch.tensor(2e-3))),
        "sghmc": (sghmc, sghmc.Settings(torch.tensor(0.02), torch.tensor(10.0))),
    }
    module, how = settings[name]
    draws = run(module, density, how, chains=40, steps=300, burn=100)
    assert standardised(draws, lambda x: x, expected) < 4
    wrong, _ = minibatch(scaled=False)
    draws = run(module, wrong, how, chains=40, steps=300, burn=100)
    assert standardised(draws, lambda x: x, expected) > 6  # the prior counts ten times


def test_sghmc_keeps_the_variance_of_a_normal_law():
    """With eta = 0.1 and gamma = 1 the semi-implicit scheme is off by less than 2 %."""
    normal = with_gradient(lambda x: -0.5 * (x**2).sum(1))
    settings = sghmc.Settings(torch.tensor(0.1), torch.tensor(1.0))
    draws = run(sghmc, normal, settings, chains=400, steps=500, burn=150)
    assert float((draws**2).mean()) == pytest.approx(1.0, abs=0.03)


def test_leapfrog_is_reversible_and_of_second_order():
    metric = Metric.of(COVARIANCE)
    start = hmc.start(torch.tensor([[1.0, -0.5]], dtype=torch.float64), DENSITY)
    momentum = torch.tensor([[0.3, 0.9]], dtype=torch.float64)

    def go(state, v, size, steps):
        return hmc.leapfrog(state, v, DENSITY, torch.tensor([[size]]), metric, steps)

    there, v = go(start, momentum, 0.1, 20)
    back, w = go(there, -v, 0.1, 20)
    assert_close(back.position, start.position, atol=1e-12, rtol=0)
    assert_close(-w, momentum, atol=1e-12, rtol=0)

    def energy(state, v):
        return float(metric.kinetic(v) - state.log_density)

    began = energy(start, momentum)
    errors = [energy(*go(start, momentum, h, round(1 / h))) - began for h in (0.02, 0.01)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.02)


def test_a_velocity_without_the_mass_gains_energy():
    metric = Metric.of(COVARIANCE)
    state = hmc.start(torch.tensor([[1.0, -0.5]], dtype=torch.float64), DENSITY)
    momentum, size = torch.tensor([[0.3, 0.9]], dtype=torch.float64), torch.tensor([[0.1]])
    end, v = hmc.leapfrog(state, momentum, DENSITY, size, Metric.of(torch.ones(2)), 10)
    began = metric.kinetic(momentum) - state.log_density
    assert float((metric.kinetic(v) - end.log_density - began).abs()) > 0.1


def test_mala_is_hmc_of_one_step():
    metric = Metric.of(COVARIANCE)
    draw = torch.Generator().manual_seed(5)
    state = mala.start(torch.ones(3, 2, dtype=torch.float64), DENSITY)
    moved, info = mala.step(state, DENSITY, mala.Settings(torch.tensor(0.9), metric), draw)
    draw = torch.Generator().manual_seed(5)
    v = metric.draw(state.position, draw)
    end, w = hmc.leapfrog(state, v, DENSITY, torch.tensor([[0.9]]), metric, 1)
    ratio = end.log_density - state.log_density + metric.kinetic(v) - metric.kinetic(w)
    assert_close(info.acceptance, ratio.clamp(max=0).exp())
    assert_close(moved.position[info.accepted], end.position[info.accepted])


def test_momenta_have_the_covariance_of_the_mass():
    metric = Metric.of(COVARIANCE)
    draws = metric.draw(torch.zeros(200_000, 2), torch.Generator().manual_seed(0)).double()
    assert_close(draws.mT @ draws / len(draws), PRECISION, atol=0.02, rtol=0)


def test_the_gradient_of_the_sum_is_each_chains_own():
    x = torch.randn(4, 2, dtype=torch.float64)
    value, gradient = DENSITY(x)
    assert_close(gradient, -x @ PRECISION)
    alone = batched(lambda v: -0.5 * v @ PRECISION @ v)
    assert_close(alone(x), value)


def test_a_density_that_is_not_finite_is_never_entered():
    def half(x):
        return torch.where((x > 0).all(1), -x.sum(1), -torch.inf)

    draw = torch.Generator().manual_seed(0)
    density = with_gradient(half)
    for module, settings in (
        (metropolis, metropolis.Settings(torch.tensor(1.0), torch.ones(2))),
        (nuts, nuts.Settings(torch.tensor(0.7), Metric.of(torch.ones(2)))),
    ):
        own = half if module is metropolis else density
        state = module.start(torch.ones(8, 2, dtype=torch.float64), own)
        for _ in range(30):
            state, _ = module.step(state, own, settings, draw)
            assert (state.position > 0).all()


def test_the_effective_draws_of_independent_steps_are_their_number():
    metric = hmc.Settings(torch.tensor(0.2), Metric.of(COVARIANCE))
    draws = run(hmc, DENSITY, metric, chains=4, steps=250, burn=50)
    assert ess_mean(draws.numpy()).min() > 150
    assert np.isfinite(draws.numpy()).all()
