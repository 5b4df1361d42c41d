import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import Bernoulli, BernoulliDistribution


def test_the_loss_is_binary_cross_entropy_with_logits():
    """M090, M097; E20: the second term is log(1 - sigma(f))."""
    raw, y = 3 * torch.randn(20, 1), (torch.rand(20) < 0.5).double()
    torchs = torch.nn.BCEWithLogitsLoss(reduction="none")
    assert_close(Bernoulli().loss(raw, y), torchs(raw[:, 0], y))
    p = raw[:, 0].sigmoid()
    assert_close(Bernoulli().loss(raw, y), -(y * p.log() + (1 - y) * (1 - p).log()))


def test_the_gradient_is_probability_less_outcome():
    """M096."""
    raw, y = torch.randn(20, 1, requires_grad=True), (torch.rand(20) < 0.5).double()
    (gradient,) = torch.autograd.grad(Bernoulli().loss(raw, y).sum(), raw)
    assert_close(gradient[:, 0], raw[:, 0].detach().sigmoid() - y)


@pytest.mark.parametrize("logit", [-1e4, -50.0, 50.0, 1e4])
def test_every_log_probability_is_exact_at_extreme_logits(logit):
    likelihood, one = BernoulliDistribution(torch.tensor([logit])), torch.ones(1)
    found = likelihood.log_prob(one).item()
    assert found == pytest.approx(-np.logaddexp(0, -logit), rel=1e-14)
    assert likelihood.log_survival(0 * one).item() == found
    assert (
        likelihood.log_cdf(0 * one).item()
        == BernoulliDistribution(-likelihood.logits).log_prob(one).item()
    )


def test_what_is_neither_0_nor_1_has_no_probability():
    distribution = BernoulliDistribution(torch.zeros(2))
    assert_close(distribution.log_prob(torch.tensor([0.5, 2.0])), torch.full((2,), -torch.inf))


def test_a_single_class_starts_half_a_row_from_certainty():
    shift, _ = Bernoulli().start(torch.ones(9), torch.ones(9))
    assert shift.sigmoid().item() == pytest.approx(1 - 0.5 / 10)
    weights = torch.full((4,), 0.25)  # weights need not be counts
    shift, _ = Bernoulli().start(torch.tensor([0.0, 1.0, 0.0, 0.0]), weights)
    assert shift.sigmoid().item() == pytest.approx(0.25)
