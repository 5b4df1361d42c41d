import math

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.likelihoods import Exponential, GeneralizedPareto, GeneralizedParetoDistribution

SHAPES = [-0.49, -0.1, -1e-3, -1e-9, 0.0, 1e-12, 1e-6, 0.04, 0.3, 1.0, 2.5]


@pytest.mark.parametrize("shape", SHAPES)
def test_density_and_tails_keep_their_digits_around_shape_zero(shape):
    distribution = GeneralizedParetoDistribution(torch.zeros(4), torch.full((4,), shape))
    y = torch.tensor([1e-12, 0.05, 0.9, 1.9])
    with mpmath.workdps(50):
        xi = mpmath.mpf(shape)
        hazard = [mpmath.log1p(xi * t) / xi if shape else mpmath.mpf(t) for t in y.tolist()]
        density = [float(-(1 + xi) * h) for h in hazard]
        upper = [float(-h) for h in hazard]
        lower = [float(mpmath.log(-mpmath.expm1(-h))) for h in hazard]
    assert_close(distribution.log_prob(y), torch.tensor(density), rtol=1e-13, atol=1e-13)
    assert_close(distribution.log_survival(y), torch.tensor(upper), rtol=1e-13, atol=0)
    assert_close(distribution.log_cdf(y), torch.tensor(lower), rtol=1e-13, atol=0)
    assert_close(distribution.icdf(distribution.cdf(y)), y, rtol=1e-10, atol=0)


def test_shape_zero_is_exponential():
    raw, y = torch.randn(10, 1), torch.rand(10)
    assert_close(GeneralizedPareto(shape=0.0).loss(raw, y), Exponential().loss(raw, y))


def test_derivatives_pass_smoothly_through_shape_zero():
    y = torch.tensor([0.01, 0.5, 3.0]).repeat_interleave(5)
    xi = torch.tensor([-0.2, -1e-5, 0.0, 1e-5, 0.7]).repeat(3).requires_grad_()
    log_scale = torch.zeros(15).requires_grad_()
    for method in ("loss", "log_cdf", "log_survival"):

        def function(m, xi, method=method):
            return getattr(GeneralizedParetoDistribution(m, xi), method)(y)

        assert torch.autograd.gradcheck(function, (log_scale, xi), atol=1e-6, fast_mode=True)
        assert torch.autograd.gradgradcheck(function, (log_scale, xi), atol=1e-5, fast_mode=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [-0.5, -0.25, -1e-3])
def test_beyond_the_end_the_loss_is_finite_rising_and_pulls_the_end_outwards(dtype, shape):
    raw = torch.zeros(7, 1, dtype=dtype).requires_grad_()
    likelihood = GeneralizedPareto(shape=shape).to(dtype)
    end = -1 / shape
    y = torch.tensor([0.9, 0.999, 1.0, 1.0001, 1.1, 2.0, 1e6], dtype=dtype) * end
    loss = likelihood.loss(raw, y)
    (gradient,) = torch.autograd.grad(loss.sum(), raw)
    assert loss.isfinite().all() and gradient.isfinite().all()
    assert (loss.diff() > 0).all()
    assert (gradient[2:] < 0).all()
    found = likelihood.distribution(raw)
    assert found.log_prob(y)[3:].isneginf().all()
    assert_close(found.cdf(y)[3:], torch.ones(4, dtype=dtype))
    assert found.log_survival(y).isfinite().all()


def test_the_loss_is_continuous_with_its_slope_at_the_edge():
    likelihood, raw = GeneralizedPareto(shape=-0.25), torch.zeros(2, 1)
    edge = 4 * (1 - 1e-6)
    y = torch.tensor([edge * (1 - 1e-10), edge * (1 + 1e-10)]).requires_grad_()
    loss = likelihood.loss(raw, y)
    (slope,) = torch.autograd.grad(loss.sum(), y)
    assert_close(loss[0], loss[1], rtol=0, atol=2e-3)
    assert_close(slope[0], slope[1], rtol=1e-3, atol=0)


def test_zero_has_the_largest_density():
    raw = torch.zeros(1, 1).requires_grad_()
    loss = GeneralizedPareto(shape=0.3).loss(raw, torch.zeros(1))
    (gradient,) = torch.autograd.grad(loss.sum(), raw)
    assert_close(loss, torch.zeros(1))
    assert_close(gradient, torch.ones(1, 1))


def test_moments_that_do_not_exist_are_infinite():
    distribution = GeneralizedParetoDistribution(torch.zeros(3), torch.tensor([0.4, 0.6, 1.2]))
    assert_close(distribution.mean, torch.tensor([1 / 0.6, 1 / 0.4, math.inf]))
    assert_close(distribution.variance.isinf(), torch.tensor([False, True, True]))
    assert_close(distribution.crps(torch.ones(3)).isinf(), torch.tensor([False, False, True]))


def test_a_predicted_shape_is_scipys():
    raw = torch.randn(64, 2)
    likelihood = GeneralizedPareto(shape="predicted")
    distribution = likelihood.distribution(raw)
    y = distribution.sample((), torch.Generator().manual_seed(0))
    frozen = stats.genpareto(distribution.shape.numpy(), scale=raw[:, 0].exp().numpy())
    assert_close(
        likelihood.loss(raw, y), -torch.as_tensor(frozen.logpdf(y.numpy())), rtol=1e-9, atol=1e-9
    )
    assert_close(
        distribution.log_survival(y), torch.as_tensor(frozen.logsf(y.numpy())), rtol=1e-9, atol=1e-9
    )
    zero = likelihood.distribution(torch.zeros(1, 2))
    assert abs(zero.shape.item()) < 1e-7


@pytest.mark.parametrize("shape", [-0.4, -0.1, 0.0, 0.2, 0.8, 2.0])
@pytest.mark.parametrize("size", [50, 1000])
def test_the_start_is_at_least_as_likely_as_scipys_fit(shape, size):
    y = torch.as_tensor(stats.genpareto(shape, scale=7).rvs(size, random_state=3))
    likelihood = GeneralizedPareto()
    likelihood.observe(y, torch.ones(size))
    shift, _ = likelihood.start(y, torch.ones(size))
    ours = likelihood.loss(shift.expand(size, 1), y).mean().item()
    c, _, scale = stats.genpareto.fit(y.numpy(), floc=0)
    theirs = -stats.genpareto(c, scale=scale).logpdf(y.numpy()).mean()
    assert ours <= theirs + 1e-9
    assert likelihood.distribution(shift).shape.item() == pytest.approx(c, abs=1e-3)


def test_short_tails_end_at_the_least_shape():
    """A triangle that rises to its end would have a shape below -1."""
    y = torch.as_tensor(np.sqrt(np.linspace(0.01, 0.99, 50)))
    likelihood = GeneralizedPareto()
    likelihood.observe(y, torch.ones(50))
    shift, _ = likelihood.start(y, torch.ones(50))
    found = likelihood.distribution(shift)
    assert found.shape.item() == pytest.approx(-0.5, abs=1e-3)
    assert likelihood.loss(shift.expand(50, 1), y).isfinite().all()


def test_zeros_alone_have_a_finite_start():
    likelihood = GeneralizedPareto()
    likelihood.observe(torch.zeros(4), torch.ones(4))
    shift, scale = likelihood.start(torch.zeros(4), torch.ones(4))
    assert shift.isfinite().all() and (scale > 0).all()


@pytest.mark.parametrize("shape, message", [(-1.0, "> -1, got -1.0"), ("free", "got 'free'")])
def test_an_impossible_shape_is_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        GeneralizedPareto(shape=shape)
