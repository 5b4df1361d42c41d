"""Heavy ball, Nesterov and the three ways to write momentum (M129 to M131; E26, E62)."""

import pytest
import torch
from tests.optim.test_gradient_descent import descend, gradient, quadratic
from torch.testing import assert_close

from ansatz import optim
from ansatz.errors import UsageError

START = torch.tensor([3.0, -2.0, 1.0], dtype=torch.float64)


def test_heavy_ball_is_its_recursion():
    rate, beta = 0.1, 0.8
    before, theta = START, START
    for _ in range(30):
        step = -rate * gradient(quadratic, theta) + beta * (theta - before)
        before, theta = theta, theta + step
    assert_close(descend(quadratic, START, rate, 30, "heavy_ball", beta=beta)[-1], theta)


def test_heavy_ball_at_a_constant_rate_is_torchs_momentum():
    ours = descend(quadratic, START, 0.1, 30, "heavy_ball", beta=0.8)
    assert_close(ours, descend(quadratic, START, 0.1, 30, "sgd", momentum=0.8))
    assert_close(ours, descend(quadratic, START, 0.1, 30, "momentum", momentum=0.8))


def test_under_a_constant_gradient_the_move_is_the_geometric_sum_from_tau_0():
    """The limit is -rate g / (1 - beta); the sum from tau = 1 would give beta times that."""
    path = descend(lambda theta: 2 * theta.sum(), torch.zeros(1), 0.05, 400, "heavy_ball", beta=0.9)
    moves = path[1:] - path[:-1]
    partial = -0.05 * 2 * torch.cumsum(0.9 ** torch.arange(400.0, dtype=torch.float64), 0)
    assert_close(moves[:, 0], partial)
    assert moves[-1].item() == pytest.approx(-1.0, rel=1e-12)  # not -0.9
    still = descend(lambda theta: 2 * theta.sum(), torch.zeros(1), 0.05, 1, "heavy_ball", beta=0.0)
    assert still[-1].item() == pytest.approx(-0.1)  # beta = 0 is gradient descent, not rest


def test_averaged_momentum_takes_torchs_path_at_a_rate_rescaled_by_1_minus_beta():
    beta, rate = 0.8, 0.1
    m, theta = torch.zeros(3), START
    for _ in range(30):
        m = beta * m + (1 - beta) * gradient(quadratic, theta)
        theta = theta - rate / (1 - beta) * m
    assert_close(descend(quadratic, START, rate, 30, "sgd", momentum=beta)[-1], theta)


def test_nesterov_is_torchs_after_a_change_of_variables():
    """chi = theta + beta (theta - before); next = chi - rate grad h(chi); torch stores chi."""
    beta, rate = 0.8, 0.1
    before, theta, looks = START, START, [START]
    for _ in range(30):
        chi = theta + beta * (theta - before)
        before, theta = theta, chi - rate * gradient(quadratic, chi)
        looks.append(theta + beta * (theta - before))
    path = descend(quadratic, START, rate, 30, "nesterov", momentum=beta)
    assert_close(path, torch.stack(looks))


def test_nesterov_beats_gradient_descent_on_a_long_valley():
    """Rates sqrt(mu/L) against mu/L: kappa = 1000 needs some sqrt(1000) times fewer steps."""
    curvatures = torch.tensor([0.001, 1.0])

    def valley(theta):
        return 0.5 * (curvatures * theta**2).sum()

    root = 0.001**0.5
    beta = (1 - root) / (1 + root)  # Nesterov's choice for strongly convex functions
    fast = valley(descend(valley, torch.ones(2), 1.0, 300, "nesterov", momentum=beta)[-1])
    slow = valley(descend(valley, torch.ones(2), 1.0, 300)[-1])
    assert (
        fast <= 2 * valley(torch.ones(2)) * (1 - root) ** 300
    )  # his bound, h - h* at most doubled
    assert slow > 1000 * fast


def test_heavy_ball_refuses_a_beta_that_never_settles():
    with pytest.raises(UsageError, match=r"beta.*\[0, 1\), got 1"):
        optim.create("heavy_ball", [torch.nn.Parameter(torch.ones(1))], beta=1.0)
