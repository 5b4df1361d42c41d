"""The contract of every augmentation, run for each of them."""

import json
import math
from dataclasses import FrozenInstanceError, fields

import pytest
import torch
from torch.testing import assert_close

from ansatz.data import augmentation
from ansatz.data.augmentation import (
    Affine,
    Blur,
    Brightness,
    Compose,
    Contrast,
    Crop,
    Elastic,
    Flip,
    Hue,
    Noise,
    PcaColor,
    RandomApply,
    RandomErasing,
    Rotate,
    Rotate90,
    Saturation,
    Scale,
    Shift,
    from_record,
    to_record,
)
from ansatz.errors import UsageError

PRINCIPAL = {"values": (0.2, 0.5, 1.0), "vectors": torch.eye(3).tolist()}
ROWS = {  # augmentation, the same of no strength (or None), the numbers of axes that it takes
    "flip": (Flip(), Flip(p=0.0), (1, 2, 3)),
    "rotate90": (Rotate90(), None, (2, 3)),
    "shift": (Shift(2), Shift(0), (1, 2, 3)),
    "crop": (Crop(margin=2), Crop(), (1, 2, 3)),
    "affine": (Affine(20, scale=0.2, shear=0.1, shift=1.5), Affine(), (1, 2, 3)),
    "rotate": (Rotate(30), Rotate(0), (2, 3)),
    "scale": (Scale(0.2), Scale(0), (1, 2, 3)),
    "elastic": (Elastic(1.5), Elastic(0.0), (1, 2, 3)),
    "random_erasing": (RandomErasing(3), RandomErasing(0), (1, 2, 3)),
    "noise": (Noise(0.1), Noise(0.0), (1, 2, 3)),
    "blur": (Blur(0.5, 1.5), Blur(0.0, 0.0), (1, 2, 3)),
    "brightness": (Brightness(0.5), Brightness(0.0), (1, 2, 3)),
    "contrast": (Contrast(0.5), Contrast(0.0), (1, 2, 3)),
    "saturation": (Saturation(0.5), Saturation(0.0), (1, 2, 3)),
    "hue": (Hue(0.3), Hue(0.0), (1, 2, 3)),
    "pca_color": (PcaColor(**PRINCIPAL), PcaColor(**PRINCIPAL, scale=0.0), (1, 2, 3)),
    "compose": (Compose([Flip(), Noise(0.1)]), Compose([]), (1, 2, 3)),
    "random_apply": (RandomApply(0.5, Shift(1)), RandomApply(0.0, Shift(1)), (1, 2, 3)),
}
MOVING = {"flip", "rotate90", "shift", "crop", "random_apply"}
every_row = pytest.mark.parametrize("augment, idle, axes", ROWS.values(), ids=ROWS)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def grids(axes, count=6, side=9):
    size = (side,) * axes
    return torch.rand(count, 3, *size), torch.randint(4, (count, *size))


def test_every_name_is_tested():
    mixing = {"mixup", "cut_mix"}  # of classes too: test_mixing.py
    assert set(augmentation.names()) == set(ROWS) | mixing


@every_row
def test_shapes_and_types_stay_on_one_two_and_three_axes(augment, idle, axes):
    for n in axes:
        x, masks = grids(n)
        for made in (x, x.float()):
            y, moved = augment(made, masks, seeded())
            assert (y.shape, y.dtype) == (made.shape, made.dtype) and y.isfinite().all()
            assert (moved.shape, moved.dtype) == (masks.shape, masks.dtype)
            assert set(moved.unique().tolist()) <= set(masks.unique().tolist())


@every_row
def test_one_state_of_the_generator_is_one_batch(augment, idle, axes):
    x, masks = grids(axes[0])
    before, state = x.clone(), torch.get_rng_state()
    first, again, other = (augment(x, masks, seeded(s)) for s in (1, 1, 2))
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    assert not torch.equal(first[0], other[0])
    assert torch.equal(x, before), "x was changed in place"
    assert torch.equal(torch.get_rng_state(), state), "the global generator was used"


