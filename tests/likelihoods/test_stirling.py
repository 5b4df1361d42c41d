import mpmath
import pytest
import torch

from ansatz.likelihoods.special.gamma import log_gamma_half, stirling


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
