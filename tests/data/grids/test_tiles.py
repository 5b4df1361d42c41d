"""One labelled scene as several examples: every pixel in one tile, nothing of it lost."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ansatz.data.grids import Grids, GridTable, Masks, read_grids
from ansatz.data.grids.tiles import TileCuts, cut_tiles
from ansatz.errors import DataError, UsageError

SCENES = {  # (C, *size), tiles, place of the longest axis in size
    "signal": ((1, 40), 5, 0),
    "signal with channels": ((2, 43), 5, 0),
    "image": ((1, 11, 33), 4, 1),
    "colour image": ((3, 26, 20), 3, 0),
    "square": ((1, 17, 17), 2, 0),
    "volume": ((1, 9, 12, 25), 3, 2),
    "volume with channels": ((2, 35, 6, 35), 4, 0),
}
every_scene = pytest.mark.parametrize("shape, tiles, axis", SCENES.values(), ids=SCENES)


def scenes(shape, count=2):
    """Examples whose pixels all have different numbers, and their masks."""
    x = np.arange(count * np.prod(shape), dtype=np.float32).reshape(count, *shape)
    masks = np.random.default_rng(0).integers(0, 3, (count, *shape[1:]))
    return x, masks


def table_of(x, masks, **options):
    return read_grids(GridTable("scene", *framed(x), Masks.coded(masks, "masks")), **options)


def framed(x):
    import pandas as pd

    return pd.DataFrame({"age": np.arange(len(x))}), Grids.of(x, channels="first")


def own_pixels(pixels, tiles):
    return [range(k * pixels // tiles, (k + 1) * pixels // tiles) for k in range(tiles)]


@every_scene
def test_tiles_are_slices(shape, tiles, axis):
    x, masks = scenes(shape)
    table = table_of(x, masks, tiles=tiles)
    pixels = shape[1 + axis]
    length = max(map(len, own_pixels(pixels, tiles)))
    expected, labels = [], []
    for example, mask in zip(x, masks, strict=True):
        for own in own_pixels(pixels, tiles):
            lacks = length - len(own)
            assert lacks in (0, 1)
            part = np.moveaxis(example, 1 + axis, -1)[..., own.start : own.stop]
            part = np.concatenate([part, part[..., part.shape[-1] - lacks :]], -1)  # the mirror
            expected.append(np.moveaxis(part, -1, 1 + axis))
            part = np.moveaxis(mask, axis, -1)[..., own.start : own.stop]
            part = np.concatenate([part, np.full((*part.shape[:-1], lacks), -1)], -1)
            labels.append(np.moveaxis(part, -1, axis))
    assert_array_equal(table.grids.load(), np.stack(expected))
    assert_array_equal(table.masks.load(), np.stack(labels))


@every_scene
def test_no_cell_is_lost_and_none_is_in_two_tiles(shape, tiles, axis):
    x, masks = scenes(shape, count=1)
    table = table_of(x, masks, tiles=tiles)
    known = table.masks.load().numpy() >= 0  # the pixels filled in are the unlabelled ones
    blocks = np.moveaxis(table.grids.load().numpy(), 1, -1)[known]  # (pixels, C)
    assert_array_equal(np.sort(blocks.ravel()), x.ravel())
    whole = np.concatenate(
        [
            np.compress(keep.any(tuple(k for k in range(keep.ndim) if k != axis)), block, axis)
            for keep, block in zip(known, table.masks.load().numpy(), strict=True)
        ],
        axis,
    )
    assert_array_equal(whole, masks[0])


def test_a_cell_filled_in_is_the_mirrored_image_and_has_no_label():
    x = np.arange(25, dtype=np.float32).reshape(1, 25)
    table = read_grids({"x": x, "masks": (x > 5).astype(int)}, tiles=2)
    first = table.grids.load()[0, 0].tolist()
    assert first == [*range(12), 11]
    assert table.masks.load()[0].tolist() == [0] * 6 + [1] * 6 + [-1]


def test_the_length_differs_by_a_cell_at_most():
    for pixels in range(16, 90):
        for tiles in range(2, pixels // 8 + 1):
            cut = TileCuts(tiles, -1, pixels)
            blocks = [cut.block(np.arange(pixels), k, fill=-1) for k in range(tiles)]
            assert {len(block) for block in blocks} == {cut.length}
            assert max((block < 0).sum() for block in blocks) <= 1
            joined = np.concatenate(blocks)
            assert_array_equal(joined[joined >= 0], np.arange(pixels))


def scene_folder(folder, shape=(20, 48), count=1, empty=()):
    """Examples as .npy files, columns ``empty`` of their masks without a label."""
    rng = np.random.default_rng(0)
    for kind in ("images", "masks"):
        (folder / kind).mkdir(parents=True)
    for name in "abc"[:count]:
        x = rng.normal(size=shape).astype(np.float32)
        mask = (x > 0).astype(np.int16)
        mask[..., list(empty)] = -1
        np.save(folder / "images" / f"{name}.npy", x)
        np.save(folder / "masks" / f"{name}.npy", mask)
    return folder


def test_tiles_have_names_rows_and_a_note(tmp_path):
    table = read_grids(scene_folder(tmp_path / "s", count=2), tiles=4)
    assert table.grids.names[:2] == ("images/a.npy tile 1", "images/a.npy tile 2")
    assert table.masks.names == table.grids.names
    assert table.frame["tile"].tolist() == [1, 2, 3, 4] * 2
    assert table.frame["image"].tolist() == ["images/a.npy"] * 4 + ["images/b.npy"] * 4
    (note,) = table.notes
    assert "4 tiles of 20 x 12 along its longest axis, the width of 48 pixels" in note
    assert "share a border" in note


def test_columns_go_with_every_tile():
    table = table_of(*scenes((1, 16, 9)), tiles=2)
    assert table.frame["age"].tolist() == [0, 0, 1, 1]


def test_a_tile_without_a_label_is_left_out_with_a_note(tmp_path):
    folder = scene_folder(tmp_path / "s", empty=range(10, 30))
    table = read_grids(folder, tiles=5)  # of 48 pixels: 9, 10, 9, 10 and 10
    assert table.frame["tile"].tolist() == [1, 2, 4, 5]
    assert len(table.masks) == len(table.grids) == 4
    assert "left out: 1 (images/a.npy tile 3)" in table.notes[-1]


def test_tiles_of_files_that_stay_on_disk_are_the_same(tmp_path):
    folder = scene_folder(tmp_path / "s", shape=(6, 20, 47), count=2, empty=range(12))
    now, late = (read_grids(folder, tiles=4, memory_limit=size) for size in (None, "1KB"))
    assert now.grids.is_in_memory and not late.grids.is_in_memory
    assert now.grids.names == late.grids.names and now.frame.equals(late.frame)
    assert_array_equal(late.grids.load(), now.grids.load())
    assert_array_equal(late.masks.load(), now.masks.load())
    assert_array_equal(late.grids.content_keys(), now.grids.content_keys())
    assert_array_equal(late.masks.content_keys(), now.masks.content_keys())


@pytest.mark.parametrize("tiles", [1, 0, -3, 2.0, True, "5"])
def test_tiles_are_two_at_least(tiles):
    x, masks = scenes((1, 32, 32))
    with pytest.raises(UsageError, match=r"tiles must be a whole number from 2 on, got"):
        read_grids({"x": x, "masks": masks}, tiles=tiles)


def test_tiles_of_fewer_than_eight_cells_are_refused_with_the_most_that_are_possible():
    x, masks = scenes((1, 10, 47))
    with pytest.raises(UsageError, match=r"6 tiles of 47 pixels .* shorter than 8.*--tiles 5"):
        read_grids({"x": x, "masks": masks}, tiles=6)
    assert len(read_grids({"x": x, "masks": masks}, tiles=5)) == 10
    with pytest.raises(UsageError, match=r"15 pixels, too few for two tiles"):
        table_of(*scenes((1, 15, 15)), tiles=2)


def test_tiles_need_masks(tmp_path):
    x, _ = scenes((1, 32, 32))
    for data in (x, {"x": x, "y": [0, 1]}, read_grids(x)):
        with pytest.raises(UsageError, match=r"has no masks: leave out --tiles"):
            read_grids(data, tiles=2)
    (tmp_path / "a.csv").write_text("t1,t2,y\n1,2,0\n3,4,1\n")
    with pytest.raises(UsageError, match=r"one signal as it is: leave out --tiles"):
        read_grids(tmp_path / "a.csv", signals=True, target=["y"], tiles=2)


def test_masks_of_other_sizes_are_refused_as_without_tiles():
    x, masks = scenes((1, 32, 32))
    with pytest.raises(DataError):
        read_grids({"x": x, "masks": masks[:, :30]}, tiles=2)


def test_a_table_of_examples_is_cut_as_its_files_are(tmp_path):
    folder = scene_folder(tmp_path / "s")
    given, cut = read_grids(folder, tiles=3), cut_tiles(read_grids(folder), 3)
    assert_array_equal(given.grids.load(), cut.grids.load())
    assert given.notes == cut.notes
