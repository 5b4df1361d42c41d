"""Files of several pages: what their pages are, and everything that may be wrong with them."""

import struct

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from PIL import Image

from ansatz.data.grids import image_file, read_grids, stacks
from ansatz.data.grids.image import look
from ansatz.data.grids.image_file import Limits, count_pages, kept_open, opened
from ansatz.data.grids.images import Kind, read_image
from ansatz.data.grids.places import Page
from ansatz.data.grids.read import read_each
from ansatz.errors import DataError, UsageError

GREY = Kind((4, 6), 1, "8 bit")


def pages(count=3, start=0, dtype=np.uint8, size=(4, 6)):
    """``(count, H, W)``, no two pages alike."""
    cells = np.arange(np.prod(size)).reshape(size)
    return np.stack([cells + 10 * (start + k) for k in range(count)]).astype(dtype)


def stack(path, values, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *others = map(Image.fromarray, values)
    first.save(path, save_all=True, append_images=others, **options)
    return path


def marked(values):
    """Masks of the values 0 and 255."""
    return (values % 2 * 255).astype(np.uint8)


@pytest.fixture
def pair(tmp_path):
    return stack(tmp_path / "x.tif", pages()), stack(tmp_path / "y.tif", marked(pages()))


def test_a_stack_and_a_stack_of_masks_are_pairs_of_pages(pair):
    table = read_grids(pair[0], masks=pair[1])
    assert_array_equal(table.grids.load()[:, 0], pages())
    assert_array_equal(table.masks.load(), pages() % 2)
    assert table.target == "mask" and table.masks.classes == ("0", "255")
    assert table.grids.names == ("x.tif page 1", "x.tif page 2", "x.tif page 3")
    assert table.frame["image"].tolist() == ["x.tif"] * 3
    assert table.frame["page"].tolist() == [1, 2, 3]
    assert "the 3 pages of x.tif and of its masks were read as images" in table.notes[0]
    assert read_grids(pair[0], masks=pair[1], pages="images").notes == []


def test_without_masks_the_first_page_is_read_and_the_option_named(pair):
    table = read_grids(pair[0])
    assert_array_equal(table.grids.load()[:, 0], pages(1))
    assert table.notes == [
        "1 of 1 images were read at their first frame or page; for all: --pages images or volume "
        "(pages=)."
    ]
    assert read_grids(pair[0], pages="first").notes == []
    assert len(read_grids(pair[0], masks=pair[1], pages="first")) == 1


def test_pages_of_files_that_stay_files_are_the_same(pair):
    table = read_grids(pair[0], masks=pair[1])
    late = read_grids(pair[0], masks=pair[1], memory_limit=1)
    assert not late.grids.is_in_memory
    assert_array_equal(late.grids.load([2, 0]), table.grids.load([2, 0]))
    assert_array_equal(late.masks.load(), table.masks.load())
    assert_array_equal(late.grids.content_keys(), table.grids.content_keys())


def test_every_page_of_a_folder_is_an_example_of_its_class(tmp_path):
    stack(tmp_path / "a/1.tif", pages(2))
    Image.fromarray(pages(1, 2)[0]).save(tmp_path / "a/2.png")
    stack(tmp_path / "b/1.tif", pages(3, 3))
    table = read_grids(tmp_path, pages="images")
    assert_array_equal(table.grids.load()[:, 0], pages(6))
    assert table.frame["class"].tolist() == list("aaabbb")
    assert table.frame["page"].tolist() == [1, 2, 1, 1, 2, 3]
    assert table.grids.names[1:4] == ("a/1.tif page 2", "a/2.png", "b/1.tif page 1")


@pytest.mark.parametrize("ending", ["gif", "png", "webp"])
def test_frames_of_animations_are_pages(tmp_path, ending):
    values = np.repeat(pages(3)[..., None], 3, -1)
    path = stack(tmp_path / f"a.{ending}", values, lossless=True)
    assert count_pages(path, Limits()) == 3
    table = read_grids([path], pages="images", channels=3)
    assert np.abs(table.grids.load().permute(0, 2, 3, 1).numpy() - values.astype(int)).max() <= 1


DEPTHS = {  # dtype -> what is read of a value
    "uint8": lambda values: values,
    "uint16": lambda values: values.astype(np.float32) / np.float32(65535),
    "int32": lambda values: values.astype(np.float32),
    "float32": lambda values: values,
}


@pytest.mark.parametrize("compression", ["raw", "tiff_lzw", "tiff_adobe_deflate"])
@pytest.mark.parametrize("dtype", DEPTHS)
def test_stacks_of_every_depth_are_images_and_volumes(tmp_path, dtype, compression):
    values = pages(3, dtype=dtype) * np.array(3, dtype)
    stack(tmp_path / "a.tif", values, compression=compression)
    expected = DEPTHS[dtype](values)
    images = read_grids(tmp_path, pages="images").grids.load()
    assert_array_equal(images[:, 0], expected)
    volumes = read_grids(tmp_path, pages="volume").grids
    assert volumes.shape == (1, 3, 4, 6)
    assert_array_equal(volumes.load()[0, 0], expected)


def test_a_table_of_stacks_is_one_of_volumes_with_masks(tmp_path):
    for k in range(2):
        stack(tmp_path / f"x{k}.tif", pages(3, k))
        stack(tmp_path / f"y{k}.tif", marked(pages(3, k)))
    frame = pd.DataFrame({"x": ["x0.tif", "x1.tif"], "y": ["y0.tif", "y1.tif"], "age": [3, 4]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = {"image": "x", "masks": "y", "pages": "volume"}
    table = read_grids(tmp_path / "t.csv", **options)
    assert_array_equal(table.grids.load()[:, 0], [pages(3), pages(3, 1)])
    assert_array_equal(table.masks.load(), [pages(3) % 2, pages(3, 1) % 2])
    assert table.frame["age"].tolist() == [3, 4]
    late = read_grids(tmp_path / "t.csv", **options, memory_limit=1)
    assert_array_equal(late.masks.load(), table.masks.load())
    split = read_grids(tmp_path / "t.csv", **{**options, "pages": "images"})
    assert split.frame["age"].tolist() == [3] * 3 + [4] * 3


def test_colours_of_a_stack_are_channels(tmp_path):
    values = np.stack([pages(2), pages(2, 2), pages(2, 4)], -1)
    stack(tmp_path / "a.tif", values)
    found = read_grids(tmp_path, pages="volume").grids
    assert_array_equal(found.load()[0].permute(1, 2, 3, 0), values)
    shares = read_grids(tmp_path, pages="volume", shares=True).grids
    assert shares.dtype == torch.float32 and shares.shape == (3, 2, 4, 6)


VOLUMES = {
    "b.tif has 2 pages of 4 x 6, the first file 3 of 4 x 6: volumes keep one shape": pages(2),
    "b.tif has 3 pages of 4 x 5, the first file 3 of 4 x 6": pages(3, size=(4, 5)),
    "b.tif has one page, which is not a volume": pages(1),
    "b.tif page 2 is 3 x 3, the first 4 x 6: the pages of a volume have one size": [
        pages(1)[0],
        np.zeros((3, 3), np.uint8),
    ],
}


@pytest.mark.parametrize("said", VOLUMES)
def test_volumes_keep_one_shape(tmp_path, said):
    stack(tmp_path / "a.tif", pages())
    stack(tmp_path / "b.tif", VOLUMES[said])
    with pytest.raises(DataError, match=said):
        read_grids(tmp_path, pages="volume")
    left = read_grids(tmp_path, pages="volume", on_corrupt="skip")
    assert left.grids.names == ("a.tif",) and said in left.notes[-1]


def test_a_volume_is_of_the_size_that_is_said_or_refused(tmp_path):
    stack(tmp_path / "a.tif", pages())
    assert len(read_grids(tmp_path, pages="volume", size=(3, 4, 6))) == 1
    with pytest.raises(DataError, match="not resized"):
        read_grids(tmp_path, pages="volume", size=(3, 8, 8))


@pytest.mark.parametrize("how", ["images", "volume"])
def test_masks_have_as_many_pages_as_their_images(pair, how):
    stack(pair[1], marked(pages(2)))
    said = {
        "images": r"x.tif has 3 pages, its mask .*y.tif 2 pages: each page needs its mask",
        "volume": r"y.tif has 2 pages of 4 x 6, its volume 3 of 4 x 6",
    }
    with pytest.raises(DataError, match=said[how]):
        read_grids(pair[0], masks=pair[1], pages=how)
    stack(pair[1], marked(pages(3, size=(4, 5))))
    sizes = r"y.tif page 1 is 4 x 5, its image x.tif page 1 4 x 6|y.tif has 3 pages of 4 x 5"
    with pytest.raises(DataError, match=sizes):
        read_grids(pair[0], masks=pair[1], pages=how)


@pytest.mark.parametrize(
    "data, options, said",
    [
        ("x.tif", {"pages": "all"}, "pages must be one of 'auto', 'first', 'images', 'volume'"),
        ("x.tif", {"masks": "x.tif"}, "x.tif would be its own mask"),
        ("x.tif", {"masks": "."}, "its masks are an image file with as many pages"),
        (
            "a.npy",
            {"pages": "images"},
            r"a.npy holds arrays, which have no pages: leave out --pages",
        ),
    ],
)
def test_what_has_no_meaning_is_refused(pair, monkeypatch, data, options, said):
    monkeypatch.chdir(pair[0].parent)
    np.save("a.npy", pages())
    with pytest.raises(UsageError, match=said):
        read_grids(data, **options)


@pytest.mark.parametrize("how", ["images", "volume"])
def test_a_damaged_page_is_named(tmp_path, how):
    noise = np.random.default_rng(0).integers(0, 256, (3, 64, 64), np.uint8)
    path = stack(tmp_path / "a.tif", noise, compression="tiff_adobe_deflate")
    with Image.open(path) as image:
        image.seek(1)
        start = image.tag_v2[273][0]
    content = bytearray(path.read_bytes())
    content[start : start + 200] = bytes(200)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a.tif page 2 is a damaged image"):
        read_grids(path, pages=how)
    if how == "images":
        left = read_grids(path, pages=how, on_corrupt="skip")
        assert_array_equal(left.grids.load()[:, 0], noise[[0, 2]])
        assert "1 of 3 files left out" in left.notes[-1]


def test_a_cut_stack_is_refused_in_one_line(tmp_path):
    whole = stack(tmp_path / "a.tif", pages(4)).read_bytes()
    for length in range(30, len(whole) - 20, 37):
        (tmp_path / "a.tif").write_bytes(whole[:length])
        for how in ("images", "volume"):
            with pytest.raises(DataError, match=r"a.tif") as caught:
                read_grids(tmp_path / "a.tif", pages=how)
            assert "\n" not in str(caught.value)
    stack(tmp_path / "b.tif", pages(2))
    left = read_grids(tmp_path, pages="images", on_corrupt="skip")
    assert {"b.tif page 1", "b.tif page 2"} <= set(left.grids.names)
    assert not any("first frame" in note for note in left.notes)


def test_damaged_bytes_end_in_one_line_or_in_images(tmp_path):
    rng = np.random.default_rng(0)
    good = stack(tmp_path / "a.tif", pages(3), compression="tiff_lzw").read_bytes()
    for _ in range(60):
        bad = np.frombuffer(good, np.uint8).copy()
        bad[rng.integers(0, len(bad), 3)] = rng.integers(0, 256, 3)
        (tmp_path / "a.tif").write_bytes(bad.tobytes())
        for how in ("images", "volume"):
            try:
                read_grids(tmp_path / "a.tif", pages=how, limit_pixels=10_000)
            except DataError as error:
                assert "a.tif" in str(error) and "\n" not in str(error)


def test_pages_that_go_in_a_circle_end(tmp_path):
    path = stack(tmp_path / "a.tif", pages(2))
    content = bytearray(path.read_bytes())
    (first,) = struct.unpack_from("<I", content, 4)
    with Image.open(path) as image:
        image.seek(1)
        last = image.tag_v2.offset if hasattr(image.tag_v2, "offset") else 0
    (count,) = struct.unpack_from("<H", content, last)
    struct.pack_into("<I", content, last + 2 + 12 * count, first)
    path.write_bytes(content)
    assert count_pages(path, Limits()) == 2


def test_every_page_keeps_to_the_limits(tmp_path, monkeypatch):
    large = [np.zeros((4, 6), np.uint8), np.zeros((40, 60), np.uint8)]
    path = stack(tmp_path / "a.tif", large, compression="tiff_adobe_deflate")
    with pytest.raises(DataError, match=r"a.tif page 2 declares 60 x 40 pixels, more than 1,000"):
        read_grids(path, pages="images", limit_pixels=1000)
    stack(path, pages(5))
    monkeypatch.setattr(stacks, "LIMIT_BYTES", 100)
    with pytest.raises(DataError, match=r"5 pages of 4 x 6, 120 bytes, more than 100: not decod"):
        read_grids(path, pages="volume")
    monkeypatch.setattr(image_file, "MOST_PAGES", 4)
    with pytest.raises(DataError, match="declares more than 4 pages: not decoded"):
        count_pages(path, Limits())


def test_pages_of_several_sizes_are_fitted_as_images_are(tmp_path):
    path = stack(tmp_path / "a.tif", [*pages(3), np.zeros((8, 12), np.uint8)])
    table = read_grids(path, pages="images")
    assert table.grids.shape == (1, 4, 6)
    assert "1 of 4 images have another size than 4 x 6" in table.notes[0]
    own = [each.table.grids.shape[1:] for each in read_each(path, notes=[], pages="images")]
    assert own == [(4, 6)] * 3 + [(8, 12)]


def test_each_page_is_read_alone_and_knows_its_stack(pair):
    found = list(read_each(pair[0], notes=[], pages="images", size=2))
    assert [each.stack for each in found] == ["x.tif"] * 3
    assert [each.size for each in found] == [(4, 6)] * 3
    assert [each.table.grids.names[0] for each in found][2] == "x.tif page 3"
    (whole,) = read_each(pair[0], notes=[], pages="volume")
    assert whole.stack is None and whole.table.grids.shape == (1, 3, 4, 6)


def test_a_file_that_is_kept_open_gives_its_pages_in_any_order_and_is_closed(pair):
    with kept_open():
        with opened(Page(pair[0], 0), Limits()) as first:
            pass
        for k in (2, 0, 0, 1):
            assert look(Page(pair[0], k), Limits()).size == (4, 6)
            assert_array_equal(read_image(Page(pair[0], k), GREY, Limits())[0], pages()[k])
        with opened(Page(pair[0], 1), Limits()) as again:
            assert again is first
        read_image(Page(pair[1], 1), GREY, Limits())
    with pytest.raises(ValueError, match="closed"):
        first.seek(2)
    with pytest.raises(DataError, match=r"x.tif page 4 is a damaged image: no more images"):
        look(Page(pair[0], 3), Limits())
