import json

import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.likelihoods import Bernoulli, Categorical, CrossEntropy, Dice, Focal, Sum, create
from ansatz.spec import TargetSpec

TERMS = {"dice": 0.7, "categorical": 1.5, "focal": 0.5}


def example(classes, *shape):
    raw = torch.randn(*shape, 1 if classes == 2 else classes)
    return raw, torch.randint(classes, shape)


def naive(raw, y):
    """0.7 dice + 1.5 cross-entropy + 0.5 focal, each pixel's loss averaged over its image."""
    logits = torch.cat([torch.zeros_like(raw), raw], -1) if raw.shape[-1] == 1 else raw
    log_q = torch.log_softmax(logits, -1).gather(-1, y.unsqueeze(-1)).squeeze(-1)
    focal = -((1 - log_q.exp()) ** 2) * log_q
    return 0.7 * Dice().loss(raw, y) + (-1.5 * log_q + 0.5 * focal).mean((1, 2))


@pytest.mark.parametrize("classes", [2, 4])
def test_it_is_the_weighted_sum_with_pixels_averaged(classes):
    raw, y = example(classes, 3, 5, 6)
    likelihood = Sum(TERMS)
    assert likelihood.outputs(TargetSpec(classes=classes)) == raw.shape[-1]
    assert_close(likelihood.loss(raw, y), naive(raw, y))


def test_two_classes_are_bernoullis_in_every_term():
    raw, y = example(2, 3, 4, 4)
    pixels = Bernoulli().loss(raw, y).mean((1, 2))
    for name in ("categorical", "cross_entropy", "bernoulli"):
        assert_close(Sum({name: 1.0}).loss(raw, y), pixels)


@pytest.mark.parametrize("classes", [2, 3])
def test_pixels_without_a_label_change_neither_loss_nor_gradient(classes):
    raw, y = example(classes, 3, 4, 5)
    keep = torch.rand(3, 4, 5) < 0.6
    raw.requires_grad_()
    nan = torch.where(keep, y.double(), torch.nan)
    terms, image = Sum(TERMS).partial_loss(raw, nan, keep.double())
    (gradient,) = torch.autograd.grad(terms.sum(), raw)
    assert_close(image, torch.ones(3))
    assert (gradient[~keep] == 0).all() and gradient.isfinite().all()
    for i in range(3):
        alone = Sum(TERMS).loss(
            raw[i][keep[i]].unsqueeze(0).unsqueeze(2), y[i][keep[i]].reshape(1, -1, 1)
        )
        assert_close(terms[i : i + 1], alone)


def test_equal_weights_of_pixels_are_a_weight_of_their_image():
    raw, y = example(3, 2, 4, 4)
    terms, image = Sum(TERMS).partial_loss(raw, y, torch.full((2, 4, 4), 2.0))
    assert_close(terms, Sum(TERMS).loss(raw, y))
    assert image.tolist() == [2, 2]


def test_volumes_have_three_axes():
    raw, y = torch.randn(2, 3, 4, 5, 1), torch.randint(2, (2, 3, 4, 5))
    likelihood = Sum({"dice": 1, "bernoulli": 1}, axes=3)
    flat = Sum({"dice": 1, "bernoulli": 1}).loss(raw.reshape(2, 12, 5, 1), y.reshape(2, 12, 5))
    assert_close(likelihood.loss(raw, y), flat)
    assert likelihood.event_ndim == 3


@pytest.mark.parametrize("classes", [2, 3])
def test_the_constant_model_has_the_shares_of_the_classes(classes):
    _, y = example(classes, 3, 5, 6)
    likelihood = Sum(
        {"dice": 1, "cross_entropy": 1}, options={"cross_entropy": {"class_weight": "balanced"}}
    )
    P = likelihood.outputs(TargetSpec(classes=classes))
    likelihood.check(y)
    likelihood.observe(y, torch.ones(3))
    shift, scale = likelihood.start(y, torch.ones(3))
    shares = torch.bincount(y.flatten()) / y.numel()
    assert shift.shape == scale.shape == (P,)
    assert_close(torch.softmax(likelihood.logits(shift), -1), shares.double())
    assert_close(
        likelihood.losses["cross_entropy"].class_weight.value, 1 / (classes * shares.double())
    )


def test_point_and_probabilities_are_those_of_the_shared_logits():
    raw, _ = example(4, 2, 3, 3)
    assert_close(Sum().probs(raw), Categorical().probs(raw))
    assert_close(Sum().point(raw), raw.argmax(-1))
    raw, _ = example(2, 2, 3, 3)
    assert_close(Sum().probs(raw), torch.sigmoid(raw[..., 0]))
    assert_close(Sum().point(raw), (raw[..., 0] > 0).long())


def test_name_and_options_remake_it_from_json():
    likelihood = Sum({"dice": 1, "focal": 0.5}, options={"focal": {"gamma": 1.0}})
    again = create(likelihood.name, **json.loads(json.dumps(likelihood.options)))
    raw, y = example(3, 2, 4, 4)
    assert torch.equal(again.loss(raw, y), likelihood.loss(raw, y))
    assert not likelihood.has_distribution and create("sum").terms == {
        "dice": 1.0,
        "categorical": 1.0,
    }


def test_pixel_losses_take_images_of_classes():
    """Focal loss and cross-entropy on (B, H, W, K) are those of the pixels one by one."""
    raw, y = example(4, 2, 3, 5)
    for likelihood in (
        Focal(alpha=[1.0, 2.0, 3.0, 4.0]),
        CrossEntropy(label_smoothing=0.1),
        Categorical(),
    ):
        flat = likelihood.loss(raw.reshape(-1, 4), y.flatten())
        assert_close(likelihood.loss(raw, y), flat.reshape(2, 3, 5))


def test_gradient():
    raw, y = torch.randn(1, 3, 3, 3).requires_grad_(), torch.randint(3, (1, 3, 3))
    assert torch.autograd.gradcheck(lambda raw: Sum(TERMS).loss(raw, y), raw)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"terms": {"mse": 1.0}}, "sum can add bernoulli, .*; got 'mse'"),
        ({"terms": {"dice": 0}}, "weight of 'dice' in sum must be positive, got 0"),
        ({"terms": []}, r"must be like \{.*\}, got \[\]"),
        ({"options": ["a"]}, r"options of sum must be like \{.*\}, got \['a'\]"),
        ({"options": {"dice": "x"}}, r"options of sum must be like \{.*, got \{'dice': 'x'\}"),
        ({"terms": {"focal": 1}, "axes": 0}, "axes of sum must be a whole number.*, got 0"),
        ({"axes": 1.5}, "axes of sum must be a whole number.*, got 1.5"),
        ({"options": {"focal": {}}}, "options for 'focal', which is none of its terms"),
        ({"options": {"categorical": {"reference": True}}}, "leave out 'reference'"),
    ],
)
def test_what_it_refuses(arguments, message):
    with pytest.raises(UsageError, match=message):
        Sum(**arguments)
    with pytest.raises(UsageError, match="bernoulli has two classes, y has 3"):
        Sum({"bernoulli": 1}).outputs(TargetSpec(classes=3))
