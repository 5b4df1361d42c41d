import pytest
import torch
from torch.testing import assert_close

from ansatz import metrics
from ansatz.errors import DataError
from ansatz.likelihoods import Dice, Sum, create
from ansatz.spec import TargetSpec


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
        likelihood = Dice(smooth=smooth)
        assert likelihood.loss(hard(empty), empty).item() == 0
        assert likelihood.loss(hard(some), empty).item() == pytest.approx(cost)
        raw = torch.zeros(1, 4, 4, 1, requires_grad=True)
        (gradient,) = torch.autograd.grad(likelihood.loss(raw, empty).sum(), raw)
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
    with pytest.raises(ValueError, match="average of Dice must be 'all' or 'present', got 'some'"):
        Dice(average="some")
    with pytest.raises(ValueError, match="smooth of Dice must be >= 0 and finite, got 'a'"):
        Dice(smooth="a")
    for axes in (0, 2.5):
        with pytest.raises(ValueError, match="axes of Dice must be a whole number, at least 1"):
            Dice(axes=axes)
    with pytest.raises(DataError, match=r"shares between them, got 255.0 at y\[0, 0, 1\]"):
        Dice().check(torch.tensor([[[0.0, 255.0]]]))
    with pytest.raises(ValueError, match=r"raw \(2, 3, 3, 1\) goes with y \(2, 3, 3\)"):
        Dice().loss(torch.zeros(2, 3, 3, 1), torch.zeros(2, 3, 3, 1))


def codes(*shape, classes=4):
    return torch.randint(classes, shape)


def naive(p, y, k, smooth, keep=None):
    """One class of one image, from its definition."""
    keep = torch.ones_like(p) if keep is None else keep.double()
    hit = (y == k).double() * keep
    return 1 - (2 * (p * hit).sum() + smooth) / ((p * keep).sum() + hit.sum() + smooth)


@pytest.mark.parametrize("smooth", [0.0, 1.0])
def test_of_several_classes_it_is_the_mean_of_their_equations(smooth):
    raw, y = torch.randn(3, 5, 6, 4), codes(3, 5, 6)
    p = torch.softmax(raw, -1)
    likelihood = Dice(smooth=smooth)
    assert (
        likelihood.outputs(TargetSpec(classes=4)) == 4
        and likelihood.outputs(TargetSpec(classes=2)) == 1
    )
    exact = torch.stack(
        [sum(naive(p[i, ..., k], y[i], k, smooth) for k in range(4)) / 4 for i in range(3)]
    )
    assert_close(likelihood.loss(raw, y), exact)
    inner = torch.stack(
        [sum(naive(p[i, ..., k], y[i], k, smooth) for k in (1, 2, 3)) / 3 for i in range(3)]
    )
    assert_close(Dice(smooth=smooth, background=False).loss(raw, y), inner)


def test_the_mean_may_be_over_the_classes_present_in_the_image():
    raw, y = torch.randn(2, 5, 6, 4), codes(2, 5, 6, classes=3)
    y[1] = 2
    p = torch.softmax(raw, -1)
    loss = Dice(average="present").loss(raw, y)
    assert_close(loss[0], sum(naive(p[0, ..., k], y[0], k, 1.0) for k in range(3)) / 3)
    assert_close(loss[1], naive(p[1, ..., 2], y[1], 2, 1.0))
    background = torch.zeros(1, 5, 6)
    assert Dice(average="present", background=False).loss(raw[:1], background).item() == 0


def test_two_logits_are_one_log_odds_for_the_class_that_counts():
    raw, y = torch.randn(3, 4, 4, 2), codes(3, 4, 4, classes=2)
    odds = raw[..., 1:] - raw[..., :1]
    assert_close(Dice(background=False).loss(raw, y), Dice().loss(odds, y))


@pytest.mark.parametrize("classes", [2, 3])
def test_loss_and_metric_agree_on_hard_masks_and_empty_ones(classes):
    """The convention for empty masks is one."""
    y, guess = codes(12, 6, 6, classes=classes), codes(12, 6, 6, classes=classes)
    y[0], guess[0] = 0, 0  # both empty
    y[1], guess[1, 0, 0] = 0, 1  # the true one alone
    guess[2], y[2, 0, 0] = 0, 1
    weight = (torch.rand(12, 6, 6) < 0.7).double()
    weight[0] = 1
    one_hot = torch.nn.functional.one_hot(guess, classes).double()
    raw = 2000 * (one_hot[..., 1:] - 0.5) if classes == 2 else 1000 * one_hot
    options = {"classes": classes, "reduction": "image"}
    likelihood = Dice(smooth=0.0)
    assert_close(1 - likelihood.loss(raw, y), metrics.dice(y, guess, **options))
    assert_close(
        1 - likelihood.partial_loss(raw, y, weight)[0], metrics.dice(y, guess, weight, **options)
    )
    assert metrics.dice(y, guess, **options)[0] == 1


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("average", ["all", "present"])
def test_pixels_without_a_label_are_in_none_of_the_sums(classes, average):
    """M236: the loss of an image is that of its labelled pixels alone."""
    P = 1 if classes == 2 else classes
    raw, y = torch.randn(3, 4, 5, P), codes(3, 4, 5, classes=classes).double()
    keep = torch.rand(3, 4, 5) < 0.6
    likelihood = Dice(average=average)
    nan = torch.where(keep, y, torch.nan)
    found, image = likelihood.partial_loss(raw, nan, 3.0 * keep)
    assert_close(image, torch.full((3,), 3.0))
    for i in range(3):
        alone = likelihood.loss(
            raw[i][keep[i]].reshape(1, -1, 1, P), y[i][keep[i]].reshape(1, -1, 1)
        )
        assert_close(found[i : i + 1], alone)


