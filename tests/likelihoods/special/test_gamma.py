import mpmath
import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods.special.gamma import log_gamma_half, log_gammainc, log_gammaincc, stirling


@pytest.mark.parametrize("a", [1e-3, 0.5, 1.0, 7.999, 8.0, 50.0, 1e9])
def test_correction_is_mpmaths_in_value_and_slope(a):
    with mpmath.workdps(50):
        x = mpmath.mpf(a)

        def exact(x):
            return (
                mpmath.loggamma(x) - (x - 0.5) * mpmath.log(x) + x - mpmath.log(2 * mpmath.pi) / 2
            )

        value, slope = float(exact(x)), float(mpmath.diff(exact, x))
    point = torch.tensor(a, requires_grad=True)
    found = stirling(point)
    assert found.item() == pytest.approx(value, rel=1e-12)
    assert torch.autograd.grad(found, point)[0].item() == pytest.approx(slope, rel=1e-10)


@pytest.mark.parametrize("x", [1e-3, 0.7, 20.0, 1e10])
def test_half_step_of_log_gamma_is_mpmaths(x):
    with mpmath.workdps(50):
        exact = float(mpmath.loggamma(mpmath.mpf(x) + 0.5) - mpmath.loggamma(mpmath.mpf(x)))
    assert log_gamma_half(torch.tensor(x)).item() == pytest.approx(exact, rel=1e-13)


# Shapes and arguments in every branch: series, either quadrature, both far tails.
POINTS = [
    (0.01, 0.3),
    (0.5, 1e-8),
    (0.5, 40.0),
    (1.1, 1.2),
    (3.0, 2.5),
    (10.0, 30.0),
    (80.0, 79.0),
    (80.0, 1e-3),
    (300.0, 10.0),
    (2.0, 2000.0),
    (1e6, 0.999e6),
    (1e3, 1.5e3),
]


def exact(a, x, upper):
    with mpmath.workdps(60):
        a, x = mpmath.mpf(a), mpmath.mpf(x)
        ends = (x, mpmath.inf) if upper else (0, x)
        return mpmath.log(mpmath.gammainc(a, *ends, regularized=True))


@pytest.mark.parametrize("upper", [False, True], ids=["P", "Q"])
@pytest.mark.parametrize("a, x", POINTS)
def test_value_and_both_derivatives_are_mpmaths(a, x, upper):
    A, X = (torch.tensor(v, requires_grad=True) for v in (a, x))
    value = (log_gammaincc if upper else log_gammainc)(A, X)
    slopes = torch.autograd.grad(value, (A, X))
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -15
        in_a = (exact(a * (1 + h), x, upper) - exact(a * (1 - h), x, upper)) / (2 * a * h)
        in_x = (exact(a, x * (1 + h), upper) - exact(a, x * (1 - h), upper)) / (2 * x * h)
    assert value.item() == pytest.approx(float(exact(a, x, upper)), rel=1e-10)
    assert slopes[0].item() == pytest.approx(float(in_a), rel=1e-9)
    assert slopes[1].item() == pytest.approx(float(in_x), rel=1e-9)


def test_the_ends_of_the_support_are_exact_and_have_no_slope():
    a = torch.full((2,), 3.0, requires_grad=True)
    x = torch.tensor([0.0, torch.inf], requires_grad=True)
    lower, upper = log_gammainc(a, x), log_gammaincc(a, x)
    assert_close(lower.detach(), torch.tensor([-torch.inf, 0.0]))
    assert_close(upper.detach(), torch.tensor([0.0, -torch.inf]))
    for value in (lower, upper):
        for slope in torch.autograd.grad(value.nan_to_num().sum(), (a, x)):
            assert_close(slope, torch.zeros(2))


def test_a_second_derivative_is_refused_and_not_zero():
    x = torch.tensor(1.0, requires_grad=True)
    value = log_gammainc(torch.tensor(2.0), x)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.autograd.grad(value, x, create_graph=True)


def test_far_and_near_evaluations_meet():
    """Where P falls below 1e-290 another formula takes over: no step shows there."""
    x = torch.linspace(20.0, 40.0, 400)
    value = log_gammainc(torch.tensor(400.0), x)
    assert value[0] < -668 < value[-1]  # log 1e-290 = -668
    second = value.diff().diff()
    assert (second < 0).all()  # the log of a gamma cdf is concave, its curvature smooth
    assert (second.diff().abs() < 1e-2 * second[1:].abs()).all()
