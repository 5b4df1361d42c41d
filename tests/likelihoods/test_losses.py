import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import MAE, MSE, CrossEntropy, Huber
from ansatz.spec import TargetSpec

raw_and_y = pytest.mark.parametrize("rows", [30])


@raw_and_y
def test_mse_is_torchs_and_its_minimiser_the_mean(rows):
    """M094; the lecture's half sum of squares differs by a factor."""
    raw, y = torch.randn(rows, 1), torch.randn(rows)
    assert_close(MSE().loss(raw, y), torch.nn.functional.mse_loss(raw[:, 0], y, reduction="none"))
    assert_close(MSE().start(y, torch.ones(rows))[0], y.mean().reshape(1))


@raw_and_y
def test_mae_is_torchs_and_its_minimiser_the_median(rows):
    """M101."""
    raw, y = torch.randn(rows, 1), torch.randn(rows)
    assert_close(MAE().loss(raw, y), torch.nn.functional.l1_loss(raw[:, 0], y, reduction="none"))
    ordered = y.sort().values
    middle = ordered[rows // 2 - 1 : rows // 2 + 1].mean()
    assert_close(MAE().start(y, torch.ones(rows))[0], middle.reshape(1))


@raw_and_y
def test_huber_is_torchs(rows):
    """M109."""
    raw, y = torch.zeros(rows, 1), 3 * torch.randn(rows)
    torchs = torch.nn.HuberLoss(delta=0.7, reduction="none")
    assert_close(Huber(delta=0.7).loss(raw, y), torchs(raw[:, 0], y))


def test_huber_is_continuously_differentiable_at_delta():
    """M109: value and slope agree on both sides of |r| = delta."""
    for side in (-1.0, 1.0):
        y = torch.tensor([side * (1.345 - 1e-9), side * (1.345 + 1e-9)], requires_grad=True)
        loss = Huber().loss(torch.zeros(2, 1), y)
        (slope,) = torch.autograd.grad(loss.sum(), y)
        assert_close(loss[0], loss[1], atol=1e-8, rtol=0)
        assert_close(slope[0], slope[1], atol=1e-8, rtol=0)
        assert_close(slope[1], torch.tensor(side * 1.345))


def test_huber_tends_to_half_mse_and_to_delta_mae():
    """M109: delta to infinity and delta to 0."""
    raw, y = torch.zeros(30, 1), torch.randn(30)
    assert_close(Huber(delta=1e9).loss(raw, y), MSE().loss(raw, y) / 2)
    assert_close(Huber(delta=1e-9).loss(raw, y) / 1e-9, MAE().loss(raw, y))


def test_hubers_delta_counts_in_median_absolute_deviations():
    y = torch.cat([torch.randn(999), torch.tensor([1e9])])
    law = Huber()
    law.observe(y, torch.ones(1000))
    exact = 1.4826 * (y - y.median()).abs().median()
    assert law.unit.value.item() == pytest.approx(exact.item(), rel=1e-2)
    assert law.start(y, torch.ones(1000))[0].abs().item() < 0.2


@pytest.mark.parametrize("law", [MSE(), MAE(), Huber()], ids=["mse", "mae", "huber"])
def test_the_training_loss_does_not_depend_on_the_unit_of_y(law):
    y, f = torch.randn(50), torch.randn(50, 1)
    law.observe(y, torch.ones(50))
    metres = law.training_loss(f, y)
    law.observe(1000 * y, torch.ones(50))
    assert_close(law.training_loss(1000 * f, 1000 * y), metres)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.5]])
def test_cross_entropy_is_torchs(smoothing, weight):
    raw, y = torch.randn(30, 3), torch.randint(3, (30,))
    tensor = None if weight is None else torch.tensor(weight)
    torchs = torch.nn.CrossEntropyLoss(tensor, label_smoothing=smoothing, reduction="none")
    law = CrossEntropy(class_weight=weight, label_smoothing=smoothing)
    assert_close(law.loss(raw, y), torchs(raw, y))


def test_the_weighted_minimiser_is_undone_by_probs():
    """The constant that minimises weighted cross-entropy gives back the plain frequencies."""
    y = torch.tensor([0, 0, 0, 0, 0, 1, 1, 2])
    law = CrossEntropy(class_weight="balanced")
    law.outputs(TargetSpec(classes=3))
    law.observe(y, torch.ones(8))
    assert_close(law.class_weight.value, torch.tensor([8 / 15, 8 / 6, 8 / 3]))
    shift, _ = law.start(y, torch.ones(8))
    assert_close(shift.exp(), torch.full((3,), 1 / 3))
    assert_close(law.probs(shift), torch.tensor([5.0, 2.0, 1.0]) / 8)


def test_class_weights_must_match_the_classes():
    with pytest.raises(ValueError, match="class_weight has 2 entries, but y has 3 classes"):
        CrossEntropy(class_weight=[1.0, 2.0]).outputs(TargetSpec(classes=3))
    with pytest.raises(ValueError, match="class weights must be positive"):
        CrossEntropy(class_weight=[1.0, 0.0])
    with pytest.raises(ValueError, match="numbers or 'balanced', got 'even'"):
        CrossEntropy(class_weight="even")
    with pytest.raises(ValueError, match=r"label_smoothing must be in \[0, 1\), got 1"):
        CrossEntropy(label_smoothing=1)
    with pytest.raises(ValueError, match="delta of Huber must be positive"):
        Huber(delta=0)
