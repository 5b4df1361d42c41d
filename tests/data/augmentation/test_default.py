"""What a fit does when it is not told, and what becomes of a batch."""

import pytest
import torch
from torch.testing import assert_close

from ansatz.data import Batch
from ansatz.data.augmentation import (
    Affine,
    Compose,
    Crop,
    Flip,
    OnBatches,
    RandomApply,
    RandomErasing,
    Shift,
    default_augmentation,
)
from ansatz.spec import InputSpec


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


SPECS = [
    (InputSpec.grid(channels, *size), masks, examples)
    for channels in (1, 3, 5)
    for size in [(100,), (28, 28), (96, 64), (16, 16, 16)]
    for masks in (False, True)
    for examples in (50, 100_000)
]


@pytest.mark.parametrize("spec, masks, examples", SPECS)
def test_every_shape_has_one_that_runs_and_keeps_it(spec, masks, examples):
    augment = default_augmentation(spec, masks=masks, examples=examples)
    x = torch.rand(4, spec.features, *spec.size)
    labels = torch.randint(3, (4, *spec.size)) if masks else None
    y, moved = augment.pair(x, labels, seeded())
    assert y.shape == x.shape and not torch.equal(y, x)
    assert moved is None or (moved.shape == labels.shape and moved.min() >= 0)


def test_what_may_be_a_digit_is_never_mirrored():
    for side in (16, 28, 32, 64):
        augment = default_augmentation(InputSpec.grid(1, side, side), examples=60_000)
        assert all(isinstance(part, RandomApply) for part in augment.parts)
        motions = [part.augment for part in augment.parts]
        assert all(isinstance(motion, Affine) and motion.degrees <= 15 for motion in motions)


def test_half_of_the_small_grey_images_stay_as_they_are():
    augment = default_augmentation(InputSpec.grid(1, 28, 28), examples=60_000)
    x = torch.rand(1000, 1, 28, 28)
    moved = augment(x, None, seeded())
    assert 0.45 < (moved != x).flatten(1).any(1).double().mean() < 0.55


@pytest.mark.parametrize("channels", [1, 3])
def test_an_angle_that_is_seen_in_an_image_stays_true(channels):
    augment = default_augmentation(InputSpec.grid(channels, 32, 32), numbers=True, examples=900)
    x = torch.rand(20, channels, 32, 32)
    moved = augment(x, None, seeded())
    reach = range(-2, 3)
    for before, after in zip(x, moved, strict=True):
        inner = after[:, 4:-4, 4:-4]
        ways = [before.roll((i, j), (1, 2))[:, 4:-4, 4:-4] for i in reach for j in reach]
        assert any(torch.equal(way, inner) for way in ways)


def test_rows_of_tables_and_grids_of_unknown_size_have_none():
    for spec in (InputSpec.of(4), InputSpec.grid(3), InputSpec.grid(1, 4, 4)):
        assert default_augmentation(spec, examples=100) is None


def test_bytes_become_standardised_floats():
    x = torch.randint(256, (5, 2, 4, 4), dtype=torch.uint8)
    transform = OnBatches(mean=[0.2, 0.4], scale=[0.5, 2.0])
    batch = transform(Batch.of(x, torch.zeros(5)))
    m, s = torch.tensor([0.2, 0.4]).view(2, 1, 1), torch.tensor([0.5, 2.0]).view(2, 1, 1)
    assert batch.inputs[0].dtype == torch.float32
    assert_close(batch.inputs[0].double(), (x / 255.0 - m) / s, atol=1e-6, rtol=1e-6)


def test_cells_from_outside_weigh_nothing():
    masks = torch.ones(50, 6, dtype=torch.long)
    rows = Batch.of(torch.ones(50, 1, 6), masks, weight=torch.full((50,), 2.0))
    batch = OnBatches(Shift(2, padding="zeros"), masks=True)(rows, seeded())
    outside = batch.inputs[0].squeeze(1) == 0
    assert outside.any()
    assert torch.equal(batch.weight, torch.where(outside, 0.0, 2.0))
    assert batch.target.min() >= 0 and torch.equal(batch.target, (~outside).long())


def test_targets_that_are_no_masks_stay_where_they_are():
    rows = Batch.of((torch.rand(3, 1, 8), torch.arange(3)), torch.arange(3.0))
    batch = OnBatches(Shift(2))(rows, seeded())
    assert batch.target is rows.target and batch.inputs[1] is rows.inputs[1]
    assert not torch.equal(batch.inputs[0], rows.inputs[0])


def test_moving_bytes_first_gives_the_same_floats():
    x = torch.randint(256, (9, 3, 8, 8), dtype=torch.uint8)
    augment = Compose([Flip(), Crop(margin=2), RandomErasing(3), Shift(1)])
    batch = OnBatches(augment)(Batch.of(x, torch.zeros(9)), seeded())
    expected = augment(x.float() / 255, None, seeded())
    assert torch.equal(batch.inputs[0], expected)