@every_row
def test_every_example_has_a_draw_of_its_own(augment, idle, axes):
    x, _ = grids(axes[0], count=1)
    y = augment(x.expand(20, *x.shape[1:]), None, seeded())
    assert len({tuple(each.flatten().tolist()) for each in y}) > 1


@every_row
def test_no_strength_is_the_identity(augment, idle, axes):
    if idle is None:
        pytest.skip("turns have no strength")
    x, masks = grids(axes[0])
    y, moved = idle(x, masks, seeded())
    assert_close(y, x)
    assert torch.equal(moved, masks)


@every_row
def test_masks_do_not_change_what_happens_to_the_image(augment, idle, axes):
    x, masks = grids(axes[0])
    assert torch.equal(augment(x, masks, seeded())[0], augment(x, None, seeded()))


@every_row
def test_an_empty_batch_stays_empty(augment, idle, axes):
    x, masks = grids(axes[0], count=0)
    y, moved = augment(x, masks, seeded())
    assert y.shape == x.shape and moved.shape == masks.shape


@pytest.mark.parametrize("name", ROWS)
def test_bytes_are_moved_but_not_computed(name):
    augment, _, axes = ROWS[name]
    x = torch.randint(256, (6, 3, *(9,) * axes[0]), dtype=torch.uint8)
    if name in MOVING:
        moved = augment(x, None, seeded())
        assert moved.dtype == torch.uint8
        assert torch.equal(moved.double(), augment(x.double(), None, seeded()))
    else:
        with pytest.raises(UsageError, match=r"needs floats, got torch.uint8.*/ 255"):
            augment(x, None, seeded())


def as_mask(name):
    """The same with images moved to the nearest pixel, where there is such an option."""
    augment = ROWS[name][0]
    if "interpolation" not in {field.name for field in fields(augment)}:
        return augment
    return type(augment)(**{**vars(augment), "interpolation": "nearest"})


@pytest.mark.parametrize("padding", ["reflect", "border", "zeros"])
@pytest.mark.parametrize(
    "name", ["flip", "rotate90", "shift", "crop", "affine", "rotate", "elastic"]
)
def test_an_image_and_its_mask_move_together(name, padding):
    augment = as_mask(name)
    if "padding" in {field.name for field in fields(augment)}:
        augment = type(augment)(**{**vars(augment), "padding": padding})
    masks = torch.randint(1, 5, (8, 11, 11))
    y, moved = augment(masks.unsqueeze(1).double(), masks, seeded())
    seen = moved >= 0  # a pixel from outside is black and its label unknown
    assert torch.equal(y.squeeze(1).long()[seen], moved[seen])
    assert (y.squeeze(1)[~seen] == 0).all()
    assert seen.all() or padding == "zeros"


@pytest.mark.parametrize(
    "name", ["brightness", "contrast", "saturation", "hue", "blur", "random_erasing"]
)
def test_images_stay_between_0_and_1(name):
    y = ROWS[name][0](torch.rand(50, 3, 4, 4).round(), None, seeded())
    assert y.min() >= 0 and y.max() <= 1 + 1e-12
    clipped = Noise(2.0, clip=True)(torch.rand(5, 3, 4, 4), None, seeded())
    assert clipped.min() >= 0 and clipped.max() <= 1


@every_row
def test_options_go_through_json(augment, idle, axes):
    written = json.loads(json.dumps(to_record(augment)))
    assert from_record(written) == augment
    options = {key: value for key, value in written.items() if key != "name"}
    if not {"parts", "augment"} & set(options):
        assert augmentation.create(written["name"], **options) == augment


@every_row
def test_an_augmentation_cannot_be_changed(augment, idle, axes):
    with pytest.raises(FrozenInstanceError):
        augment.strength = 1


