"""Likelihoods of vectors, directions and rankings on held-out rows."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import ive

from ansatz import Ranker, Regressor
from ansatz.figures.section import Figure
from ansatz.likelihoods import (
    MultivariateNormalDistribution,
    RankingDistribution,
    VonMisesDistribution,
)
from ansatz.outcomes.report import ranking as rankings
from ansatz.outcomes.report.ranking import first_places
from ansatz.report import gather, vectors
from ansatz.report.vectors import angular_errors, average_rank


def bivariate(n, correlation):
    covariance = torch.tensor([[1.0, correlation], [correlation, 1.0]]).expand(n, 2, 2)
    return MultivariateNormalDistribution.of(torch.zeros(n, 2), covariance)


def test_average_ranks_are_uniform_under_the_right_joint_likelihood():
    likelihood = bivariate(1500, 0.6)
    u, _ = average_rank(likelihood, likelihood.sample()).draw(np.random.default_rng(0))
    assert stats.kstest(u, "uniform").pvalue > 0.01


def test_average_ranks_see_a_dependence_that_marginals_cannot():
    outcomes = bivariate(1500, 0.9).sample()
    u, _ = average_rank(bivariate(1500, 0.0), outcomes).draw(np.random.default_rng(0))
    assert stats.kstest(u, "uniform").pvalue < 1e-6
    assert np.var(u) > 1.3 / 12  # more at both ends


def test_a_rank_counts_draws_below_by_the_double_loop():
    likelihood, y = bivariate(5, 0.3), torch.randn(5, 2)
    found = average_rank(likelihood, y, draws=9, seed=4)
    drawn = likelihood.sample((9,), torch.Generator().manual_seed(4)).numpy()
    for row in range(5):
        pool = np.concatenate([y[row].numpy()[None], drawn[:, row]])
        score = stats.rankdata(pool, axis=0).mean(1)
        assert found.lower[row] == pytest.approx((score[1:] < score[0] - 1e-9).sum() / 10)


def test_vectors_have_a_section_with_marginals_and_the_joint_likelihood():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(90, 1)), rng.normal(size=(90, 3))
    model = Regressor("multivariate_normal", network="linear").fit(x, y)
    found = vectors.section(gather(model, x, y))
    assert isinstance(found.parts[0], Figure)
    assert [row[0].split(":")[0] for row in found.parts[1].rows[::2]][-1] == "joint"
    assert vectors.directions_section(gather(model, x, y)) is None


def test_right_directions_have_no_bias_and_the_expected_cosine():
    kappa = torch.rand(4000) * 4 + 0.5
    angle = torch.rand(4000) * 6
    distribution = VonMisesDistribution(kappa * angle.cos(), kappa * angle.sin())
    found = angular_errors(distribution, distribution.sample())
    assert not found.bias.excludes_neutral and not found.concentration.excludes_neutral
    turned = angular_errors(distribution, distribution.sample() + 0.4)
    assert turned.bias.low < 0.4 < turned.bias.high


def test_likelihoods_that_are_too_sure_have_a_ratio_below_one():
    distribution = VonMisesDistribution(torch.full((4000,), 8.0), torch.zeros(4000))
    y = VonMisesDistribution(torch.full((4000,), 2.0), torch.zeros(4000)).sample()
    found = angular_errors(distribution, y).concentration
    expected = (ive(1, 2.0) / ive(0, 2.0)) / (ive(1, 8.0) / ive(0, 8.0))
    assert found.low < expected < found.high and found.excludes_neutral


def test_first_places_are_counted_and_expected_by_softmax():
    scores = torch.randn(200, 4)
    distribution = RankingDistribution(scores)
    y = distribution.sample()
    found = first_places(distribution, y)
    np.testing.assert_allclose(found.observed, np.bincount(y[:, 0].long(), minlength=4))
    np.testing.assert_allclose(found.expected, torch.softmax(scores, 1).sum(0))
    assert found.p_value > 0.001


def test_absent_items_could_not_come_first():
    distribution = RankingDistribution(torch.zeros(1, 3), unranked="absent")
    found = first_places(distribution, torch.tensor([[0, 2, -1]]))
    np.testing.assert_allclose(found.expected, [0.5, 0, 0.5])


def test_intervals_of_first_places_hold_as_often_as_they_say():
    held = []
    for seed in range(100):
        generator = torch.Generator().manual_seed(seed)
        distribution = RankingDistribution(torch.zeros(120, 4))
        found = first_places(distribution, distribution.sample((), generator))
        held += [not part.excludes_neutral for part in found.ratios]
    assert abs(np.mean(held) - 0.95) < 5 * math.sqrt(0.05 * 0.95 / 400)


def test_rankings_have_a_section():
    rng = np.random.default_rng(0)
    y = np.array([rng.permutation(list("abcd")) for _ in range(40)])
    model = Ranker(network="linear").fit(None, y)
    assert "items" in rankings.section(gather(model, None, y)).lead
