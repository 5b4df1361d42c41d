import math

import mpmath
import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods.special.logarithms import (
    continued,
    log_complement,
    safe_log,
    soft_cap,
    soft_clamp,
)


def test_the_gradient_is_finite_outside_and_a_missing_value_stays_missing():
    y = torch.tensor([-1.0, 0.0, 2.0, math.inf, math.nan]).requires_grad_()
    value = continued(safe_log(y), y, -math.inf, 0.0)
    expected = torch.tensor([-math.inf, -math.inf, math.log(2), 0.0, math.nan])
    assert_close(value.detach(), expected, equal_nan=True)
    (gradient,) = torch.autograd.grad(value[:4].sum(), y)
    assert_close(gradient[:4], torch.tensor([0.0, 0.0, 0.5, 0.0]))


def test_single_precision_stays_single():
    y = torch.ones(2, dtype=torch.float32)
    assert continued(safe_log(y), y, 0.0, 1.0).dtype == torch.float32


@pytest.mark.parametrize("log_h", [-2000.0, -700.0, -40.0, -1.0, -1e-9, 0.0, 1.0, 3.5])
def test_it_is_the_logarithm_of_one_minus_exp(log_h):
    with mpmath.workdps(2000):
        exact = float(mpmath.log(1 - mpmath.exp(-mpmath.exp(mpmath.mpf(log_h)))))
    assert log_complement(torch.tensor(log_h)).item() == pytest.approx(exact, rel=1e-14)


def test_both_derivatives_are_finite_and_right():
    x = torch.tensor([-30.0, -1.0, 0.5, 3.0]).requires_grad_()
    assert torch.autograd.gradcheck(log_complement, x)
    assert torch.autograd.gradgradcheck(log_complement, x)


def test_the_gradient_is_finite_where_the_hazard_under_or_overflows():
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor([-1e4, 1e4], dtype=dtype).requires_grad_()
        (gradient,) = torch.autograd.grad(log_complement(x).sum(), x)
        assert_close(gradient, torch.tensor([1.0, 0.0], dtype=dtype))


def test_within_the_limit_nothing_changes():
    x = torch.linspace(-50, 50, 11)
    assert torch.equal(soft_clamp(x), x)


def test_beyond_the_limit_the_exponential_is_its_tangent():
    x = torch.tensor([60.0, 1e4], requires_grad=True)
    y = soft_cap(x).exp()
    assert_close(y.detach(), torch.tensor(50.0).exp() * (1 + x.detach() - 50))
    assert_close(torch.autograd.grad(y.sum(), x)[0], torch.tensor(50.0).exp().expand(2))


def test_it_is_odd_and_increasing():
    x = torch.linspace(-200, 200, 401)
    assert_close(soft_clamp(-x), -soft_clamp(x))
    assert (soft_clamp(x).diff() > 0).all()
