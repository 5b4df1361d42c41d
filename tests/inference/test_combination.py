"""Weights, factors and conformal cuts against their definitions."""

import pytest
import torch
from scipy.optimize import minimize

from ansatz.inference.combination import probability_of_best, stack_weights


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
    chance = probability_of_best(scores, group, draws=20_000)
    assert float(chance[1]) == pytest.approx(float(torch.special.ndtr(z)), abs=0.02)
    assert float(chance.sum()) == pytest.approx(1)