def test_unlabelled_pixels_get_no_gradient_and_an_unlabelled_image_no_weight():
    raw, keep = torch.randn(2, 4, 4, 3).requires_grad_(), torch.rand(2, 4, 4) < 0.5
    keep[1] = False
    y = torch.where(keep, codes(2, 4, 4, classes=3).double(), torch.nan)
    terms, image = Dice().partial_loss(raw, y, keep.double())
    (gradient,) = torch.autograd.grad(terms.sum(), raw)
    assert terms.isfinite().all() and image.tolist() == [1, 0]
    assert (gradient[~keep] == 0).all() and (gradient[keep] != 0).any()


def test_equal_weights_of_pixels_are_a_weight_of_their_image():
    raw, y, weight = torch.randn(3, 4, 4, 1), masks(3, 4, 4), torch.tensor([1.0, 2.5, 4.0])
    terms, image = Dice().partial_loss(raw, y, weight.reshape(3, 1, 1).expand(3, 4, 4))
    assert_close(terms, Dice().loss(raw, y))
    assert_close(image, weight)


def test_the_constant_model_of_several_classes_has_their_shares():
    likelihood, y, weight = Dice(), codes(6, 4, 4), (torch.rand(6, 4, 4) < 0.5).double()
    likelihood.outputs(TargetSpec(classes=5))
    shift, scale = likelihood.start(torch.where(weight > 0, y.double(), torch.nan), weight)
    counts = torch.bincount(y[weight > 0], minlength=5).double()
    counts[4] = 0.5
    assert_close(shift.exp(), counts / counts.sum())
    assert shift.shape == scale.shape == (5,)
    raw = shift + torch.randn(6, 4, 4, 5)
    assert_close(likelihood.point(raw), likelihood.probs(raw).argmax(-1))
    with pytest.raises(DataError, match=r"class codes 0..4, got 7.0 at y\[0, 0, 1\]"):
        likelihood.check(torch.tensor([[[0.0, 7.0]]]))


def test_the_gradient_of_several_classes_is_that_of_differences():
    raw, y = torch.randn(1, 3, 3, 3).requires_grad_(), codes(1, 3, 3, classes=3)
    weight = torch.rand(1, 3, 3)
    assert torch.autograd.gradcheck(lambda raw: Dice().partial_loss(raw, y, weight)[0], raw)


def test_other_likelihoods_say_that_an_outcome_has_one_weight():
    with pytest.raises(TypeError, match=r"dirichlet needs one weight per outcome.*\(2, 3\) differ"):
        create("dirichlet").partial_loss(torch.zeros(2, 3), torch.ones(2, 3), torch.ones(2, 3))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("make", [Dice, Sum])
def test_a_factor_of_all_weights_does_not_move_the_start(make, classes):
    likelihood = make()
    likelihood.outputs(TargetSpec((4, 4), classes))
    y = torch.randint(0, 2, (3, 4, 4))  # of four classes two have no pixel
    weight = torch.rand(3, 4, 4) + 0.5
    shift = likelihood.start(y, weight)[0]
    for factor in (1e-6, 1e3):
        assert_close(likelihood.start(y, factor * weight)[0], shift)
    for constant in (torch.zeros(3, 4, 4), torch.ones(3, 4, 4)):
        assert likelihood.start(constant, 1e-4 * weight)[0].isfinite().all()


def test_half_a_pixel_is_that_of_equal_weights():
    """16 pixels without one of the mask: 1/2 to 31/2, whatever they all weigh."""
    for weight in (1.0, 1e-4, 100.0):
        shift, _ = Dice().start(torch.zeros(1, 4, 4), torch.full((1,), weight))
        assert_close(shift.exp(), torch.tensor([1 / 31]))


def test_half_precision_holds_masks_of_more_pixels_than_its_numbers():
    y, raw = torch.ones(1, 300, 300), torch.full((1, 300, 300, 1), -3.0, dtype=torch.float16)
    raw.requires_grad_()
    loss = Dice().loss(raw, y)
    loss.sum().backward()
    assert_close(loss, Dice().loss(raw.float(), y))
    assert raw.grad.isfinite().all()


def test_raw_numbers_in_the_wrong_axis_are_reported_where_they_belong():
    y = torch.zeros(2, 5, 6)
    with pytest.raises(ValueError, match=r"got y \(2, 5, 6\).*loss\(raw, y, axis=1\)"):
        Dice().loss(torch.zeros(2, 1, 5, 6), y)
    with pytest.raises(ValueError, match=r"an axis of its own: raw.unsqueeze\(-1\)"):
        Dice().loss(torch.zeros(2, 5, 6), y)
