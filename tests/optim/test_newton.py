"""Newton's method (M128)."""

import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.optim import Newton, create, gradient_and_hessian
from ansatz.optim.newton import newton_direction


def test_one_step_solves_a_quadratic():
    basis = torch.linalg.qr(torch.randn(5, 5))[0]
    hessian = basis @ torch.diag(torch.tensor([0.01, 0.5, 1.0, 7.0, 300.0])) @ basis.T
    solution = torch.randn(5)
    parts = [torch.nn.Parameter(torch.randn(2)), torch.nn.Parameter(torch.randn(3, 1))]

    def loss():
        gap = torch.cat([p.reshape(-1) for p in parts]) - solution
        return 0.5 * gap @ hessian @ gap

    Newton(parts).step(loss)
    found = torch.cat([p.detach().reshape(-1) for p in parts])
    assert_close(found, solution, rtol=1e-9, atol=1e-9)


def test_the_error_squares_from_step_to_step():
    theta = torch.nn.Parameter(torch.tensor([0.5]))
    rule, errors = Newton([theta]), []
    for _ in range(4):
        rule.step(lambda: (theta.exp() - 2 * theta).sum())  # minimum at log 2
        errors.append(abs(theta.item() - torch.tensor(2.0).log().item()))
    # error' = error^2 |h'''| / (2 h'') = error^2 / 2 near the minimum
    assert errors[1] == pytest.approx(errors[0] ** 2 / 2, rel=0.05)
    assert errors[2] == pytest.approx(errors[1] ** 2 / 2, rel=0.05)


def test_the_hessian_is_autograds_own():
    a, b = torch.randn(3, requires_grad=True), torch.randn(2, 2, requires_grad=True)

    def value(flat):
        return (flat[:3].sin().sum() * flat[3:].exp().prod()) + flat[0] ** 3 * flat[4]

    flat = torch.cat([a, b.reshape(-1)])
    gradient, hessian = gradient_and_hessian(value(flat), [a, b])
    point = flat.detach()
    assert_close(hessian, torch.autograd.functional.hessian(value, point))
    assert_close(gradient, torch.autograd.functional.jacobian(value, point))


def test_a_linear_loss_has_no_curvature_and_does_not_move():
    theta = torch.nn.Parameter(torch.ones(2))
    Newton([theta]).step(lambda: (3 * theta).sum())
    assert_close(theta.detach(), torch.ones(2))


def test_a_direction_without_curvature_is_left_alone():
    theta = torch.nn.Parameter(torch.tensor([1.0, 1.0]))
    Newton([theta]).step(lambda: (theta[0] + theta[1]) ** 2)  # rank one
    assert_close(theta.detach(), torch.tensor([0.0, 0.0]), atol=1e-12, rtol=0)


def test_a_saddle_repels():
    """On x^2 - y^2 + y^4 plain Newton goes to the saddle at 0; curvature by size leaves it."""
    theta = torch.nn.Parameter(torch.tensor([1.0, 0.01]))
    rule = Newton([theta])
    for _ in range(30):
        rule.step(lambda: theta[0] ** 2 - theta[1] ** 2 + theta[1] ** 4)
    assert_close(theta.detach(), torch.tensor([0.0, 0.5**0.5]), atol=1e-6, rtol=0)


def test_the_loss_never_rises_where_a_full_step_would_overshoot():
    """Full Newton on log cosh diverges from 1.1 on (Nocedal and Wright, chapter 3)."""
    theta = torch.nn.Parameter(torch.tensor([3.0]))
    rule = Newton([theta])
    losses = [rule.step(lambda: theta.cosh().log().sum()).item() for _ in range(12)]
    assert losses == sorted(losses, reverse=True)
    assert abs(theta.item()) < 1e-8


def test_damping_is_added_to_every_curvature():
    direction = newton_direction(torch.ones(3), torch.diag(torch.tensor([1.0, -3.0, 0.0])), 1.0)
    assert_close(direction, torch.tensor([-0.5, -0.25, -1.0]))


def test_what_it_cannot_do_is_said():
    theta = torch.nn.Parameter(torch.ones(2))
    with pytest.raises(UsageError, match="closure"):
        create("newton", [theta]).step()
    with pytest.raises(UsageError, match=r"at most 5000 parameters, got 6000.*lbfgs"):
        create("newton", [torch.nn.Parameter(torch.ones(6000))])
    with pytest.raises(UsageError, match="one group"):
        create("newton", [{"params": [theta]}, {"params": [torch.nn.Parameter(torch.ones(1))]}])
