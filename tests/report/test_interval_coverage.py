"""Coverage of intervals of the right likelihood and of wrong ones, with Wilson's intervals."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from ansatz import Regressor
from ansatz.figures.section import Figure, Table
from ansatz.likelihoods import NormalDistribution, Poisson, VonMisesDistribution
from ansatz.report import gather
from ansatz.report.effect import clopper_pearson, wilson
from ansatz.report.interval_coverage import (
    by_group,
    by_width,
    censored_coverage,
    covered,
    intervals,
    section,
)
from ansatz.report.transform import transform_censored


@pytest.mark.parametrize("count, total", [(0, 10), (3, 10), (90, 100), (100, 100)])
def test_wilson_and_clopper_pearson_are_scipys(count, total):
    found = stats.binomtest(count, total)
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "exact")):
        theirs = found.proportion_ci(0.95, method=method)
        np.testing.assert_allclose(ours(count, total)[1:], (theirs.low, theirs.high), atol=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
def test_intervals_of_the_right_likelihood_hold_their_level(level):
    sd = torch.rand(4000) + 0.5
    distribution = NormalDistribution(torch.zeros(4000), sd)
    found = covered(intervals(distribution, distribution.sample(), level))
    assert abs(found.observed - level) < 4 * math.sqrt(level * (1 - level) / 4000)
    assert found.nominal == pytest.approx(level)
    assert found.width == pytest.approx(float(2 * stats.norm.ppf((1 + level) / 2) * sd.mean()))


def test_counts_promise_what_their_whole_numbers_hold():
    mean = torch.tensor([0.3, 1.0, 7.0])
    distribution = Poisson().distribution(mean.log().unsqueeze(1))
    found = intervals(distribution, torch.zeros(3), 0.9)
    low, high = stats.poisson(mean.numpy()).interval(0.9)
    expected = stats.poisson.cdf(high, mean) - stats.poisson.cdf(low - 1, mean)
    np.testing.assert_allclose(found.nominal, expected, rtol=1e-9)
    y = torch.arange(20.0).unsqueeze(1).expand(20, 3)
    inside = [intervals(distribution, row, 0.9).inside for row in y]
    np.testing.assert_array_equal(inside, (y.numpy() >= low) & (y.numpy() <= high))


def test_right_counts_are_not_called_over_covering():
    mean = torch.rand(6000) * 2 + 0.2
    distribution = Poisson().distribution(mean.log().unsqueeze(1))
    found = covered(intervals(distribution, torch.poisson(mean), 0.8))
    assert found.nominal > 0.85 and found.observed > 0.85  # above the level, and rightly so
    assert found.holds


def test_arcs_over_the_cut_hold_directions():
    distribution = VonMisesDistribution(torch.full((3000,), -2.0), torch.zeros(3000))  # around pi
    found = covered(intervals(distribution, distribution.sample(), 0.8))
    assert abs(found.observed - 0.8) < 4 * math.sqrt(0.16 / 3000)


def test_a_likelihood_that_is_too_narrow_covers_what_theory_says():
    distribution = NormalDistribution(torch.zeros(5000), torch.full((5000,), 0.7))
    found = covered(intervals(distribution, torch.randn(5000), 0.9))
    truth = 2 * stats.norm.cdf(0.7 * stats.norm.ppf(0.95)) - 1
    assert found.low < truth < found.high and not found.holds


def test_bins_by_width_find_where_a_likelihood_is_too_sure():
    sd = torch.linspace(0.5, 2, 4000)
    distribution = NormalDistribution(torch.zeros(4000), sd)
    y = torch.randn(4000)  # the true spread is 1 everywhere
    parts = by_width(intervals(distribution, y, 0.9))
    assert len(parts) == 10
    assert parts[0].high < 0.9 < parts[-1].low
    assert covered(intervals(distribution, y, 0.9)).rows == sum(part.rows for part in parts)


def test_groups_are_evaluated_by_themselves():
    distribution = NormalDistribution(torch.zeros(400), torch.ones(400))
    y = torch.cat([torch.zeros(200), torch.full((200,), 9.0)])
    found = by_group(intervals(distribution, y, 0.9), ["in"] * 200 + ["out"] * 190 + ["few"] * 10)
    assert {part.label: part.observed for part in found} == {"in": 1.0, "out": 0.0}


def test_censored_coverage_is_that_of_the_uncensored_rows():
    n = 5000
    distribution = NormalDistribution(torch.zeros(n), torch.full((n,), 0.8))
    y, c = torch.randn(n), 1.0 + torch.randn(n)
    upper = torch.where(y <= c, y, torch.tensor(math.inf))
    found = censored_coverage(transform_censored(distribution, torch.minimum(y, c), upper), 0.8)
    truth = 2 * stats.norm.cdf(0.8 * stats.norm.ppf(0.9)) - 1
    assert found.low < truth < found.high
    assert found.high - found.low < 0.06


def test_without_censoring_it_is_the_plain_share_with_its_binomial_variance():
    y = torch.randn(400)
    distribution = NormalDistribution(torch.zeros(400), torch.ones(400))
    found = censored_coverage(transform_censored(distribution, y, y), 0.8)
    plain = covered(intervals(distribution, y, 0.8))
    assert found.observed == pytest.approx(plain.observed)
    assert found.low == pytest.approx(plain.low, abs=2e-3)
    assert found.high == pytest.approx(plain.high, abs=2e-3)


def test_weights_are_rows_repeated():
    y = torch.randn(50)
    times = torch.arange(50) % 3
    distribution = NormalDistribution(torch.zeros(50), torch.ones(50))
    weighted = covered(intervals(distribution, y, 0.5), weight=times.double().numpy())
    spelled = torch.repeat_interleave(y, times)
    distribution = NormalDistribution(torch.zeros(len(spelled)), torch.ones(len(spelled)))
    assert weighted[1:] == pytest.approx(covered(intervals(distribution, spelled, 0.5))[1:])


def test_quantiles_show_the_intervals_that_were_fitted():
    x = np.random.default_rng(0).normal(size=(60, 1))
    y = x[:, 0] + np.random.default_rng(1).normal(size=60)
    model = Regressor("quantiles", epochs=2).fit(x, y)
    found = section(gather(model, x, y))
    table = next(part for part in found.parts if isinstance(part, Table))
    assert [row[0] for row in table.rows] == ["50 %", "90 %"]


def test_the_section_has_a_figure_for_every_target():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    y = x @ rng.normal(size=(2, 2)) + rng.normal(size=(120, 2))
    model = Regressor(network="linear").fit(x, y)
    found = section(gather(model, x, y, group=np.arange(120) % 3))
    assert sum(isinstance(part, Figure) for part in found.parts) == 2
