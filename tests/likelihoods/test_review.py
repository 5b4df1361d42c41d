"""Promises where likelihoods meet: wrappers, precisions, weights and wild numbers together."""

import math

import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import Censored, Truncated, create
from ansatz.likelihoods.special.normal import log_ndtr


@pytest.mark.parametrize(
    "likelihood, lower, upper, y, raw",
    [
        ("gamma", None, 1e9, 2.0, [0.0, 0.0]),
        ("log_normal", None, 1e9, 2.0, [0.0, 0.0]),
        ("normal", None, 1e6, 2.0, [0.0, 20.0]),
        ("normal", -1e6, 1e6, 2.0, [0.0, -50.0]),
        ("student_t", -1e6, None, 2.0, [50.0, -50.0]),
        ("tweedie", 0.0, None, 2.0, [50.0, 0.0]),
        ("negative_binomial", None, 1e6, 2.0, [50.0, -50.0]),
        ("poisson", 0.0, None, 2.0, [50.0]),
        ("poisson", 0.0, 1.0, 1.0, [50.0]),
        ("hurdle_poisson", 0.0, None, 2.0, [50.0, 0.0]),
        ("zero_one_inflated_beta", 0.0, None, 0.3, [0.0, 50.0, 0.0, 0.0]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_truncated_likelihood_has_finite_gradients_for_far_bounds_and_wild_raw_numbers(
    likelihood, lower, upper, y, raw, dtype
):
    likelihood = Truncated(likelihood, lower=lower, upper=upper).to(dtype)
    raw = torch.tensor([raw], dtype=dtype, requires_grad=True)
    loss = likelihood.loss(raw, torch.tensor([y], dtype=dtype))
    (gradient,) = torch.autograd.grad(loss.sum(), raw)
    assert loss.isfinite().all() and loss.dtype == dtype
    assert gradient.isfinite().all()


def test_a_one_sided_interval_in_float32_has_the_gradient_of_its_tail():
    raw = torch.zeros(1, 2, dtype=torch.float32, requires_grad=True)
    end, none = torch.tensor([1e9], dtype=torch.float32), torch.tensor([math.inf])
    distribution = create("log_normal").float().distribution(raw)
    for interval, tail in (
        (distribution.log_interval(-none.float(), end), distribution.log_cdf(end)),
        (distribution.log_interval(end, none.float()), distribution.log_survival(end)),
    ):
        found, exact = (
            torch.autograd.grad(value.sum(), raw, retain_graph=True)[0]
            for value in (interval, tail)
        )
        assert_close(found, exact)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_normal_tail_has_the_gradient_of_mills_ratio_however_far(dtype):
    """d log Phi(z) / dz = phi / Phi, from mpmath's erfc at 60 digits."""
    mpmath = pytest.importorskip("mpmath")
    points = [-1e9, -1e6, -3000.0, -100.0, -21.0, -19.0, -3.0, 0.0, 5.0]
    z = torch.tensor(points, dtype=dtype, requires_grad=True)
    value = log_ndtr(z)
    (slope,) = torch.autograd.grad(value.sum(), z)
    with mpmath.workdps(60):
        cdf = [mpmath.erfc(-mpmath.mpf(p) / mpmath.sqrt(2)) / 2 for p in points]
        density = [mpmath.npdf(p) for p in points]
        logs = [float(mpmath.log(c)) for c in cdf]
        slopes = [float(d / c) for d, c in zip(density, cdf, strict=True)]
    rtol = 2e-6 if dtype == torch.float32 else 1e-12
    assert_close(value.detach().double(), torch.tensor(logs).double(), rtol=rtol, atol=0)
    assert_close(slope.double(), torch.tensor(slopes).double(), rtol=10 * rtol, atol=0)


def test_the_normal_tail_has_second_derivatives():
    z = torch.tensor([-500.0, -30.0, -20.5, -19.5, -1.0, 2.0], requires_grad=True)
    assert torch.autograd.gradgradcheck(log_ndtr, z, atol=1e-6)
    (slope,) = torch.autograd.grad(log_ndtr(z).sum(), z, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), z)
    assert_close(bend[0], torch.tensor(-1.0) + 1 / 500**2, rtol=1e-6, atol=0, check_dtype=False)


def test_a_censored_outcome_a_billion_sds_away_has_a_finite_gradient_in_float32():
    likelihood = Censored("normal").float()
    raw = torch.tensor([[0.0, -50.0]], dtype=torch.float32, requires_grad=True)
    y = torch.tensor([[1e6, math.inf, -math.inf]], dtype=torch.float32)
    loss = likelihood.loss(raw, y)
    (gradient,) = torch.autograd.grad(loss.sum(), raw)
    assert loss.isfinite().all() and gradient.isfinite().all()
