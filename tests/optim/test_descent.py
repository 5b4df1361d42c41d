"""Lasso and elastic net by proximal steps (M155, M156)."""

import pytest
import torch
from sklearn.linear_model import ElasticNet, Lasso
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.optim import create, soft_threshold


def data(rows=60, columns=8):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, columns, generator=generator)
    truth = torch.tensor([2.0, -1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0])
    return x, x @ truth + 0.3 * torch.randn(rows, generator=generator)


def fit(x, y, steps=3000, **penalty):
    """Minimises |y - x theta|^2 / (2n) + penalty, at the rate 1 / L."""
    theta = torch.nn.Parameter(torch.zeros(x.shape[1]))
    largest = float(torch.linalg.eigvalsh(x.T @ x / len(x)).max())
    rule = create("proximal_sgd", [theta], lr=1 / largest, **penalty)
    for _ in range(steps):
        theta.grad = x.T @ (x @ theta.detach() - y) / len(x)
        rule.step()
    return theta.detach()


def test_it_is_scikit_learns_lasso_zeros_included():
    x, y = data()
    theirs = Lasso(alpha=0.2, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(x, y).coef_
    ours = fit(x, y, l1=0.2)
    assert_close(ours, torch.from_numpy(theirs), rtol=1e-6, atol=1e-8)
    assert torch.equal(ours == 0, torch.from_numpy(theirs) == 0) and bool((ours == 0).any())


def test_it_is_scikit_learns_elastic_net():
    x, y = data()
    net = ElasticNet(alpha=0.3, l1_ratio=0.4, fit_intercept=False, tol=1e-14, max_iter=100_000)
    theirs = torch.from_numpy(net.fit(x, y).coef_)
    assert_close(fit(x, y, l1=0.3 * 0.4, l2=0.3 * 0.6), theirs, rtol=1e-6, atol=1e-8)


def test_without_l1_it_is_ridge_in_closed_form():
    x, y = data()
    ridge = torch.linalg.solve(x.T @ x / 60 + 0.3 * torch.eye(8), x.T @ y / 60)
    assert_close(fit(x, y, l2=0.3), ridge)


def test_on_an_orthogonal_design_the_lasso_is_the_soft_threshold_of_least_squares():
    q, _ = torch.linalg.qr(torch.randn(40, 8))
    x, y = q * 40**0.5, torch.randn(40)
    least_squares = x.T @ y / 40
    assert_close(fit(x, y, l1=0.1), soft_threshold(least_squares, 0.1))


def test_the_soft_threshold_minimises_its_problem():
    x, grid = torch.randn(50), torch.linspace(-4, 4, 8001)
    objective = 0.5 * (grid - x[:, None]) ** 2 + 0.7 * grid.abs()
    assert_close(soft_threshold(x, 0.7), grid[objective.argmin(1)], rtol=0, atol=5.1e-4)


def test_groups_have_their_own_penalty_and_a_negative_one_is_refused():
    weight, bias = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(1))
    rule = create("proximal_sgd", [{"params": [weight]}, {"params": [bias], "l1": 0.0}], l1=5.0)
    weight.grad, bias.grad = torch.zeros(2), torch.zeros(1)
    for _ in range(300):
        rule.step()
    assert weight.abs().max() == 0 and bias == 1
    with pytest.raises(UsageError, match="must be >= 0"):
        create("proximal_sgd", [weight], l1=-1.0)
