import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.likelihoods import KL, Categorical
from ansatz.spec import TargetSpec


def shares(*shape):
    return torch.softmax(torch.randn(*shape), -1)


def test_it_is_torchs_divergence():
    raw, y = torch.randn(20, 4), shares(20, 4)
    torchs = torch.nn.functional.kl_div(raw.log_softmax(-1), y, reduction="none").sum(-1)
    assert_close(KL().loss(raw, y), torchs)


def test_hard_labels_are_cross_entropy():
    raw, codes = torch.randn(20, 4), torch.randint(4, (20,))
    y = torch.nn.functional.one_hot(codes, 4)
    assert_close(KL().loss(raw, y), Categorical().loss(raw, codes))


def test_it_is_zero_exactly_where_q_is_y():
    y = shares(20, 4)
    assert_close(KL().loss(y.log(), y), torch.zeros(20))
    assert (KL().loss(torch.randn(20, 4), y) > 0).all()


def test_the_gradient_is_q_minus_y():
    raw, y = torch.randn(20, 4, requires_grad=True), shares(20, 4)
    (gradient,) = torch.autograd.grad(KL().loss(raw, y).sum(), raw)
    assert_close(gradient, raw.detach().softmax(-1) - y)


@pytest.mark.parametrize("targets", [(), (2,)])
def test_the_constant_model_is_the_weighted_mean(targets):
    y, weight = shares(30, *targets, 4), torch.randint(0, 4, (30,)).double()
    weight[0] = 0
    y[0] = torch.nan  # unobserved
    shift, scale = KL().start(y, weight)
    assert shift.shape == scale.shape == (*targets, 4)
    again = y.repeat_interleave(weight.long(), 0)
    assert_close(shift.softmax(-1), again.mean(0))


def test_a_class_that_never_occurs_stays_finite():
    y = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    shift, _ = KL().start(y, torch.ones(2))
    assert shift.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_raw_numbers_give_finite_losses_and_gradients(dtype):
    raw = torch.tensor([[50.0, -50.0, 0.0], [1e4, -1e4, 0.0]], dtype=dtype, requires_grad=True)
    y = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.25, 0.25]], dtype=dtype)
    terms = KL().loss(raw, y)
    (gradient,) = torch.autograd.grad(terms.sum(), raw)
    assert terms.dtype == dtype
    assert terms.isfinite().all() and gradient.isfinite().all()


def test_what_it_refuses():
    assert KL().outputs(TargetSpec(event=(3,))) == 3
    with pytest.raises(ValueError, match="vectors of at least 2 probabilities"):
        KL().outputs(TargetSpec(classes=3))
    with pytest.raises(DataError, match=r"numbers >= 0, got -0.5 at y\[0, 0\]"):
        KL().check(torch.tensor([[-0.5, 1.5]]))
    with pytest.raises(DataError, match=r"add up to 1, got 0.5 at y\[1\]"):
        KL().check(torch.tensor([[0.5, 0.5], [0.25, 0.25]]))
    with pytest.raises(ValueError, match=r"raw \(5, 3\) goes with y \(5, 3\), got y \(5,\)"):
        KL().loss(torch.zeros(5, 3), torch.zeros(5))
    with pytest.raises(TypeError, match="is a loss, not a likelihood"):
        KL().distribution(torch.zeros(1, 2))
