import torch
from torch.testing import assert_close

from ansatz.likelihoods import Exponential, ExponentialDistribution, Gamma


def test_it_is_the_gamma_likelihood_with_dispersion_one():
    raw, y = torch.randn(20, 1), torch.rand(20) * 3
    ours, gamma = Exponential(), Gamma(dispersion=1.0)
    assert_close(ours.loss(raw, y), gamma.loss(raw, y))
    assert_close(ours.unit_deviance(raw, y), gamma.unit_deviance(raw, y))
    one, other = ours.distribution(raw), gamma.distribution(raw)
    assert_close(one.crps(y), other.crps(y), rtol=1e-10, atol=1e-12)
    assert_close(one.log_cdf(y), other.log_cdf(y))


def test_it_has_no_memory():
    likelihood, s, t = ExponentialDistribution(torch.randn(10)), torch.rand(10), torch.rand(10)
    together = likelihood.log_survival(s + t)
    assert_close(together, likelihood.log_survival(s) + likelihood.log_survival(t))


def test_a_zero_is_an_ordinary_outcome():
    raw = torch.randn(3, 1).requires_grad_()
    loss = Exponential().loss(raw, torch.zeros(3))
    assert_close(loss, raw[:, 0])
    (gradient,) = torch.autograd.grad(loss.sum(), raw)
    assert_close(gradient, torch.ones(3, 1))


def test_zeros_alone_have_a_finite_start():
    shift, scale = Exponential().start(torch.zeros(4), torch.ones(4))
    assert shift.isfinite().all() and (scale > 0).all()


def test_the_edge_of_the_support_has_no_mass_below():
    likelihood, y = ExponentialDistribution(torch.zeros(2)), torch.tensor([-1.0, torch.inf])
    assert_close(likelihood.cdf(y), torch.tensor([0.0, 1.0]))
    assert_close(likelihood.log_cdf(y), torch.tensor([-torch.inf, 0.0]))
    assert_close(likelihood.log_survival(y), torch.tensor([0.0, -torch.inf]))
    assert_close(likelihood.log_prob(y), torch.full((2,), -torch.inf))


def test_single_precision_keeps_the_far_tail():
    distribution = ExponentialDistribution(torch.tensor([1.5], dtype=torch.float32))
    y = torch.tensor([5e4], dtype=torch.float32)
    exact = -y.double() * (-distribution.log_mean.double()).exp()
    assert_close(distribution.log_survival(y).double(), exact, rtol=3e-7, atol=0)


def test_both_tails_have_second_derivatives():
    log_mean, y = torch.randn(4).requires_grad_(), torch.rand(4).requires_grad_()
    for tail in ("log_cdf", "log_survival"):
        assert torch.autograd.gradgradcheck(
            lambda m, y, tail=tail: getattr(ExponentialDistribution(m), tail)(y), (log_mean, y)
        )
