"""Masks whose classes are colours."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from ansatz.data.grids import read_grids
from ansatz.errors import DataError, UsageError

ROAD, SKY, VOID = (128, 64, 128), (70, 130, 180), (0, 0, 0)
PATTERN = np.array([[0, 1, 1], [2, 0, 1]])
LEVELS = np.array([VOID, SKY, ROAD], np.uint8)  # sorted
NAMES = ("#000000", "#4682b4", "#804080")


def put(folder, **masks):
    """An image for each mask, which are pillow's."""
    for part in ("images", "masks"):
        (folder / part).mkdir(exist_ok=True)
    for name, mask in masks.items():
        Image.new("L", mask.size, 9).save(folder / f"images/{name}.png")
        mask.save(folder / f"masks/{name}.png")
    return folder


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_each_colour_is_a_class_called_by_its_hex_code(tmp_path, mode):
    put(tmp_path, a=Image.fromarray(LEVELS[PATTERN]).convert(mode))
    masks = read_grids(tmp_path).masks
    assert masks.classes == NAMES
    assert_array_equal(masks.load()[0], PATTERN)
    named = read_grids(tmp_path, classes=["void", "sky", "road"]).masks
    assert named.classes == ("void", "sky", "road")
    files = read_grids(tmp_path, memory_limit=1).masks
    assert not files.is_in_memory
    assert_array_equal(files.load()[0], PATTERN)


def test_black_saved_as_grey_or_with_a_palette_is_black_among_colours(tmp_path):
    black, sky = Image.new("L", (3, 2)), Image.new("RGB", (3, 2), SKY)
    palette = Image.fromarray(LEVELS[PATTERN]).quantize(8)
    put(tmp_path, a=black, b=palette, c=sky, d=black.convert("RGB"))
    masks = read_grids(tmp_path).masks
    assert masks.classes == NAMES
    assert masks.load()[[0, 2, 3], 0, 0].tolist() == [0, 1, 0]
    assert_array_equal(masks.load()[1], PATTERN)


def test_a_colour_that_is_not_known_counts_for_nothing(tmp_path):
    put(tmp_path, a=Image.fromarray(LEVELS[PATTERN]))
    masks = read_grids(tmp_path, unlabelled="#000000").masks
    assert masks.classes == NAMES[1:]
    assert_array_equal(masks.load()[0], PATTERN - 1)
    with pytest.raises(UsageError, match=r"hold colours: .* is one, like '#000000', not 255\.$"):
        read_grids(tmp_path, unlabelled=255)
    with pytest.raises(UsageError, match=r"a number, or a colour like '#000000', got 'black'"):
        read_grids(tmp_path, unlabelled="black")
    arrays = {"x": np.zeros((1, 2, 3)), "masks": PATTERN[None]}
    with pytest.raises(UsageError, match="hold numbers"):
        read_grids(arrays, unlabelled="#000000")


def test_a_colour_that_is_not_known_reads_palettes_by_their_colours(tmp_path):
    put(tmp_path, a=Image.fromarray(LEVELS[PATTERN]).quantize(8))
    assert read_grids(tmp_path).masks.classes == ("0", "1", "2")
    assert read_grids(tmp_path, unlabelled="#000000").masks.classes == NAMES[1:]


def test_more_colours_than_classes_are_refused_in_a_line(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (20, 20, 3), np.uint8)
    plain = {name: Image.fromarray(LEVELS[[[k] * 20] * 20]) for k, name in enumerate("bc")}
    put(tmp_path, a=Image.fromarray(noise), **plain)
    with pytest.raises(DataError, match=r"a.png is a mask of 400 different colours.*\(JPEG\)"):
        read_grids(tmp_path)
    assert len(read_grids(tmp_path, on_corrupt="skip")) == 2
    few = {f"n{k}": Image.fromarray(part) for k, part in enumerate(np.split(noise, 2))}
    (tmp_path / "few").mkdir()
    with pytest.raises(DataError, match=r"hold 402 different colours, more than 255 classes"):
        read_grids(put(tmp_path / "few", **few, **plain))


def test_a_stack_of_coloured_pages_is_a_volume_of_classes(tmp_path):
    images = [Image.new("L", (3, 2), k) for k in range(2)]
    masks = [Image.fromarray(LEVELS[PATTERN]), Image.new("RGB", (3, 2))]
    for name, (first, *others) in {"x": images, "y": masks}.items():
        first.save(tmp_path / f"{name}.tif", save_all=True, append_images=others)
    for pages in ("volume", "images"):
        found = read_grids(tmp_path / "x.tif", masks=tmp_path / "y.tif", pages=pages).masks
        assert found.classes == NAMES
        assert_array_equal(found.load().reshape(2, 2, 3), [PATTERN, np.zeros((2, 3))])
