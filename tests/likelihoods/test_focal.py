import numpy as np
import pytest
import torch
from scipy import optimize
from torch.testing import assert_close

from ansatz.likelihoods import CrossEntropy, Focal
from ansatz.spec import TargetSpec


def equation(raw, y, gamma, alpha):
    """M107, with the weight of the row's own class."""
    q = torch.softmax(raw, -1)[torch.arange(len(y)), y]
    return -torch.tensor(alpha)[y] * (1 - q) ** gamma * q.log()


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0, 5.0])
def test_softmax_is_the_equation(gamma):
    raw, y, alpha = torch.randn(40, 3), torch.randint(3, (40,)), [0.2, 1.0, 3.0]
    assert_close(Focal(gamma=gamma, alpha=alpha).loss(raw, y), equation(raw, y, gamma, alpha))


def test_binary_is_torchvisions():
    ops = pytest.importorskip("torchvision.ops")
    raw, y = torch.randn(40, 1), torch.randint(2, (40,))
    theirs = ops.sigmoid_focal_loss(raw[:, 0], y.double(), alpha=0.25, gamma=2.0)
    assert_close(Focal(alpha=[0.75, 0.25]).loss(raw, y), theirs)


def test_one_logit_is_two_of_which_the_first_is_zero():
    raw, y = torch.randn(40, 1), torch.randint(2, (40,))
    likelihood = Focal(alpha=[0.75, 0.25])
    assert likelihood.outputs(TargetSpec(classes=2)) == 1
    both = torch.cat([torch.zeros(40, 1), raw], 1)
    assert_close(likelihood.loss(raw, y), likelihood.loss(both, y))
    assert_close(likelihood.loss(raw, y), equation(both, y, 2.0, [0.75, 0.25]))
    assert_close(likelihood.probs(raw), likelihood.probs(both))


@pytest.mark.parametrize("alpha", [None, [1.0, 2.0, 0.5]])
def test_gamma_zero_is_weighted_cross_entropy(alpha):
    """M107."""
    raw, y = torch.randn(30, 3), torch.randint(3, (30,))
    weighted, focal = CrossEntropy(class_weight=alpha), Focal(gamma=0.0, alpha=alpha)
    assert_close(focal.loss(raw, y), weighted.loss(raw, y))
    assert_close(focal.probs(raw), weighted.probs(raw))


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_probs_undo_focusing_and_weights(gamma):
    """At the minimiser of the expected loss under P, ``probs`` is P."""
    truth, alpha = np.array([0.7, 0.2, 0.1]), [1.0, 2.0, 5.0]
    likelihood = Focal(gamma=gamma, alpha=alpha)

    def risk(logits):
        raw = torch.as_tensor(np.append(logits, 0.0)).expand(3, 3)
        return float(torch.as_tensor(truth) @ likelihood.loss(raw, torch.arange(3)))

    best = optimize.minimize(risk, np.zeros(2), tol=1e-12).x
    found = likelihood.probs(torch.as_tensor(np.append(best, 0.0)))
    assert_close(found, torch.as_tensor(truth), atol=1e-4, rtol=0)


def test_the_start_minimises_the_constant_model_and_probs_gives_the_frequencies():
    y = torch.tensor([0] * 12 + [1] * 5 + [2] * 3 + [3])
    likelihood = Focal(alpha=[0.1, 1.0, 2.0, 3.0])
    likelihood.outputs(TargetSpec(classes=4))
    shift, _ = likelihood.start(y, torch.ones(21))
    leaf = shift.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(likelihood.loss(leaf.expand(21, 4), y).mean(), leaf)
    assert_close(gradient, torch.zeros(4), atol=1e-12, rtol=0)
    assert_close(likelihood.probs(shift), torch.tensor([12.0, 5.0, 3.0, 1.0]) / 21)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("K", [1, 3])
def test_extreme_raw_numbers_give_finite_losses_and_gradients(K, gamma, dtype):
    raw = torch.zeros(5, K, dtype=dtype)
    raw[:, 0] = torch.tensor([0.0, 50.0, -50.0, 1e4, -1e4])
    for code in range(max(K, 2)):
        leaf = raw.clone().requires_grad_()
        terms = Focal(gamma=gamma).loss(leaf, torch.full((5,), code))
        (gradient,) = torch.autograd.grad(terms.sum(), leaf)
        assert terms.dtype == dtype
        assert terms.isfinite().all() and gradient.isfinite().all()
        assert Focal(gamma=gamma).probs(raw).isfinite().all()


def test_gradient():
    y = torch.tensor([0, 1, 2, 1])
    raw = torch.randn(4, 3).requires_grad_()
    likelihood = Focal(gamma=1.5, alpha=[1.0, 2.0, 3.0])
    assert torch.autograd.gradcheck(lambda raw: likelihood.loss(raw, y), raw)
    assert torch.autograd.gradgradcheck(lambda raw: likelihood.loss(raw, y), raw)


def test_what_it_refuses():
    with pytest.raises(ValueError, match="gamma of Focal must be >= 0 and finite, got -1"):
        Focal(gamma=-1.0)
    with pytest.raises(ValueError, match="gamma of Focal must be >= 0 and finite, got 'a'"):
        Focal(gamma="a")
    for alpha in ([1.0, 0.0], 0.25, ["a"], []):
        with pytest.raises(ValueError, match="alpha of Focal must hold positive numbers, one per"):
            Focal(alpha=alpha)
    with pytest.raises(ValueError, match="alpha has 2 entries, but y has 3 classes"):
        Focal(alpha=[1.0, 2.0]).outputs(TargetSpec(classes=3))
    with pytest.raises(TypeError, match="is a loss, not a likelihood"):
        Focal().distribution(torch.zeros(1, 2))


def test_a_factor_of_all_weights_does_not_move_the_start():
    likelihood, y, weight = Focal(), torch.tensor([0, 2, 2, 0, 2]), torch.rand(5) + 0.5
    likelihood.outputs(TargetSpec(classes=3))  # class 1 has no row
    assert_close(likelihood.start(y, 1e-5 * weight)[0], likelihood.start(y, weight)[0])
