"""AdaGrad, sign descent, RMSProp and Adam, as corrected (M132 to M135; E2, E3, E29, E62)."""

import pytest
import torch
from torch.testing import assert_close

from ansatz import optim
from ansatz.optim import FlatAdamW

START = torch.tensor([3.0, -2.0, 1.0], dtype=torch.float64)


def run(name, gradients, **options):
    """The moves of a rule that is handed the given gradients one after another."""
    theta = torch.nn.Parameter(torch.zeros_like(gradients[0]))
    rule = optim.create(name, [theta], **options)
    path = [theta.detach().clone()]
    for g in gradients:
        theta.grad = g.clone()
        rule.step()
        path.append(theta.detach().clone())
    return torch.stack(path).diff(dim=0)


def test_adagrads_step_k_under_a_constant_gradient_is_rate_over_root_k():
    moves = run("adagrad", [torch.tensor([5.0, -0.1])] * 20, lr=0.3, eps=0.0)
    k = torch.arange(1, 21, dtype=torch.float64)
    assert_close(moves[:, 0], -0.3 / k.sqrt())
    assert_close(moves[:, 1], 0.3 / k.sqrt())


def test_without_accumulation_it_is_sign_descent_and_not_adagrad():
    gradients = [torch.tensor([5.0, -0.1])] * 20
    moves = run("sign_descent", gradients, lr=0.3)
    assert_close(moves, torch.tensor([-0.3, 0.3]).expand(20, 2))
    assert not torch.allclose(moves[1:], run("adagrad", gradients, lr=0.3)[1:], rtol=0.1)


def test_sign_descent_moves_every_coordinate_by_the_rate_and_none_without_gradient():
    g = torch.tensor([1e-30, -1e30, 0.0])
    assert_close(run("sign_descent", [g], lr=0.1)[0], torch.tensor([-0.1, 0.1, 0.0]))
    damped = run("sign_descent", [torch.tensor([2.0])], lr=0.1, eps=2.0)
    assert_close(damped[0], torch.tensor([-0.05]))


def test_sign_descent_is_adam_with_both_betas_zero():
    gradients = list(torch.randn(10, 3))
    adam = run("adam", gradients, lr=0.1, betas=(0.0, 0.0), eps=0.0)
    assert_close(run("sign_descent", gradients, lr=0.1), adam)


def test_rmsprop_is_adam_without_momentum_and_without_bias_correction():
    gradients, beta = list(torch.randn(10, 3)), 0.9
    v, expected = torch.zeros(3), []
    for g in gradients:
        v = beta * v + (1 - beta) * g**2
        expected.append(-0.1 * g / (v.sqrt() + 1e-8))
    assert_close(run("rmsprop", gradients, lr=0.1, alpha=beta), torch.stack(expected))


def adam_formula(gradients, rate, beta1, beta2, eps, *, corrected=True, inside=False):
    m, v, moves = torch.zeros_like(gradients[0]), torch.zeros_like(gradients[0]), []
    for t, g in enumerate(gradients, 1):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
        mean = m / (1 - beta1**t) if corrected else m
        square = v / (1 - beta2**t) if corrected else v
        root = (square + eps).sqrt() if inside else square.sqrt() + eps
        moves.append(-rate * mean / root)
    return torch.stack(moves)


def test_adam_has_a_rate_a_bias_correction_and_eps_outside_the_root():
    gradients = list(torch.randn(15, 3))
    moves = run("adam", gradients, lr=0.1, betas=(0.9, 0.99), eps=1e-2)
    assert_close(moves, adam_formula(gradients, 0.1, 0.9, 0.99, 1e-2))
    for wrong in (
        adam_formula(gradients, 1.0, 0.9, 0.99, 1e-2),
        adam_formula(gradients, 0.1, 0.9, 0.99, 1e-2, corrected=False),
        adam_formula(gradients, 0.1, 0.9, 0.99, 1e-2, inside=True),
    ):
        assert not torch.allclose(moves, wrong, rtol=1e-3)


def test_adams_first_step_is_the_rate_times_the_sign():
    g = torch.tensor([7.0, -1e-4, 100.0])
    assert_close(run("adam", [g], lr=0.1, eps=0.0)[0], -0.1 * g.sign())


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_flat_rule_matches_torchs_adamw_bit_for_bit(decay):
    shapes = [(4, 3), (2, 4), (4,), (2,)]
    ours = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]
    theirs = [torch.nn.Parameter(p.detach().clone()) for p in ours]
    flat = FlatAdamW(ours[:2], ours[2:], betas=(0.9, 0.99), weight_decay=decay)
    groups = [
        {"params": theirs[:2], "weight_decay": decay},
        {"params": theirs[2:], "weight_decay": 0.0},
    ]
    rule = torch.optim.AdamW(groups, betas=(0.9, 0.99), eps=1e-8, fused=True)
    for step in range(30):
        for slot, parameter in zip(flat.gradients, theirs, strict=True):
            slot.copy_(torch.randn(slot.shape))
            parameter.grad = slot.clone()
        for group in rule.param_groups:
            group["lr"] = 0.1 / (1 + step)
        flat.update(0.1 / (1 + step))
        rule.step()
    # Vector lanes are cut elsewhere in a flat vector, so the last bit may differ.
    for a, b in zip(ours, theirs, strict=True):
        assert_close(a, b, rtol=1e-14, atol=1e-15)


def test_the_flat_rules_norm_is_finite_where_its_square_overflows():
    theta = torch.nn.Parameter(torch.zeros(2, dtype=torch.float32))
    rule = FlatAdamW([theta], [])
    rule.gradient.copy_(torch.tensor([3e30, 4e30]))
    assert rule.gradient_norm() == pytest.approx(5e30, rel=1e-6)
    rule.gradient[0] = torch.nan
    assert rule.gradient_norm() != rule.gradient_norm()
