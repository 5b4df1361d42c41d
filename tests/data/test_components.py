import json
from collections import deque
from itertools import product

import numpy as np
import pytest
import torch
from scipy import ndimage

from ansatz.data import Cleaning, clean, components, instances
from ansatz.errors import UsageError


def masks(*shape, classes=3, share=0.6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(1, classes, shape) * (rng.random(shape) < share)


def flood(mask, corners):
    """The components of a mask, as sets of places, by walking from cell to cell."""
    reach = [s for s in product((-1, 0, 1), repeat=mask.ndim) if any(s)]
    steps = reach if corners else [s for s in reach if sum(map(abs, s)) == 1]
    todo, found = {tuple(p) for p in np.argwhere(mask)}, []
    while todo:
        queue, part = deque([todo.pop()]), set()
        while queue:
            place = queue.popleft()
            part.add(place)
            for step in steps:
                near = tuple(a + b for a, b in zip(place, step, strict=True))
                if near in todo:
                    todo.remove(near)
                    queue.append(near)
        found.append(frozenset(part))
    return set(found)


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("shape", [(20,), (9, 10), (4, 5, 6)], ids=str)
def test_components_are_what_a_walk_reaches(shape, corners):
    mask = masks(*shape, classes=2, share=0.4) > 0
    labels, sizes = components(mask, corners=corners)
    found = {frozenset(map(tuple, np.argwhere(labels == i + 1))) for i in range(len(sizes))}
    assert found == flood(mask, corners)
    assert sizes.tolist() == [int((labels == i + 1).sum()) for i in range(len(sizes))]


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("shape", [(3, 9, 10), (2, 4, 5, 6)], ids=str)
def test_small_components_go_and_larger_ones_stay(shape, corners):
    before = masks(*shape)
    after = clean(before, min_size=4, corners=corners)
    for old, new in zip(before, after, strict=True):
        for k in (1, 2):
            kept = {part for part in flood(old == k, corners) if len(part) >= 4}
            assert flood(new == k, corners) == kept


def test_the_largest_component_of_each_class_stays():
    before = masks(5, 9, 10)
    for old, new in zip(before, clean(before, keep_largest=True), strict=True):
        for k in (1, 2):
            sizes = sorted(len(part) for part in flood(old == k, False))
            (left,) = flood(new == k, False)
            assert len(left) == sizes[-1] and left in flood(old == k, False)


@pytest.mark.parametrize("shape", [(5, 9, 10), (3, 5, 6, 7)], ids=str)
def test_holes_of_a_binary_mask_are_scipys(shape):
    mask = masks(*shape, classes=2, share=0.75)
    expected = np.stack([ndimage.binary_fill_holes(m) for m in mask])
    assert (expected != (mask > 0)).any()
    for dtype in (np.int64, np.uint8):
        filled = clean(mask.astype(dtype), fill_holes=True)
        assert filled.dtype == dtype and ((filled > 0) == expected).all()


def test_a_hole_between_two_classes_or_at_the_border_stays():
    mask = np.array(
        [
            [1, 1, 1, 2, 2, 2, 2],
            [1, 0, 1, 2, 0, 0, 2],
            [1, 1, 1, 2, 2, 2, 2],
            [1, 1, 0, 2, 2, 0, 2],
            [1, 1, 1, 2, 2, 0, 2],
        ]
    )
    filled = clean(mask[None], fill_holes=True)[0]
    assert filled[1, 1] == 1 and (filled[1, 4:6] == 2).all()
    assert filled[3, 2] == 0 and (filled[3:, 5] == 0).all()
    only = Cleaning(fill_holes=True, classes=(2,))(mask[None])[0]
    assert only[1, 1] == 0 and (only[1, 4:6] == 2).all()


OPTIONS = [
    dict(zip(("min_size", "fill_holes", "keep_largest", "corners"), values, strict=True))
    for values in product((0, 5), (False, True), (False, True), (False, True))
]


@pytest.mark.parametrize("shape, classes", [((6, 9, 10), 2), ((6, 9, 10), 4), ((2, 5, 6, 7), 3)])
def test_cleaning_twice_is_cleaning_once(shape, classes):
    for seed, options in enumerate(OPTIONS):
        once = clean(masks(*shape, classes=classes, share=0.8, seed=seed), **options)
        assert (clean(once, **options) == once).all(), options


def test_a_speck_inside_another_class_leaves_no_hole():
    mask = np.ones((1, 5, 5), dtype=np.int64)
    mask[0, 2, 2] = 2
    assert (clean(mask, min_size=2, fill_holes=True) == 1).all()


def test_tensors_come_back_as_tensors_and_inputs_are_left_alone():
    before = torch.as_tensor(masks(3, 8, 8))
    copy = before.clone()
    after = clean(before, min_size=3)
    assert after.dtype == before.dtype and torch.equal(before, copy)
    assert (after.numpy() == clean(copy.numpy(), min_size=3)).all()
    assert clean(torch.zeros(0, 4, 4)).shape == (0, 4, 4)


def test_its_state_is_json_and_remakes_it():
    cleaning = Cleaning(min_size=7, keep_largest=True, classes=[1, 3])
    assert Cleaning.from_state(json.loads(json.dumps(cleaning.state()))) == cleaning
    assert Cleaning() == Cleaning.from_state(Cleaning().state())


def test_what_it_refuses():
    with pytest.raises(UsageError, match=r"min_size must be a whole number of pixels, got 0.5"):
        Cleaning(min_size=0.5)
    with pytest.raises(UsageError, match=r"shape \(N, \*size\), got \(3,\)"):
        clean(np.zeros(3))


def test_objects_of_all_classes_are_numbered():
    mask = np.array([[[1, 1, 0, 2], [0, 0, 0, 2], [1, 0, 2, 0]]])
    found = instances(mask)
    assert found.tolist() == [[[1, 1, 0, 3], [0, 0, 0, 3], [2, 0, 4, 0]]]
    assert instances(mask, corners=True).max() == 3  # the two of class 2 meet at a corner
    assert torch.equal(instances(torch.from_numpy(mask)), torch.from_numpy(found))
