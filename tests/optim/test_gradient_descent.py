"""What gradient descent promises on functions of known curvature (M122 to M127, M136)."""

import math
from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close

from ansatz import optim

CURVATURES = torch.tensor([0.5, 1.0, 4.0], dtype=torch.float64)
L, MU = 4.0, 0.5


def quadratic(theta):
    """h = sum of lambda_i theta_i^2 / 2, whose minimum is 0."""
    return 0.5 * (CURVATURES * theta**2).sum()


def descend(h, start, rate, steps, name="sgd", **options):
    """All iterates, the start included."""
    theta = torch.nn.Parameter(start.clone())
    rule = optim.create(name, [theta], lr=rate, **options)
    path = [theta.detach().clone()]
    for _ in range(steps):
        rule.zero_grad()
        h(theta).backward()
        rule.step()
        path.append(theta.detach().clone())
    return torch.stack(path)


def gradient(h, theta):
    theta = theta.clone().requires_grad_()
    return torch.autograd.grad(h(theta), theta)[0]


def test_on_a_quadratic_each_direction_shrinks_by_one_minus_rate_times_curvature():
    path = descend(quadratic, torch.ones(3), 0.1, 25)
    assert_close(path[-1], (1 - 0.1 * CURVATURES) ** 25)


def test_it_follows_the_gradient_flow_with_an_error_of_the_order_of_the_rate():
    """d theta = -grad h dt has the solution exp(-lambda t); halving the rate halves the error."""
    flow = torch.exp(-CURVATURES * 1.0)

    def error(rate):
        return (descend(quadratic, torch.ones(3), rate, round(1 / rate))[-1] - flow).norm()

    assert error(0.005) / error(0.0025) == pytest.approx(2, rel=0.02)


def softplus_sum(theta):
    """Convex, not quadratic: f = sum of log(1 + exp(a_i . theta)), with Hessian <= A'A / 4."""
    generator = torch.Generator().manual_seed(1)
    a = torch.randn(20, 3, generator=generator)
    return torch.nn.functional.softplus(a @ theta).sum() + 0.05 * (theta**2).sum()


def power_iteration(h, theta, steps=200):
    """The largest Hessian eigenvalue, by products with the Hessian only."""
    theta = theta.clone().requires_grad_()
    (g,) = torch.autograd.grad(h(theta), theta, create_graph=True)
    v = torch.ones_like(theta) / theta.numel() ** 0.5
    for _ in range(steps):
        (w,) = torch.autograd.grad(g @ v, theta, retain_graph=True)
        v = w / w.norm()
    return float(v @ w)


def test_the_smoothness_constant_is_the_hessians_largest_eigenvalue():
    assert power_iteration(quadratic, torch.ones(3)) == pytest.approx(L, rel=1e-10)
    a, b = torch.randn(2, 50, 3)
    for x, y in zip(a, b, strict=True):
        assert (gradient(quadratic, x) - gradient(quadratic, y)).norm() <= L * (x - y).norm()


def bound_on_curvature():
    generator = torch.Generator().manual_seed(1)
    a = torch.randn(20, 3, generator=generator)
    return float(torch.linalg.eigvalsh(a.T @ a / 4).max()) + 0.1


@pytest.mark.parametrize("h, smooth", [(quadratic, lambda: L), (softplus_sum, bound_on_curvature)])
def test_every_step_at_rate_1_over_L_decreases_h_by_the_squared_gradient_over_2L(h, smooth):
    """h(next) <= h - |grad h|^2 / (2L); the bound is not met by |h|^2, as some notes print it."""
    smooth = smooth()
    path = descend(h, torch.tensor([3.0, -2.0, 1.0]), 1 / smooth, 40)
    for now, after in pairwise(path):
        promised = gradient(h, now).norm() ** 2 / (2 * smooth)
        assert h(after) <= h(now) - promised + 1e-12
    far = torch.tensor([30.0, -20.0, 10.0])  # where h is large, |h|^2 promises too much
    near = descend(h, far, 1 / smooth, 1)[-1]
    assert h(near) > h(far) - h(far) ** 2 / (2 * smooth)


def test_a_point_with_gradient_eps_is_met_within_2L_h0_over_eps_squared_steps():
    start, eps = torch.tensor([3.0, -2.0, 1.0]), 0.05
    bound = math.ceil(2 * L * float(quadratic(start)) / eps**2)
    path = descend(quadratic, start, 1 / L, min(bound, 200))
    norms = torch.stack([gradient(quadratic, theta).norm() for theta in path])
    assert bool((norms <= eps).any())
    met = int((norms <= eps).nonzero()[0])
    assert met <= bound


def test_under_the_pl_inequality_the_gap_shrinks_by_one_minus_mu_over_L_each_step():
    path = descend(quadratic, torch.tensor([3.0, -2.0, 1.0]), 1 / L, 60)
    for now, after in pairwise(path):
        assert 0.5 * gradient(quadratic, now).norm() ** 2 >= MU * quadratic(now) * (1 - 1e-12)
        assert quadratic(after) <= (1 - MU / L) * quadratic(now) * (1 + 1e-12)


def test_the_mini_batch_gradient_is_unbiased():
    """The mean over all batches of the mean gradient of a batch is the full gradient."""
    x, y, theta = torch.randn(12, 3), torch.randn(12), torch.randn(3)

    def mean_gradient(rows):
        return gradient(lambda t: ((x[rows] @ t - y[rows]) ** 2).mean(), theta)

    batches = [list(rows) for rows in torch.combinations(torch.arange(12), 2).tolist()]
    mean = torch.stack([mean_gradient(rows) for rows in batches]).mean(0)
    assert_close(mean, mean_gradient(list(range(12))))
