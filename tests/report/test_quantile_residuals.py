"""Residual tests: their size under the right likelihood, their effect sizes under wrong ones."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from ansatz import Regressor
from ansatz.figures.section import Table
from ansatz.likelihoods import NegativeBinomial, Normal, NormalDistribution, Poisson
from ansatz.linear import residuals
from ansatz.report import gather
from ansatz.report.effect import monte_carlo_p, ratio
from ansatz.report.quantile_residuals import quantile_lines, section
from ansatz.report.residual_panels import local_linear
from ansatz.report.residual_tests import (
    dispersion,
    holds,
    outliers,
    quantile_residuals,
    simulate,
    uniform_envelope,
    uniformity,
    zero_inflation,
)
from ansatz.report.transform import transform


def poisson(mean):
    return Poisson().distribution(mean.log().unsqueeze(1))


def test_residuals_of_a_continuous_likelihood_are_those_of_the_linear_model():
    likelihood, raw, y = Normal(), torch.randn(30, 2), torch.randn(30)
    likelihood.observe(y, torch.ones(30))
    found = quantile_residuals(transform(likelihood.distribution(raw), y))
    assert found.normal.shape == (1, 30)
    expected = residuals(likelihood, raw, y, "quantile").clamp(
        -37.0471, 37.0471
    )  # where doubles end
    np.testing.assert_allclose(found.normal[0], expected, rtol=1e-6)


def test_repeats_are_seeded_and_differ_from_each_other():
    found = transform(poisson(torch.full((20,), 2.0)), torch.poisson(torch.full((20,), 2.0)))
    first, second = quantile_residuals(found, seed=3), quantile_residuals(found, seed=3)
    np.testing.assert_array_equal(first.uniform, second.uniform)
    assert len(first.uniform) == 20 and (first.uniform[0] != first.uniform[1]).any()
    assert ((first.uniform >= found.lower) & (first.uniform <= found.upper)).all()


def test_tests_have_their_nominal_size_under_the_right_likelihood():
    rejected = np.zeros(4)
    rounds = 100
    for seed in range(rounds):
        torch.manual_seed(seed)
        mean = torch.rand(150) * 2 + 0.3
        likelihood, y = poisson(mean), torch.poisson(mean)
        found = quantile_residuals(transform(likelihood, y), repeats=1, seed=seed)
        p = [
            uniformity(found.uniform).p_value,
            dispersion(likelihood.mean, likelihood.variance, y, simulate(likelihood, seed)).p_value,
            zero_inflation((y == 0).numpy(), (-mean).exp().numpy(), seed=seed).p_value,
            quantile_lines(found.uniform[0], mean.numpy(), [0.5])[0].p_value,
        ]
        rejected += np.array(p) < 0.05
    assert (np.abs(rejected / rounds - 0.05) < 4 * math.sqrt(0.05 * 0.95 / rounds)).all()


def test_the_dispersion_ratio_is_near_the_truth():
    mean = torch.full((4000,), 3.0)
    size = 2.0
    y = torch.poisson(mean * torch.from_numpy(np.random.default_rng(0).gamma(size, 1 / size, 4000)))
    likelihood = poisson(mean)
    found = dispersion(likelihood.mean, likelihood.variance, y, simulate(likelihood))
    assert found.low < 1 + 3.0 / size < found.high  # the variance of NB2 is mu + mu^2 / size
    assert found.p_value < 0.02


def test_the_interval_of_the_dispersion_holds_as_often_as_it_says():
    truth, held = 1.5**2, 0
    for seed in range(200):
        y = 1.5 * torch.randn(150, generator=torch.Generator().manual_seed(seed))
        found = dispersion(torch.zeros(150), torch.ones(150), y)
        held += found.low <= truth <= found.high
    assert abs(held / 200 - 0.95) < 4 * math.sqrt(0.05 * 0.95 / 200)


def test_excess_zeros_are_found_with_their_ratio():
    mean = torch.full((3000,), 1.5)
    y = torch.poisson(mean) * (torch.rand(3000) > 0.2)
    p0 = math.exp(-1.5)
    found = zero_inflation((y == 0).numpy(), np.full(3000, p0))
    error = (found.high - found.low) / (2 * 1.96)
    assert abs(found.value - (0.2 + 0.8 * p0) / p0) < 4 * error < 0.2
    assert found.p_value < 0.01


def test_no_zero_at_all_has_the_upper_end_of_three_point_seven_rows():
    found = ratio("zeros", np.zeros(100), np.full(100, 0.1))
    assert found.value == 0 and found.high == pytest.approx(3.689 / 10, rel=1e-3)


def test_outliers_are_counted_against_the_exact_binomial():
    u = np.random.default_rng(0).random((1, 3000))
    u[0, :60] = 1e-9
    found = outliers(u)
    count = int(((u < 1 / 251) | (u > 250 / 251)).sum())
    exact = stats.binomtest(count, 3000, 2 / 251)
    assert found.value == pytest.approx(count / (3000 * 2 / 251))
    assert found.p_value == pytest.approx(exact.pvalue)
    assert found.low > 2


def test_uniformity_is_the_test_of_kolmogorov_and_smirnov():
    u = np.random.default_rng(0).beta(2, 2, 500)
    found = uniformity(u.reshape(1, -1))
    exact = stats.kstest(u, "uniform")
    assert found.value == pytest.approx(exact.statistic) and found.p_value == exact.pvalue
    truth = 0.0962  # sup |3u^2 - 2u^3 - u|
    assert found.low < truth < found.high


def test_quantile_lines_see_a_spread_that_follows_the_prediction():
    x = torch.linspace(0, 1, 3000)
    distribution = NormalDistribution(torch.zeros(3000), torch.ones(3000))
    u = transform(distribution, torch.randn(3000) * (0.5 + x)).upper
    low, middle, high = quantile_lines(u, x.numpy())
    assert middle.p_value > 0.01 and low.p_value < 1e-3 and high.p_value < 1e-3
    assert high.value[0] < 0.75 < high.value[-1]


def test_the_band_of_a_line_holds_all_its_parts_19_times_of_20():
    generator = np.random.default_rng(0)
    held = 0
    for _ in range(200):
        line = quantile_lines(generator.random(500), np.arange(500.0), [0.25])[0]
        held += bool(((line.value >= line.low) & (line.value <= line.high)).all())
    assert abs(held / 200 - 0.95) < 4 * math.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize("rows", [40, 2000])
def test_the_envelope_holds_all_ordered_uniform_numbers_19_times_of_20(rows):
    band = uniform_envelope(rows)
    generator = np.random.default_rng(1)
    held = np.mean([holds(np.sort(generator.random(rows)), band) for _ in range(400)])
    assert abs(held - 0.95) < 4 * math.sqrt(0.05 * 0.95 / 400) + 0.015  # and that of its own draws


def test_the_envelope_sees_a_heavy_tail_that_kolmogorov_and_smirnov_miss():
    u = np.random.default_rng(0).random(1000)
    u[:8] = 1e-6
    assert stats.kstest(u, "uniform").pvalue > 0.05
    assert not holds(np.sort(u), uniform_envelope(1000))


def test_a_p_value_counts_simulations_on_the_smaller_side():
    assert monte_carlo_p(np.arange(99), 97.5) == pytest.approx(2 * 2 / 100)
    assert monte_carlo_p(np.arange(99), 49.0) == 1.0


def test_the_smoother_is_a_weighted_line_at_each_place():
    x, y = np.sort(np.random.default_rng(0).random(60)), np.random.default_rng(1).random(60)
    found = local_linear(x, y, points=5)
    for t, value, factor in zip(*found, strict=True):
        d = np.abs(x - t)
        w = np.clip(1 - (d / (np.sort(d)[29] * (1 + 1e-9))) ** 3, 0, None) ** 3
        X = np.stack([np.ones(60), x - t], 1)
        hat = np.linalg.solve(X.T * w @ X, X.T * w)[0]
        assert value == pytest.approx(hat @ y) and factor == pytest.approx(np.linalg.norm(hat))


def test_the_section_of_a_poisson_fit_to_overdispersed_counts_says_so():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 1))
    y = rng.poisson(np.exp(0.3 * x[:, 0] + 1) * rng.gamma(2, 0.5, 2000)).astype(float)
    poisson_model = Regressor("poisson", network="linear").fit(x[:1000], y[:1000])
    found = section(gather(poisson_model, x[1000:], y[1000:]))
    assert "dispersion" in found.lead and "zeros" in found.lead
    model = Regressor("negative_binomial", network="linear").fit(x[:1000], y[:1000])
    assert isinstance(model.model_.likelihood.likelihood, NegativeBinomial)
    better = section(gather(model, x[1000:], y[1000:]))
    assert "dispersion" not in better.lead and "zeros" not in better.lead
    table = next(part for part in better.parts if isinstance(part, Table))
    assert any("zeros" in str(row[0]) for row in table.rows)
