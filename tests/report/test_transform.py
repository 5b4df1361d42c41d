"""Transforms against scipy, and the likelihood that they have if the model is right."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from ansatz.likelihoods import (
    NormalDistribution,
    Poisson,
    VonMisesDistribution,
    ZeroOneInflatedBeta,
)
from ansatz.report.normal_scores import normal_scores
from ansatz.report.transform import Transform, transform, transform_censored


def normal(n, sd=1.0):
    return NormalDistribution(torch.zeros(n), torch.full((n,), sd))


def test_a_count_lies_between_the_cdf_below_it_and_at_it():
    mean = torch.tensor([0.5, 3.0, 40.0])
    y = torch.tensor([0.0, 5.0, 41.0])
    found = transform(Poisson().distribution(mean.log().unsqueeze(1)), y)
    likelihood = stats.poisson(mean.numpy())
    np.testing.assert_allclose(found.lower, likelihood.cdf(y.numpy() - 1), rtol=1e-9)
    np.testing.assert_allclose(found.upper, likelihood.cdf(y.numpy()), rtol=1e-9)
    np.testing.assert_allclose(found.above_upper, likelihood.sf(y.numpy()), rtol=1e-9)


def test_both_tails_keep_their_digits():
    y = torch.tensor([-12.0, 12.0])
    low, high = transform(normal(2), y).scores()
    np.testing.assert_allclose(low, y.numpy(), rtol=1e-9)
    np.testing.assert_allclose(high, y.numpy(), rtol=1e-9)


def test_probability_on_single_values_of_a_continuous_likelihood_is_an_interval():
    distribution = ZeroOneInflatedBeta().distribution(
        torch.zeros(3, ZeroOneInflatedBeta().outputs(None))
    )
    found = transform(distribution, torch.tensor([0.0, 0.5, 1.0]))
    width = found.upper - found.lower
    at_zero = float(distribution.log_prob(torch.zeros(3))[0].exp())
    assert found.lower[0] == 0 and width[0] == pytest.approx(at_zero)
    assert width[1] < 1e-9 and width[2] > 0.01 and found.upper[2] == pytest.approx(1.0)


def test_rounded_outcomes_take_the_interval_of_their_rounding():
    found = transform(normal(1), torch.tensor([1.0]), rounding=0.5)
    assert found.lower[0] == pytest.approx(stats.norm.cdf(0.75))
    assert found.upper[0] == pytest.approx(stats.norm.cdf(1.25))


def test_a_censored_row_lies_above_and_an_entry_conditions():
    lower = torch.tensor([0.3, 0.3, 1.0])
    upper = torch.tensor([math.inf, 0.3, 2.0])
    entry = torch.tensor([-math.inf, -0.5, 0.2])
    found = transform_censored(normal(3), lower, upper, entry)
    assert found.censored.tolist() == [True, False, True]
    assert found.lower[0] == pytest.approx(stats.norm.cdf(0.3)) and found.upper[0] == 1
    given = (stats.norm.cdf(0.3) - stats.norm.cdf(-0.5)) / stats.norm.sf(-0.5)
    assert found.upper[1] == pytest.approx(given)
    assert found.upper[2] == pytest.approx(1 - stats.norm.sf(2.0) / stats.norm.sf(0.2))


def test_draws_of_counts_and_censored_rows_are_uniform_under_the_right_likelihood():
    mean = torch.rand(4000) * 3
    distribution = Poisson().distribution(mean.log().unsqueeze(1))
    u, z = transform(distribution, distribution.sample()).draw(np.random.default_rng(0))
    assert stats.kstest(u, "uniform").pvalue > 0.01
    assert stats.kstest(z, "norm").pvalue > 0.01
    y, c = torch.randn(4000), torch.randn(4000)
    open_end = torch.where(y <= c, y, torch.tensor(math.inf))
    found = transform_censored(normal(4000), torch.minimum(y, c), open_end)
    u, _ = found.draw(np.random.default_rng(0))
    assert stats.kstest(u, "uniform").pvalue > 0.01


def test_directions_are_uniform_under_the_right_likelihood():
    distribution = VonMisesDistribution(torch.randn(2000), torch.randn(2000))
    u = transform(distribution, distribution.sample()).upper
    assert stats.kstest(u, "uniform").pvalue > 0.01


def test_location_and_spread_of_known_scores_are_mean_and_sd():
    y = 0.3 + 1.4 * torch.randn(500)
    found = normal_scores(transform(normal(500), y))
    assert found.location.value == pytest.approx(float(y.mean()))
    assert found.scale.value == pytest.approx(float(y.std(correction=0)))
    error = float(y.std(correction=0)) / math.sqrt(500)
    assert found.location.high - found.location.value == pytest.approx(1.96 * error, rel=1e-6)


def test_censored_scores_give_the_same_location_and_spread():
    y, c = 0.3 + 1.4 * torch.randn(6000), 1.0 + torch.randn(6000)
    open_end = torch.where(y <= c, y, torch.tensor(math.inf))
    found = normal_scores(transform_censored(normal(6000), torch.minimum(y, c), open_end))
    assert found.location.low < 0.3 < found.location.high
    assert found.scale.low < 1.4 < found.scale.high
    assert found.scale.high - found.scale.low < 0.15


def test_intervals_of_scores_hold_as_often_as_they_say():
    held = np.zeros(2)
    for seed in range(150):
        generator = torch.Generator().manual_seed(seed)
        mean = torch.rand(200, generator=generator) * 4 + 0.2
        distribution = Poisson().distribution(mean.log().unsqueeze(1))
        found = normal_scores(transform(distribution, torch.poisson(mean, generator=generator)))
        held += [not found.location.excludes_neutral, not found.scale.excludes_neutral]
    assert (np.abs(held / 150 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 150)).all()


def test_groups_widen_the_interval_of_rows_that_repeat_each_other():
    y = torch.randn(100).repeat_interleave(4)
    found = transform(normal(400), y)
    alone = normal_scores(found).location
    together = normal_scores(found, group=np.arange(400) // 4).location
    assert (together.high - together.low) == pytest.approx(2 * (alone.high - alone.low), rel=1e-6)


def test_weights_are_rows_repeated():
    y, times = torch.randn(60), np.arange(60) % 3 + 1.0
    repeated = torch.from_numpy(np.repeat(y.numpy(), times.astype(int)))
    weighted = normal_scores(transform(normal(60), y), weight=times)
    spelled = normal_scores(transform(normal(len(repeated)), repeated))
    assert weighted.scale.value == pytest.approx(spelled.scale.value)
    assert weighted.scale.low == pytest.approx(spelled.scale.low)


def test_rows_that_the_likelihood_cannot_place_are_marked():
    value = np.array([0.2, np.nan])
    found = Transform(value, value, 1 - value, 1 - value, np.zeros(2, dtype=bool))
    assert found.finite().tolist() == [True, False]


def test_outcomes_that_no_likelihood_could_give_have_finite_effects():
    y = torch.cat([torch.full((30,), 1e3), torch.full((30,), -1e3)])
    found = normal_scores(transform(normal(60), y))
    assert found.scale.value > 30 and math.isfinite(found.scale.high)
    exact = normal_scores(transform(normal(60), torch.zeros(60)))
    assert exact.scale.value < 1e-3 and math.isfinite(exact.scale.high)
