import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.likelihoods import Dice


def hard(mask):
    """Logits of a prediction that is sure."""
    return 1000 * (2 * mask.double() - 1).unsqueeze(-1)


def masks(*shape):
    return (torch.rand(*shape) < 0.3).double()


@pytest.mark.parametrize("smooth", [0.0, 1.0, 7.0])
def test_soft_dice_is_the_equation(smooth):
    """M102, image by image."""
    raw, y = torch.randn(5, 6, 7, 1), masks(5, 6, 7)
    for i, loss in enumerate(Dice(smooth=smooth).loss(raw, y)):
        p = torch.sigmoid(raw[i, ..., 0])
        dice = (2 * (p * y[i]).sum() + smooth) / (p.sum() + y[i].sum() + smooth)
        assert_close(loss, 1 - dice)


def test_identical_masks_cost_nothing():
    y = masks(4, 8, 8)
    assert_close(Dice().loss(hard(y), y), torch.zeros(4))


def test_dice_is_twice_iou_over_one_plus_iou():
    """M102."""
    predicted, y = masks(20, 8, 8), masks(20, 8, 8)
    both, either = (predicted * y).sum((1, 2)), torch.maximum(predicted, y).sum((1, 2))
    iou = both / either
    dice = 1 - Dice(smooth=0.0).loss(hard(predicted), y)
    assert_close(dice, 2 * iou / (1 + iou))


def test_empty_masks_follow_the_stated_convention():
    empty, some = torch.zeros(1, 4, 4), torch.zeros(1, 4, 4)
    some[0, 0, :3] = 1
    for smooth, cost in ((1.0, 3 / 4), (0.0, 1.0)):
        law = Dice(smooth=smooth)
        assert law.loss(hard(empty), empty).item() == 0
        assert law.loss(hard(some), empty).item() == pytest.approx(cost)
        raw = torch.zeros(1, 4, 4, 1, requires_grad=True)
        (gradient,) = torch.autograd.grad(law.loss(raw, empty).sum(), raw)
        assert (gradient > 1e-4).all() == (smooth > 0)


def test_images_do_not_know_each_other():
    raw, y = torch.randn(3, 5, 5, 1), masks(3, 5, 5)
    alone = torch.cat([Dice().loss(raw[i : i + 1], y[i : i + 1]) for i in range(3)])
    assert_close(Dice().loss(raw, y), alone)
    assert Dice().event_ndim == 2


def test_volumes_have_three_axes():
    raw, y = torch.randn(2, 3, 4, 5, 1), masks(2, 3, 4, 5)
    flat = Dice().loss(raw.reshape(2, 12, 5, 1), y.reshape(2, 12, 5))
    assert_close(Dice(axes=3).loss(raw, y), flat)


def test_a_batch_of_targets_keeps_its_shape():
    raw, y = torch.randn(6, 2, 4, 4, 1), masks(6, 2, 4, 4)
    assert Dice().loss(raw, y).shape == (6, 2)
    shift, scale = Dice().start(y, torch.ones(6))
    assert shift.shape == scale.shape == (2, 1)
    assert_close(shift[:, 0].sigmoid(), y.mean((0, 2, 3)))


def test_the_constant_model_is_the_share_of_mask_pixels():
    y, weight = masks(6, 4, 4), torch.tensor([1.0, 2.0, 0.0, 1.0, 3.0, 1.0])
    y[2] = torch.nan
    shift, _ = Dice().start(y, weight)
    again = y.repeat_interleave(weight.long(), 0)
    assert_close(shift.sigmoid(), again.mean().reshape(1))
    for constant in (torch.zeros(2, 4, 4), torch.ones(2, 4, 4)):
        assert Dice().start(constant, torch.ones(2))[0].isfinite().all()


def test_point_is_a_mask():
    raw = torch.randn(2, 4, 4, 1)
    assert_close(Dice().point(raw), (Dice().probs(raw) > 0.5).double())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("smooth", [0.0, 1.0])
def test_extreme_raw_numbers_give_finite_losses_and_gradients(smooth, dtype):
    for value in (50.0, -50.0, 1e4, -1e4):
        for mask in (0.0, 1.0):
            raw = torch.full((1, 3, 3, 1), value, dtype=dtype, requires_grad=True)
            loss = Dice(smooth=smooth).loss(raw, torch.full((1, 3, 3), mask, dtype=dtype))
            (gradient,) = torch.autograd.grad(loss.sum(), raw)
            assert loss.isfinite().all() and gradient.isfinite().all()
            assert loss.dtype == dtype


def test_gradient():
    raw, y = torch.randn(2, 3, 3, 1).requires_grad_(), masks(2, 3, 3)
    assert torch.autograd.gradcheck(lambda raw: Dice().loss(raw, y), raw)


def test_what_it_refuses():
    with pytest.raises(ValueError, match="smooth of Dice must be >= 0"):
        Dice(smooth=-1.0)
    with pytest.raises(ValueError, match="axes of Dice must be at least 1"):
        Dice(axes=0)
    with pytest.raises(DataError, match=r"shares between them, got 255.0 at y\[0, 0, 1\]"):
        Dice().check(torch.tensor([[[0.0, 255.0]]]))
    with pytest.raises(ValueError, match=r"raw \(2, 3, 3, 1\) goes with y \(2, 3, 3\)"):
        Dice().loss(torch.zeros(2, 3, 3, 1), torch.zeros(2, 3, 3, 1))
