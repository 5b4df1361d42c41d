"""Weights, factors and conformal cuts against their definitions."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from ansatz.inference.conformal import conformal_interval, conformal_quantile, conformal_scores
from ansatz.inference.recalibration import find_factor, kind_of
from ansatz.inference.stacking import chance_of_best, stack_weights
from ansatz.likelihoods import Gamma, Normal, Poisson


def test_weights_maximise_the_penalised_log_score():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(50, 3, dtype=torch.float64, generator=generator)
    weight = torch.rand(50, dtype=torch.float64, generator=generator) + 0.5

    def loss(free):
        log_pi = torch.log_softmax(torch.tensor([*free, 0.0], dtype=torch.float64), 0)
        mixed = torch.logsumexp(scores + log_pi, 1)
        return -float((weight * mixed).sum() + log_pi.sum())

    best = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    expected = torch.softmax(torch.tensor([*best.x, 0.0], dtype=torch.float64), 0)
    torch.testing.assert_close(stack_weights(scores, weight), expected, rtol=1e-4, atol=1e-5)


def test_a_weight_of_two_is_the_row_twice():
    scores = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weight = torch.ones(9, dtype=torch.float64)
    weight[4] = 2
    torch.testing.assert_close(
        stack_weights(scores, weight), stack_weights(torch.cat([scores, scores[4:5]]))
    )


def test_the_chance_of_the_better_mean_is_that_of_a_normal_difference():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(400, dtype=torch.float64, generator=generator)
    group = torch.arange(400) % 2
    scores[group == 1] += 0.1
    a, b = scores[group == 0], scores[group == 1]
    z = (b.mean() - a.mean()) / (a.var() / 200 + b.var() / 200).sqrt()
    chance = chance_of_best(scores, group, draws=20_000)
    assert float(chance[1]) == pytest.approx(float(torch.special.ndtr(z)), abs=0.02)
    assert float(chance.sum()) == pytest.approx(1)


def test_the_factor_of_a_normal_law_is_the_root_mean_square_score():
    z = torch.randn(400, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 1.6

    def loss(c):
        return 0.5 * (z / c) ** 2 + math.log(c)

    weight = torch.ones(400, dtype=torch.float64)
    assert find_factor(loss, weight) == pytest.approx(float(z.square().mean().sqrt()), rel=1e-3)


def test_what_can_be_recalibrated():
    assert [kind_of(law) for law in (Normal(), Gamma(), Poisson())] == ["scale", "dispersion", None]


def test_conformal_intervals_cover_as_promised_under_a_wrong_law():
    """Exponential outcomes, a normal law that is also too narrow: coverage over many draws."""
    law, generator = Normal(dispersion=0.3), np.random.default_rng(0)
    hits, count, level = 0, 0, 0.9
    for _ in range(300):
        y = torch.from_numpy(generator.exponential(size=40))
        raw = torch.ones(40, 1, dtype=torch.float64)
        cut = conformal_quantile(conformal_scores(law, raw[:39], y[:39]), level)
        low, high = conformal_interval(law, raw[39:], cut)
        hits += bool(low <= y[39] <= high)
        count += 1
    assert abs(hits / count - level) < 3 * math.sqrt(level * (1 - level) / count)


def test_conformal_intervals_of_counts_hold_their_own_calibration_rows():
    law, y = Poisson(), torch.tensor([0.0, 1, 1, 2, 2, 3, 4, 5, 9])
    raw = torch.zeros(9, 1)
    scores = conformal_scores(law, raw, y)
    cut = conformal_quantile(scores, 0.8)
    low, high = conformal_interval(law, raw, cut)
    inside = (y >= low) & (y <= high)
    assert bool((inside == (scores <= cut + 1e-6)).all()) and int(inside.sum()) >= 8


def test_so_few_rows_promise_nothing():
    assert math.isinf(float(conformal_quantile(torch.arange(5.0), 0.9)))