WRONG = {
    "p of Flip must be a number in [0, 1], got 1.5": lambda: Flip(p=1.5),
    "axes of Flip must be some of -1, -2, -3": lambda: Flip((0,)),
    "pixels of Shift must be a whole number from 0 on, got -1": lambda: Shift(-1),
    "padding of Shift must be one of reflect, border, zeros": lambda: Shift(padding="wrap"),
    "size of Crop must be a whole number from 1 on, got -2": lambda: Crop((4, -2)),
    "degrees of Affine must be a number in [0, 180], got nan": lambda: Rotate(math.nan),
    "interpolation of Affine must be one of": lambda: Affine(interpolation="cubic"),
    "nodes of Elastic must be a whole number from 2 on": lambda: Elastic(nodes=1),
    "strength of Contrast must be": lambda: Contrast(-0.1),
    "strength of Hue must be a number in [0, 0.5]": lambda: Hue(0.7),
    "low of Blur must be at most high": lambda: Blur(2.0, 1.0),
    "PcaColor needs as many vectors": lambda: PcaColor([1.0], []),
    "Compose is made of augmentations, got 'flip'": lambda: Compose(["flip"]),
    "unknown augmentation 'flop'. Did you mean 'flip'?": lambda: augmentation.create("flop"),
    "written as {'name': ...}": lambda: from_record({"pixels": 2}),
    "needs x of shape (B, C, H, W)": lambda: Rotate()(torch.rand(2, 3, 8)),
    "needs square grids, got (4, 5)": lambda: Rotate90()(torch.rand(2, 1, 4, 5)),
    "axis -2 needs a grid that has it": lambda: Flip((-2,))(torch.rand(2, 1, 4)),
    "masks of Flip must have shape (2, 4), got (2, 5)": lambda: Flip()(
        torch.rand(2, 1, 4), torch.zeros(2, 5)
    ),
    "need a type that has -1, unknown, got torch.uint8": lambda: Flip()(
        torch.rand(2, 1, 4), torch.zeros(2, 4, dtype=torch.uint8)
    ),
    "does not fit a grid of (4,)": lambda: Crop(9)(torch.rand(2, 1, 4)),
    "size of Crop has 2 axes, the grid has 1": lambda: Crop((2, 2))(torch.rand(2, 1, 4)),
    "keeps the size (4,), got (2,)": lambda: RandomApply(1.0, Crop(2))(torch.rand(2, 1, 4)),
    "needs the channels red, green, blue, got 1": lambda: Hue()(torch.rand(2, 1, 4, 4)),
    "was fitted to 3 channels, got 1": lambda: PcaColor(**PRINCIPAL)(torch.rand(2, 1, 4, 4)),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_use_is_named(text):
    with pytest.raises(UsageError) as caught:
        WRONG[text]()
    assert text in str(caught.value)


def test_sometimes_is_now_and_then():
    x = torch.zeros(4000, 1, 2)
    y = RandomApply(0.3, Noise())(x, None, seeded())
    share = float((y != x).any(2).double().mean())
    assert abs(share - 0.3) < 5 * (0.3 * 0.7 / 4000) ** 0.5


def test_composing_is_one_after_the_other():
    x, _ = grids(2)
    generator = seeded()
    one = Shift(2)(x, None, generator)
    both = Noise(0.1)(one, None, generator)
    assert torch.equal(Compose([Shift(2), Noise(0.1)])(x, None, seeded()), both)


def test_a_class_of_ones_own_can_be_named():
    class Silence(augmentation.Photometric):
        def adjust(self, x, generator):
            return 0 * x

    with pytest.raises(UsageError, match="Silence has no name"):
        to_record(Silence())
    assert Silence()(torch.rand(2, 1, 4))[0].sum() == 0


@pytest.mark.filterwarnings("error")
def test_a_single_image_is_not_taken_for_signals_in_silence():
    image = torch.rand(3, 32, 40)
    with pytest.warns(UserWarning, match=r"\(3, 32, 40\) for 3 signals.*x\[None\]"):
        Flip()(image)
    Flip()(image[None])
    Shift(2)(torch.rand(4, 12, 500))  # a batch of ECGs
    with pytest.raises(UsageError, match=r"\(B, C, H, W\) or .*, got \(3, 32, 40\).*x\[None\]"):
        Rotate90()(image)
    with pytest.raises(UsageError, match=r"as a tensor, got ndarray.*torch.as_tensor"):
        Flip()(image[None].numpy())
