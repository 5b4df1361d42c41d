"""The histogram of transforms against the formula, and its bands against simulation."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from ansatz.likelihoods import NormalDistribution, Poisson
from ansatz.report.pit import mean_pit, pit_histogram
from ansatz.report.transform import Transform, transform, transform_censored


def points(u):
    u = np.asarray(u, dtype=float)
    return Transform(u, u, 1 - u, 1 - u, np.zeros(len(u), dtype=bool))


def czado(u, y, mean):
    """Equation 2 of the paper, transcribed row by row."""
    total = 0.0
    for k, m in zip(y, mean, strict=True):
        below, at = stats.poisson.cdf(k - 1, m), stats.poisson.cdf(k, m)
        total += 0.0 if u <= below else 1.0 if u >= at else (u - below) / (at - below)
    return total / len(y)


def test_counts_follow_the_formula_of_czado_gneiting_and_held():
    mean, y = torch.rand(50) * 4 + 0.1, torch.randint(0, 6, (50,)).double()
    found = transform(Poisson().distribution(mean.log().unsqueeze(1)), y)
    grid = np.linspace(0, 1, 23)
    expected = [czado(u, y.numpy(), mean.numpy()) for u in grid]
    np.testing.assert_allclose(mean_pit(found, grid), expected, atol=1e-10)


def test_points_give_the_plain_histogram():
    u = np.random.default_rng(0).random(500)
    heights = pit_histogram(points(u), bins=8).heights
    np.testing.assert_allclose(heights, np.histogram(u, np.linspace(0, 1, 9))[0] * 8 / 500)


def test_weights_are_rows_repeated():
    u, times = np.random.default_rng(0).random(80), np.arange(80) % 3
    weighted = pit_histogram(points(u), bins=5, weight=times)
    spelled = pit_histogram(points(np.repeat(u, times)), bins=5)
    np.testing.assert_allclose(weighted.heights, spelled.heights)
    assert weighted.all_high == spelled.all_high


def test_the_simultaneous_band_holds_all_bars_of_uniform_samples_19_times_of_20():
    generator = np.random.default_rng(3)
    held = np.mean(
        [pit_histogram(points(generator.random(400)), bins=10).holds for _ in range(200)]
    )
    assert abs(held - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 200)


def test_the_band_of_one_bar_is_binomial():
    found = pit_histogram(points(np.random.default_rng(0).random(300)), bins=10)
    likelihood = stats.binom(300, 0.1)
    assert found.low == pytest.approx(likelihood.ppf(0.025) / 30)
    assert found.high == pytest.approx(likelihood.ppf(0.975) / 30)


def test_right_counts_are_flat_and_overdispersed_ones_are_a_u():
    mean = torch.full((4000,), 3.0)
    distribution = Poisson().distribution(mean.log().unsqueeze(1))
    assert pit_histogram(transform(distribution, torch.poisson(mean))).holds
    wild = torch.poisson(mean * torch.from_numpy(np.random.default_rng(0).gamma(1, 1, 4000)))
    heights = pit_histogram(transform(distribution, wild), bins=10).heights
    assert heights[0] > 2 and heights[-1] > 1.3 and heights[4:6].max() < 0.8


def test_censored_rows_enter_by_kaplan_meier():
    n = 6000
    distribution = NormalDistribution(torch.zeros(n), torch.ones(n))
    y, c = torch.randn(n), 0.3 + torch.randn(n)
    upper = torch.where(y <= c, y, torch.tensor(math.inf))
    found = transform_censored(distribution, torch.minimum(y, c), upper)
    np.testing.assert_allclose(mean_pit(found, [0.2, 0.5, 0.8]), [0.2, 0.5, 0.8], atol=0.03)
    naive = np.mean(found.lower <= 0.5)  # censored rows taken as events are biased
    assert naive > 0.6
