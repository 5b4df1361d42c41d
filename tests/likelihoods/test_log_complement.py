import mpmath
import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods.special.logarithms import log_complement


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
