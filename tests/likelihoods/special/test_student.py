import math

import mpmath
import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods.special.student import log_density, log_student_cdf, student_quantile

POINTS = [
    (t, nu) for nu in (0.5, 1.0, 3.5, 30.0, 1e4) for t in (-1e20, -45.0, -4.1, -3.9, -0.1, 2.0)
]
POINTS += [(5.0, 8.0), (-40.0, 1e6), (1.0, 1e6)]


def exact(t, nu):
    with mpmath.workdps(60):
        t, nu = mpmath.mpf(t), mpmath.mpf(nu)
        x = nu / (nu + t * t)
        tail = mpmath.betainc(nu / 2, mpmath.mpf("0.5"), 0, x, regularized=True) / 2
        return mpmath.log(tail if t <= 0 else 1 - tail)


@pytest.mark.parametrize("t, nu", POINTS)
def test_value_and_both_derivatives_are_mpmaths(t, nu):
    T, N = (torch.tensor(v, requires_grad=True) for v in (t, nu))
    value = log_student_cdf(T, N)
    slopes = torch.autograd.grad(value, (T, N))
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -15
        in_t = (exact(t * (1 + h), nu) - exact(t * (1 - h), nu)) / (2 * t * h)
        in_nu = (exact(t, nu * (1 + h)) - exact(t, nu * (1 - h))) / (2 * nu * h)
    assert value.item() == pytest.approx(float(exact(t, nu)), rel=1e-10)
    assert slopes[0].item() == pytest.approx(float(in_t), rel=1e-9)
    assert slopes[1].item() == pytest.approx(float(in_nu), rel=1e-8)


def test_at_the_centre_nu_does_not_matter():
    nu = torch.tensor(3.0, requires_grad=True)
    value = log_student_cdf(torch.tensor(0.0), nu)
    assert_close(value.detach().exp(), torch.tensor(0.5))
    assert torch.autograd.grad(value, nu)[0].abs() < 1e-15


def test_one_degree_of_freedom_is_cauchy():
    t = torch.linspace(-3, 3, 7)
    assert_close(log_student_cdf(t, torch.tensor(1.0)).exp(), 0.5 + torch.atan(t) / torch.pi)
    assert_close(log_density(t, torch.tensor(1.0)).exp(), 1 / (torch.pi * (1 + t * t)))


def test_many_degrees_of_freedom_are_normal():
    """The gap to normal is O(1 / nu): a tenth for ten times the nu."""
    t, normal = torch.tensor(-2.0), torch.special.log_ndtr(torch.tensor(-2.0))
    near, far = (log_student_cdf(t, torch.tensor(nu)) - normal for nu in (1e4, 1e5))
    assert (near / far).item() == pytest.approx(10, rel=1e-3)


def test_infinite_arguments_are_the_ends():
    t = torch.tensor([-torch.inf, torch.inf])
    assert_close(log_student_cdf(t, torch.tensor(3.0)), torch.tensor([-torch.inf, 0.0]))


@pytest.mark.parametrize("nu", [0.3, 1.1, 3.5, 30.0, 1e3])
def test_quantiles_far_out_have_their_level(nu):
    """SciPy's stdtrit has none of the digits for some of these."""
    p = 10.0 ** -torch.arange(1.0, 290.0, 9.0)
    nu = torch.full_like(p, nu)
    t = student_quantile(p, nu)
    held = t.isfinite()  # others exceed the largest double
    assert held.sum() > 8
    assert_close(log_student_cdf(-t, nu)[held], p.log()[held], rtol=1e-13, atol=1e-13)


def test_an_argument_whose_square_overflows_has_a_tail_and_a_density():
    """Far out P(T > t) = f(t) t / nu, and log f falls by nu + 1 per unit of log t."""
    t, nu = torch.tensor([1e160, 1e250, 1e300]), torch.tensor(2.5)
    assert_close(log_student_cdf(-t, nu), log_density(t, nu) + t.log() - nu.log())
    slope = (log_density(t[1], nu) - log_density(t[2], nu)) / (50 * math.log(10))
    assert slope.item() == pytest.approx(3.5, rel=1e-12)
    single = log_density(torch.tensor(1e25, dtype=torch.float32), nu.float())
    assert single.item() == pytest.approx(log_density(torch.tensor(1e25), nu).item(), rel=1e-5)
