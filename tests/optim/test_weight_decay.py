"""Weight decay, the L2 penalty and early stopping (M150, M151, M158; E1, E24)."""

import math

import pytest
import torch
from tests.optim.test_gradient_descent import CURVATURES, descend, quadratic
from torch.testing import assert_close

from ansatz import optim

START = torch.tensor([3.0, -2.0, 1.0], dtype=torch.float64)


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_without_a_gradient_the_norm_shrinks_by_1_minus_rate_times_decay(name):
    """With the printed sign, theta - rate (grad - mu theta), it would grow."""
    theta = torch.nn.Parameter(START.clone())
    rule = optim.create(name, [theta], lr=0.1, weight_decay=0.5)
    theta.grad = torch.zeros(3)
    rule.step()
    assert_close(theta.detach(), (1 - 0.1 * 0.5) * START)


def penalised(theta, mu=0.3):
    return quadratic(theta - 1) + 0.5 * mu * (theta**2).sum()


def shifted(theta):
    return quadratic(theta - 1)


def test_for_sgd_weight_decay_is_an_l2_penalty():
    for options in ({}, {"momentum": 0.9}):
        decayed = descend(shifted, START, 0.05, 40, "sgd", weight_decay=0.3, **options)
        assert_close(decayed, descend(penalised, START, 0.05, 40, "sgd", **options))


def test_for_adam_decoupled_decay_and_an_l2_penalty_part_ways():
    decoupled = descend(shifted, START, 0.05, 40, "adamw", weight_decay=0.3)
    penalty = descend(penalised, START, 0.05, 40, "adam")
    assert (decoupled[-1] - penalty[-1]).norm() > 0.01
    with pytest.warns(UserWarning, match="adamw"):
        same = descend(shifted, START, 0.05, 40, "adam", weight_decay=0.3)
    assert_close(same, penalty)


def test_early_stopping_after_1_over_rate_times_mu_steps_shrinks_like_ridge():
    """1 - (1 - eta lambda)^T is close to lambda / (lambda + mu) for T = 1/(eta mu), not eta/mu."""
    eta, mu = 0.1, 0.05
    curvatures = torch.logspace(-2, 0, 50, dtype=torch.float64)
    ridge = curvatures / (curvatures + mu)

    def distance(steps):
        return float((1 - (1 - eta * curvatures) ** steps - ridge).abs().max())

    # sup over x of |(1 - e^-x) - x/(1+x)| = 0.2036 at x = 1.79, with x = lambda / mu; the step
    # size changes (1 - eta lambda)^T by less than 0.01 here.
    assert distance(round(1 / (eta * mu))) < 0.21
    assert distance(round(eta / mu)) > 0.7
    best = min(range(1, 1000), key=distance)
    assert 0.5 < best * eta * mu < 1.5


def test_descent_from_zero_has_the_shrinkage_that_the_formula_says():
    path = descend(shifted, torch.zeros(3), 0.1, 25)
    assert_close(path[-1], 1 - (1 - 0.1 * CURVATURES) ** 25)
    assert math.isclose(float(path[0].norm()), 0.0)
