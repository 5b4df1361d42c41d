"""Flips, turns, shifts and crops: pixels move and none is computed."""

import numpy as np
import pytest
import torch
from scipy import ndimage, stats

from ansatz.data.augmentation import Crop, Flip, Rotate90, Shift
from ansatz.data.augmentation.moves import padded, rotate_quarters, take_windows

NUMPY = {"reflect": "symmetric", "border": "edge", "zeros": "constant"}
SIGNIFICANCE = 1e-6


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("padding", NUMPY)
@pytest.mark.parametrize("size", [(7,), (5, 4), (3, 4, 2)])
def test_padding_is_numpys(padding, size):
    x = torch.randn(2, 3, *size)
    margins = (9, 2, 0)[: len(size)]  # farther than the grid is wide
    widths = [(0, 0), (0, 0), *((m, m) for m in margins)]
    expected = np.pad(x.numpy(), widths, mode=NUMPY[padding])
    assert np.array_equal(padded(x, margins, padding).numpy(), expected)


@pytest.mark.parametrize("size", [(7,), (5, 8), (3, 4, 6)])
def test_a_window_is_a_slice_of_each_example(size):
    x = torch.randn(6, 2, *size)
    window = tuple(n - 2 for n in size)
    starts = torch.randint(3, (6, len(size)))
    for each, start, found in zip(x, starts.tolist(), take_windows(x, starts, window), strict=True):
        cut = tuple(slice(s, s + n) for s, n in zip(start, window, strict=True))
        assert torch.equal(found, each[(slice(None), *cut)])


def test_a_window_of_a_transposed_tensor_is_the_same():
    x = torch.randn(3, 2, 6, 5)
    starts = torch.randint(2, (3, 2))
    strided = x.to(memory_format=torch.channels_last)
    assert torch.equal(take_windows(strided, starts, (4, 4)), take_windows(x, starts, (4, 4)))


def test_flipping_twice_gives_the_image_back():
    x, masks = torch.rand(5, 2, 4, 6), torch.randint(3, (5, 4, 6))
    both = Flip((-1, -2), p=1.0)
    y, moved = both(*both(x, masks))
    assert torch.equal(y, x) and torch.equal(moved, masks)
    assert torch.equal(both(x), x.flip(-1, -2))


def test_four_quarter_turns_give_the_image_back():
    x, once = torch.rand(5, 2, 4, 4), torch.ones(5, dtype=torch.long)
    assert torch.equal(rotate_quarters(x, once), x.rot90(1, (-2, -1)))
    assert torch.equal(
        rotate_quarters(
            rotate_quarters(rotate_quarters(rotate_quarters(x, once), once), once), once
        ),
        x,
    )


def test_flips_and_turns_reach_the_eight_symmetries_of_a_square_alike():
    x = torch.arange(9.0).view(1, 1, 3, 3)
    wanted = [g.rot90(k, (-2, -1)) for g in (x[0], x[0].flip(-1)) for k in range(4)]
    y = Rotate90()(Flip()(x.expand(4000, 1, 3, 3), None, seeded()), None, seeded(1))
    counts = [int((y == each).flatten(1).all(1).sum()) for each in wanted]
    assert sum(counts) == 4000
    assert stats.chisquare(counts).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("augment", [Shift(2, padding="zeros"), Crop(margin=2, padding="zeros")])
def test_shifts_are_uniform_over_all_places(augment):
    x = torch.zeros(5000, 1, 9, 9)
    x[:, :, 4, 4] = 1
    y = augment(x, None, seeded())
    places = y.flatten(1).argmax(1)
    counts = torch.bincount(places, minlength=81).view(9, 9)[2:7, 2:7].flatten()
    assert int(counts.sum()) == 5000
    assert stats.chisquare(counts.numpy()).pvalue > SIGNIFICANCE


def test_a_shift_is_scipys():
    x = torch.rand(30, 1, 6, 7)
    y = Shift(2)(x, None, seeded())
    for before, after in zip(x[:, 0].numpy(), y[:, 0].numpy(), strict=True):
        shifts = [(i, j) for i in range(-2, 3) for j in range(-2, 3)]
        moved = [ndimage.shift(before, s, order=0, mode="reflect") for s in shifts]
        assert any(np.array_equal(after, each) for each in moved)


def test_a_small_crop_is_a_window_of_the_image():
    x = torch.arange(20.0).view(1, 1, 20).expand(500, 1, 20)
    y = Crop(8)(x, None, seeded())
    starts = y[:, 0, 0]
    assert torch.equal(y[:, 0], starts.unsqueeze(1) + torch.arange(8.0))
    assert set(starts.tolist()) == set(range(13))


def test_labels_from_outside_are_unknown():
    masks = torch.ones(200, 5, dtype=torch.long)
    y, moved = Shift(1, padding="zeros")(torch.ones(200, 1, 5), masks, seeded())
    assert torch.equal(moved == -1, y.squeeze(1) == 0) and (moved == -1).any()
