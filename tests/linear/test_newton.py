"""Newton's method where the quadratic model is wrong."""

import torch
from torch.autograd.functional import hessian as whole_hessian
from torch.autograd.functional import jacobian
from torch.testing import assert_close

from ansatz.linear.criterion import Criterion
from ansatz.linear.newton import find_recession, minimise


def criterion(loss, y, x=None):
    x = torch.ones(len(y), 1) if x is None else x
    return Criterion(loss, x, y, torch.ones(len(y)), ["x"])


def test_a_quadratic_is_solved_in_one_step():
    x = torch.cat([torch.ones(30, 1), torch.randn(30, 3)], 1)
    y = torch.randn(30)
    f = criterion(lambda z, y: (z[:, 0] - y) ** 2, y, x)
    found = minimise(f, torch.zeros(4), torch.ones(4, dtype=torch.bool), torch.ones(1))
    assert found.iterations == 2 and found.converged
    assert_close(found.theta, torch.linalg.lstsq(x, y).solution)


def test_derivatives_are_those_of_automatic_differentiation_of_the_whole():
    x, y = torch.cat([torch.ones(9, 1), torch.randn(9, 2)], 1), torch.randn(9)
    weight = torch.rand(9)

    def loss(z, y):  # couples both raw numbers and a constant
        return (y - z[:, 0]) ** 2 * (z[:, 1] * z[:, 2]).exp() + z[:, 2] ** 2

    f = Criterion(loss, x, y, weight, ["x", "x", "one"], offset=torch.randn(9))

    def total(theta):
        return weight @ loss(f.z(theta), y)

    theta = torch.randn(7)
    value, gradient, hessian, _ = f.derivatives(theta)
    assert_close(value, total(theta))
    assert_close(gradient, jacobian(total, theta))
    assert_close(hessian, whole_hessian(total, theta))
    assert_close(f.gradient(theta)[1], gradient)


def test_an_indefinite_start_is_damped():
    """log(1 + r^2) is concave far from the data; a pure Newton step would run away."""
    y = torch.tensor([0.0, 0.1, -0.1, 0.2])
    f = criterion(lambda z, y: torch.log1p((z[:, 0] - y) ** 2), y)
    found = minimise(f, torch.tensor([6.0]), torch.tensor([True]), torch.ones(1))
    assert found.converged and found.damping == 0
    assert_close(found.theta, torch.tensor([0.05]), rtol=0, atol=2e-3)


def test_an_overshooting_step_is_halved():
    """Newton on log cosh diverges from |r| > 1.09 without halving."""
    y = torch.zeros(3)
    f = criterion(lambda z, y: torch.nn.functional.softplus(2 * z[:, 0]) - z[:, 0], y)
    found = minimise(f, torch.tensor([4.0]), torch.tensor([True]), torch.ones(1))
    assert found.converged
    assert_close(found.theta, torch.zeros(1), rtol=0, atol=1e-8)


def test_held_coefficients_stay():
    x, y = torch.cat([torch.ones(20, 1), torch.randn(20, 1)], 1), torch.randn(20)
    f = criterion(lambda z, y: (z[:, 0] - y) ** 2, y, x)
    found = minimise(f, torch.tensor([7.0, 0.0]), torch.tensor([False, True]), torch.ones(1))
    assert found.theta[0] == 7
    assert_close(found.theta[1], (x[:, 1] @ (y - 7)) / (x[:, 1] @ x[:, 1]))


def test_lbfgs_takes_over_where_newton_gets_stuck():
    """A quartic valley with a singular Hessian at its minimum converges only linearly."""
    y = torch.zeros(2)
    f = criterion(lambda z, y: (z[:, 0] - y) ** 4, y)
    found = minimise(f, torch.tensor([1.0]), torch.tensor([True]), torch.ones(1), iterations=3)
    assert found.rescued and abs(float(found.theta)) < 0.1


def test_no_direction_of_a_quadratic_recedes():
    y = torch.randn(9)
    f = criterion(lambda z, y: (z[:, 0] - y) ** 2, y)
    assert find_recession(f, torch.zeros(1), torch.ones(1), torch.ones(1)) is None
