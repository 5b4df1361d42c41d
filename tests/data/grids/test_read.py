"""Grids from wherever they are, all at once or one by one."""

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from PIL import Image

from ansatz.data import Dataset, registry
from ansatz.data.grids import Grids, is_grids, read_grids
from ansatz.data.grids.read import read_each
from ansatz.errors import DataError, UsageError


def shade(level, size=(4, 6)):
    return Image.new("L", size[::-1], level)


def put(folder, images):
    """{relative path: pillow image or bytes} as files."""
    for name, image in images.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path) if isinstance(image, Image.Image) else path.write_bytes(image)
    return folder


def levels(table):
    """One pixel of each image."""
    return table.grids.load()[:, 0, 2, 2].tolist()


def test_folders_of_images_are_classes(tmp_path):
    names = {"b/2.png": 3, "b/10.png": 4, "a/deep/1.png": 2, "a/1.bmp": 1}
    put(tmp_path, {name: shade(level) for name, level in names.items()})
    put(tmp_path, {"notes.txt": b"x", ".hidden/1.png": b"x", "a/Thumbs.db": b"x", "c/d.txt": b""})
    table = read_grids(tmp_path)
    assert table.frame["image"].tolist() == ["a/1.bmp", "a/deep/1.png", "b/2.png", "b/10.png"]
    assert table.frame["class"].tolist() == ["a", "a", "b", "b"]
    assert levels(table) == [1, 2, 3, 4] and table.target == "class"
    assert table.grids.names == tuple(table.frame["image"])
    assert table.notes == ["no images in c: left out."] and is_grids(tmp_path)


def test_a_class_with_one_image_is_noted(tmp_path):
    put(tmp_path, {"a/1.png": shade(1), "a/2.png": shade(2), "b/1.png": shade(3)})
    assert "one image only in class b: it cannot be both" in read_grids(tmp_path).notes[0]


def test_parts_become_a_column(tmp_path):
    names = ["train/a/1.png", "train/b/1.png", "test/a/2.png", "test/b/2.png", "valid/a/3.png"]
    put(tmp_path, {name: shade(k) for k, name in enumerate(names)} | {"valid/b/3.png": shade(5)})
    frame = read_grids(tmp_path).frame
    assert frame["split"].value_counts().to_dict() == {"train": 2, "test": 2, "validation": 2}
    assert frame["class"].tolist() == ["a", "b"] * 3


def test_images_alone_have_no_target(tmp_path):
    put(tmp_path, {"10.png": shade(2), "9.png": shade(1)})
    for data in (tmp_path, [tmp_path / "9.png", tmp_path / "10.png"]):
        table = read_grids(data)
        assert levels(table) == [1, 2] and table.target is None and is_grids(data)
    assert len(read_grids(tmp_path / "9.png")) == 1


@pytest.mark.parametrize(
    "images, said",
    [
        ({}, "is an empty folder"),
        ({"a.txt": b"x", "b.csv": b"x"}, "holds no images, only .csv, .txt files"),
        ({"a/1.png": shade(1), "b/1.png": b"text"}, "b/1.png is not an image: it holds text"),
        ({"a/1.png": shade(1), "b/1.png": b""}, "b/1.png is empty (0 bytes)"),
        ({"a/1.png": shade(1), "b/1.svg": b"<svg/>"}, "it is an SVG drawing"),
        ({"1.png": shade(1), "2.npy": b""}, "2.npy beside 1.png"),
    ],
)
def test_a_folder_that_cannot_be_trained_on_is_refused(tmp_path, images, said):
    with pytest.raises(DataError) as caught:
        read_grids(put(tmp_path, images))
    assert said in str(caught.value).replace("\\", "/") and "\n" not in str(caught.value)


def test_a_class_that_is_called_like_a_part_is_noted(tmp_path):
    put(tmp_path, {"train/1.png": shade(1), "new/1.png": shade(2)})
    table = read_grids(tmp_path)
    assert set(table.frame["class"]) == {"train", "new"}
    assert any("folder 'train' is taken for a class" in note for note in table.notes)


def test_damaged_files_are_left_out_on_request(tmp_path):
    put(tmp_path, {f"{c}/{k}.png": shade(k) for c in "ab" for k in range(3)})
    noise = np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8)
    put(tmp_path, {"a/cut.jpg": Image.fromarray(noise), "a/text.png": b"text"})
    (tmp_path / "a/cut.jpg").write_bytes((tmp_path / "a/cut.jpg").read_bytes()[:-500])
    with pytest.raises(DataError, match=r"text.png is not an image.*on_corrupt='skip'"):
        read_grids(tmp_path)
    (tmp_path / "a/text.png").unlink()
    with pytest.raises(DataError, match=r"cut.jpg is a damaged image.*truncated"):
        read_grids(tmp_path, size=(4, 6))
    put(tmp_path, {"a/text.png": b"text"})
    table = read_grids(tmp_path, on_corrupt="skip", size=(4, 6))
    assert levels(table) == [0, 1, 2] * 2 and table.frame["class"].tolist() == list("aaabbb")
    assert len(table.frame) == 6 and any("2 of 8 files left out" in note for note in table.notes)
    for part in ("a", "b"):
        for k in range(3):
            (tmp_path / part / f"{k}.png").write_bytes(b"text")
    with pytest.raises(DataError, match="Nothing is left"):
        read_grids(tmp_path, on_corrupt="skip")


@pytest.mark.parametrize("memory", [None, 1], ids=["memory", "files"])
def test_a_file_that_is_left_out_has_no_say_in_what_the_others_become(tmp_path, memory):
    """Its header is whole, and is that of a larger image with colours."""
    put(tmp_path, {f"{c}/{k}.png": shade(k) for c in "ab" for k in range(3)})
    alone = read_grids(tmp_path, memory_limit=memory)
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    put(tmp_path, {"a/cut.jpg": Image.fromarray(noise)})
    (tmp_path / "a/cut.jpg").write_bytes((tmp_path / "a/cut.jpg").read_bytes()[:-500])
    table = read_grids(tmp_path, on_corrupt="skip", memory_limit=memory)
    assert table.grids.shape == alone.grids.shape == (1, 4, 6)
    assert_array_equal(table.grids.load(), alone.grids.load())
    assert not any("colour" in note or "size" in note for note in table.notes)


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_links_in_a_circle_are_named_or_not_followed(tmp_path):
    put(tmp_path, {"a/1.png": shade(1), "b/1.png": shade(1)})
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    assert len(read_grids(tmp_path)) == 2
    (tmp_path / "b" / "x.png").symlink_to(tmp_path / "b" / "x.png")
    with pytest.raises(DataError, match=r"x.png cannot be opened: Too many levels"):
        read_grids(tmp_path)


def test_mixed_sizes_are_fitted_into_the_commonest_with_a_note(tmp_path):
    put(tmp_path, {f"{k}.png": shade(100) for k in range(3)})
    put(tmp_path, {"wide.png": shade(100, (4, 12))})
    table = read_grids(tmp_path)
    assert table.grids.shape == (1, 4, 6)
    assert table.grids.load()[3, 0, :, 0].tolist() == [0, 100, 100, 0]
    assert "1 of 4 images have another size than 4 x 6" in table.notes[0]
    assert read_grids(tmp_path, size=8).grids.shape == (1, 8, 8)
    put(tmp_path, {"huge.png": shade(100, (100, 100))})
    with pytest.raises(DataError, match=r"huge.png is 100 x 100, the others are some 4 x 6"):
        read_grids(tmp_path)
    assert len(read_grids(tmp_path, size=(4, 6))) == 5


def test_grey_and_colour_make_colour(tmp_path):
    put(tmp_path, {"1.png": shade(7), "2.png": Image.new("RGB", (6, 4), (1, 2, 3))})
    table = read_grids(tmp_path)
    assert table.grids.load()[:, :, 0, 0].tolist() == [[7, 7, 7], [1, 2, 3]]
    assert table.notes == ["1 of 2 images are grey: they were read as colour."]
    assert read_grids(tmp_path, channels=1).grids.shape == (1, 4, 6)


def test_eight_and_sixteen_bits_make_shares(tmp_path):
    sixteen = Image.fromarray(np.full((4, 6), 65535, np.uint16))
    put(tmp_path, {"1.png": shade(255), "2.png": sixteen})
    table = read_grids(tmp_path)
    assert table.grids.dtype == torch.float32 and levels(table) == [1, 1]
    assert any("1 of 2 images have 16 bits (2.png)" in note for note in table.notes)
    put(tmp_path, {"3.tif": Image.fromarray(np.ones((4, 6), np.float32))})
    with pytest.raises(DataError, match=r"3.tif holds free numbers, beside"):
        read_grids(tmp_path)


def corner(value, size=(4, 6)):
    mask = np.zeros(size, np.uint8)
    mask[0, 0] = value
    return Image.fromarray(mask)


@pytest.mark.parametrize("folders", [("image", "label"), ("Images", "masks"), ("imgs", "gt")])
def test_images_and_masks_are_paired_by_name(tmp_path, folders):
    x, y = folders
    put(tmp_path, {f"{x}/{k}.png": shade(k) for k in (2, 10)})
    put(tmp_path, {f"{y}/2_mask.png": corner(255), f"{y}/10.png": corner(0)})
    table = read_grids(tmp_path, classes=["back", "front"])
    assert levels(table) == [2, 10] and table.target == "mask"
    assert table.masks.load()[:, 0, 0].tolist() == [1, 0]
    assert table.masks.classes == ("back", "front") and table.masks.shape == (4, 6)


def test_masks_from_a_folder_that_is_named(tmp_path):
    put(tmp_path, {"x/1.png": shade(1), "z/1.png": corner(3), "z/2.png": corner(0)})
    table = read_grids(tmp_path / "x", masks=tmp_path / "z")
    assert table.masks.load()[0, 0, 0] == 1 and table.masks.classes == ("0", "3")
    assert table.notes == ["masks without an image, left out: 1."]


def test_palette_masks_count_by_index_and_an_unlabelled_value_is_unknown(tmp_path):
    values = np.array([[0, 1], [2, 255]], np.uint8)
    image = Image.fromarray(values).convert("P")
    image.putdata(values.ravel())
    image.putpalette([level for k in range(256) for level in (k, 255 - k, 7)])
    put(tmp_path, {"images/1.png": shade(1, (2, 2)), "masks/1.png": image})
    masks = read_grids(tmp_path, unlabelled=255).masks
    assert masks.load().tolist() == [[[0, 1], [2, -1]]] and masks.classes == ("0", "1", "2")


def test_masks_are_scaled_like_their_images_with_nothing_known_around(tmp_path):
    put(tmp_path, {f"images/{k}.png": shade(9) for k in range(3)})
    put(tmp_path, {f"masks/{k}.png": corner(1) for k in range(3)})
    put(tmp_path, {"images/w.png": shade(9, (4, 12)), "masks/w.png": corner(1, (4, 12))})
    table = read_grids(tmp_path)
    assert table.masks.load()[3, :, 0].tolist() == [-1, 0, 0, -1]
    inside = table.masks.load()[3] >= 0
    assert_array_equal(inside, table.grids.load()[3, 0] > 0)


NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (4, 6), np.uint8))
MASKS = {
    "1.png": (corner(1, (4, 5)), "1.png is 4 x 5, its image images/1.png 4 x 6"),
    "2.png": (corner(1), "images/1.png has no mask in"),
    "1.jpg": (NOISE, "JPEG invents values between classes"),
    "1.webp": (Image.new("RGBA", (6, 4), (1, 2, 3, 9)), "is a mask in mode RGBA"),
    "1.tif": (Image.fromarray(np.ones((4, 6), np.float32)), "is a mask in mode F"),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_that_do_not_match_are_refused(tmp_path, name):
    mask, said = MASKS[name]
    put(tmp_path, {"images/1.png": shade(1), f"masks/{name}": mask})
    with pytest.raises(DataError) as caught:
        read_grids(tmp_path)
    assert said in str(caught.value).replace("\\", "/") and "\n" not in str(caught.value)


def test_grey_saved_as_colour_is_a_mask(tmp_path):
    put(tmp_path, {"images/1.png": shade(1), "masks/1.png": corner(255).convert("RGBA")})
    assert read_grids(tmp_path).masks.load().sum() == 1


def test_a_table_of_paths_keeps_its_columns(tmp_path):
    put(tmp_path, {"x/1.png": shade(1), "x/2.png": shade(2), "m.png": corner(1)})
    path = tmp_path / "faces.csv"
    path.write_text("file,age,seg\nx/1.png,31,m.png\nx/2.png,,m.png\n")
    table = read_grids(path, image="file")
    assert levels(table) == [1, 2] and table.target is None and is_grids(path)
    assert list(table.frame) == ["file", "age", "seg"] and table.frame["age"].isna().tolist() == [
        0,
        1,
    ]
    with pytest.raises(UsageError, match=r"holds the images, file or seg\? Say --image"):
        read_grids(path)
    table = read_grids(path, masks="seg")
    assert table.masks.load()[:, 0, 0].tolist() == [1, 1] and list(table.frame) == ["file", "age"]
    frame = pd.read_csv(path).assign(file=[str(tmp_path / "x/1.png"), str(tmp_path / "x/2.png")])
    assert levels(read_grids(frame.drop(columns="seg"))) == [1, 2]


@pytest.mark.parametrize(
    "text, options, said",
    [
        ("file,y\nno.png,1\n", {}, "no.png does not exist"),
        ("file,y\na.png,1\n,2\n", {}, "row 2: no path in column 'file'"),
        ("a,y\n1,1\n2,2\n", {}, "no column of paths to images"),
        ("file,y\na.png,1\n", {"image": "path"}, "no column 'path'"),
        ("file,y\nhttp://a/b.png,1\n", {}, "is not the path of a local file"),
    ],
)
def test_a_table_without_its_images_is_refused(tmp_path, text, options, said):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises((DataError, UsageError), match=said):
        read_grids(tmp_path / "t.csv", **options)


@pytest.mark.parametrize("cells", [["x/01", "x/02"], ["01", "02"]])
def test_a_table_may_name_files_without_their_endings(tmp_path, cells):
    put(tmp_path, {f"{folder}0{k}.png": shade(k) for k in (1, 2) for folder in ("", "x/")})
    (tmp_path / "t.csv").write_text("id,y\n" + "".join(f"{cell},1\n" for cell in cells))
    table = read_grids(tmp_path / "t.csv", image="id")
    assert levels(table) == [1, 2] and table.grids.names == tuple(cells)
    assert "2 files were found by them" in table.notes[0]
    put(tmp_path, {"1.bmp": shade(3), "x/01.jpg": shade(3)})
    with pytest.raises(DataError, match=r"row 1: '0?1' may be 01\.\w+ or \w+\.\w+\. Write"):
        read_grids(tmp_path / "t.csv", image="id")


def test_an_id_that_leads_nowhere_is_noted_or_left_out(tmp_path):
    put(tmp_path, {"a.png": shade(1)})
    (tmp_path / "t.csv").write_text("id\na\nb\n")
    with pytest.raises(DataError, match=r"b does not exist, and no image beside it is called so"):
        read_grids(tmp_path / "t.csv", image="id")
    assert len(read_grids(tmp_path / "t.csv", image="id", on_corrupt="skip")) == 1


def test_arrays_in_a_file_are_grids_with_columns(tmp_path):
    x = np.arange(2 * 8 * 9 * 3, dtype=np.uint8).reshape(2, 8, 9, 3)
    np.savez(tmp_path / "a.npz", X=x, y=np.array([[1], [0]]), class_names=np.array(["cat", "dog"]))
    table = read_grids(tmp_path / "a.npz")
    assert_array_equal(table.grids.load(), x.transpose(0, 3, 1, 2))
    assert table.frame["y"].tolist() == ["dog", "cat"] and table.target == "y"
    np.savez(tmp_path / "b.npz", x_train=x, y_train=[0.5, 1.5], x_test=x[:1], y_test=[2.5])
    table = read_grids(tmp_path / "b.npz")
    assert table.frame["y"].tolist() == [0.5, 1.5, 2.5]
    assert table.frame["split"].tolist() == ["train", "train", "test"]
    np.savez(tmp_path / "c.npz", images=x, masks=x[..., 0] % 2 * 255)
    table = read_grids(tmp_path / "c.npz")
    assert_array_equal(table.masks.load(), x[..., 0] % 2)
    np.save(tmp_path / "d.npy", x)
    assert_array_equal(read_grids(tmp_path / "d.npy").grids.load(), x.transpose(0, 3, 1, 2))
    np.savez(tmp_path / "e.npz", X=np.eye(3), y=np.arange(3))
    assert [is_grids(tmp_path / f"{name}.npz") for name in "abce"] == [True, True, True, False]


def test_arrays_in_python_are_read_alike():
    x = torch.arange(2 * 4 * 4, dtype=torch.uint8).reshape(2, 4, 4)
    for data in (x, x.numpy(), {"x": x}, x.tolist()):
        assert_array_equal(read_grids(data).grids.load()[:, 0].to(x), x)
    for data in (x, Grids.of(x)):
        table = read_grids(data, masks=x % 2)
        assert_array_equal(table.masks.load(), x % 2)
    with pytest.raises(DataError, match=r"the array has shape \(0,\)"):
        read_grids([])
    assert read_grids(table) is table and read_grids(Grids.of(x)).grids.shape == (1, 4, 4)


@pytest.mark.parametrize(
    "arrays, said",
    [
        ({"x": np.full((2, 4, 4), np.nan)}, r"array 'x' holds nan at \[0, 0, 0\]"),
        ({"x": np.zeros((2, 4, 4)), "y": np.zeros(3)}, r"'y' has shape \(3,\) for 2 examples"),
        ({"a": np.zeros((2, 4, 4)), "b": np.zeros((2, 4, 4))}, "which array holds the grids"),
        ({"x": np.zeros((2, 4, 4)), "y": np.array([0, 2]), "class_names": ["a", "b"]}, "2 classes"),
        ({"x_train": np.zeros((2, 4, 4)), "y_test": np.zeros(2)}, "not there for each"),
        ({"x": np.zeros((2, 4, 4)), "z": np.zeros((2, 3, 3))}, "expected a number per example"),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(tmp_path, arrays, said):
    np.savez(tmp_path / "a.npz", **arrays)
    for data in (arrays, tmp_path / "a.npz"):
        with pytest.raises(DataError, match=said):
            read_grids(data)


class Bomb:
    def __reduce__(self):
        return (Path("canary").write_text, ("boom",))


def test_pickled_arrays_are_refused_and_run_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bad = np.array([[[Bomb()]]], dtype=object)
    np.save("a.npy", bad, allow_pickle=True)
    np.savez("a.npz", x=bad)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(DataError, match="Python objects, which are never loaded"):
            read_grids(name)
    assert not Path("canary").exists()


def test_a_header_that_claims_more_than_the_file_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 2, 2)))
    content = (tmp_path / "a.npy").read_bytes().replace(b"(2, 2, 2)", b"(9, 9999999, 9999)"[:9])
    (tmp_path / "a.npy").write_bytes(content.replace(b"(9, 99999", b"(99, 9,9)"))
    with pytest.raises(DataError, match=r"a.npy is not a readable .npy file"):
        read_grids(tmp_path / "a.npy")


def idx(array):
    head = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return head + array.tobytes()


def test_idx_files_find_their_labels(tmp_path):
    x, y = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5), np.array([2, 0, 1], np.uint8)
    path = tmp_path / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(idx(x)))
    assert read_grids(path).target is None and "no labels beside" in read_grids(path).notes[0]
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(y))
    table = read_grids(path)
    assert_array_equal(table.grids.load()[:, 0], x)
    assert table.frame["class"].tolist() == ["2", "0", "1"] and is_grids(path)
    path.write_bytes(idx(x)[:-1])
    with pytest.raises(DataError, match=r"claims 3 x 4 x 5 numbers; it holds 59 bytes"):
        read_grids(path)
    path.write_bytes(b"\x00\x00\x08\x03\xff")
    with pytest.raises(DataError, match="ends in its header"):
        read_grids(path)


def test_the_numbers_of_a_row_are_a_signal(tmp_path):
    path = tmp_path / "signals.csv"
    path.write_text("t0,t1,t2,y,who\n1,2,3,0,ann\n4,5,6,1,bob\n")
    table = read_grids(path, signals=True, target=["y"])
    assert table.grids.load().tolist() == [[[1, 2, 3]], [[4, 5, 6]]]
    assert list(table.frame) == ["y", "who"] and table.target == "y" and not is_grids(path)
    path.write_text("t0,t1,t2\n1,2,3\n")  # to predict: the outcome is not there
    assert read_grids(path, signals=True, target=["y"]).grids.shape == (1, 3)
    path.write_text("t0,t1,y\n1,,0\n")
    with pytest.raises(DataError, match="row 1, column 't1': a gap in a signal"):
        read_grids(path, signals=True, target=["y"])


def test_a_set_larger_than_its_memory_stays_in_its_files(tmp_path):
    put(tmp_path, {f"images/{k}.png": shade(k) for k in range(9)})
    put(tmp_path, {f"masks/{k}.png": corner(k % 2) for k in range(9)})
    memory, files = read_grids(tmp_path), read_grids(tmp_path, memory_limit=100)
    assert memory.grids.is_in_memory and not files.grids.is_in_memory
    assert "read from their files as they are needed" in files.notes[-1]
    assert_array_equal(files.grids.load(), memory.grids.load())
    assert_array_equal(files.masks.load(), memory.masks.load())
    assert_array_equal(files.grids.content_keys(1), memory.grids.content_keys(1))
    assert files.rows([3, 1]).masks.load()[:, 0, 0].tolist() == [1, 1]
    (tmp_path / "images/4.png").write_bytes(b"gone")
    with pytest.raises(DataError, match=r"4.png is not an image"):
        files.grids.load([4])


def test_odd_options_are_named():
    x = np.zeros((2, 4, 4))
    for options, said in (
        ({"channels": 0}, "channels must be their number"),
        ({"size": (1, 2, 3, 4)}, "size must be one number or"),
        ({"on_corrupt": "ignore"}, "'refuse' or 'skip'"),
        ({"memory_limit": "lots"}, "size like 4GB"),
        ({"sise": 32}, "read_grids has no option 'sise'. Did you mean 'size'"),
    ):
        with pytest.raises(UsageError, match=said):
            read_grids(x, **options)
    with pytest.raises(DataError, match="does not exist"):
        read_grids("no-such-folder")


def test_a_number_of_channels_and_a_size_are_what_arrays_must_have():
    x = np.zeros((2, 8, 9, 2))
    assert read_grids(x, channels=2).grids.shape == (2, 8, 9)
    assert read_grids(x[..., 0], channels=1, size=(8, 9)).grids.shape == (1, 8, 9)
    assert read_grids(np.zeros((2, 5, 8, 9)), channels=1).grids.shape == (1, 5, 8, 9)
    assert read_grids(np.zeros((2, 5, 8)), channels=5).grids.shape == (5, 8)
    for options, said in (
        ({"channels": 3}, "second and last axis are not 3"),
        ({"channels": 2, "size": 8}, r"size \(8, 9\), expected \(8, 8\): arrays are not resized"),
    ):
        with pytest.raises(DataError, match=said):
            read_grids(x, **options)


def test_images_have_two_axes_and_one_or_three_channels(tmp_path):
    put(tmp_path, {"1.png": shade(1)})
    with pytest.raises(UsageError, match="a height and a width"):
        read_grids(tmp_path, size=(4, 4, 4))
    with pytest.raises(UsageError, match="with 1 or 3 channels, asked for 2"):
        read_grids(tmp_path, channels=2)


def test_a_data_set_that_is_a_table_is_said_to_be_one(monkeypatch):
    made = Dataset("towns", pd.DataFrame({"a": [1]}), "a", "Towns.", "none")
    monkeypatch.setitem(registry._members, "towns", lambda: made)
    with pytest.raises(UsageError, match="'towns' is a table"):
        read_grids("towns")


def test_tables_that_name_images_are_recognized_in_every_format(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "age,file\n3,a.png\n4,b.png\n"
    Path("a.csv").write_text(text)
    Path("a.tsv").write_text(text.replace(",", "\t"))
    Path("a.csv.gz").write_bytes(gzip.compress(text.encode()))
    frame = pd.DataFrame({"age": [3, 4], "file": ["a.png", "b.png"]})
    frame.to_parquet("a.parquet")
    for there in (False, True):  # names of files that are not there are words
        for data in ("a.csv", "a.tsv", "a.csv.gz", "a.parquet", frame):
            assert is_grids(data) is there
        put(tmp_path, {"a.png": shade(1)})
    frame[["age"]].to_parquet("b.parquet")
    Path("c.parquet").write_bytes(b"PAR1")
    Path("c.csv.gz").write_bytes(b"\x1f\x8bxx")
    for data in ("b.parquet", "c.parquet", "c.csv.gz", frame[["age"]], frame[:0]):
        assert not is_grids(data)


def test_paths_of_windows_are_found(tmp_path):
    put(tmp_path, {f"{c}/{k}.png": shade(k) for c in "ab" for k in range(2)})
    rows = "".join(f"{c}\\{k}.png,{k}\n" for c in "ab" for k in range(2))
    (tmp_path / "t.csv").write_text("file,y\n" + rows)
    assert is_grids(tmp_path / "t.csv")
    table = read_grids(tmp_path / "t.csv")
    assert levels(table) == [0, 1, 0, 1] and table.grids.names[-1] == "b/1.png"
    (tmp_path / "t.csv").write_text("file,y\nC:\\b\\1.png,1\n")
    assert not is_grids(tmp_path / "t.csv")


def test_tables_are_not_taken_for_images(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    for data in (tmp_path, tmp_path / "a.csv", "iris", "no-such", {"a": [1]}, np.eye(3)):
        assert not is_grids(data)
    assert is_grids("mnist") and is_grids({"x": np.zeros((2, 3, 3))})


# To predict: the examples alone.


def test_inputs_alone_need_neither_masks_nor_classes(tmp_path):
    put(tmp_path, {"p/images/1.png": shade(1), "p/images/2.png": shade(2), "p/masks/1.png": NOISE})
    put(tmp_path, {"one/batch/1.png": shade(1), "loose/3.png": shade(3), "loose/a/1.png": shade(1)})
    for k, part in enumerate(("test", "val")):
        put(tmp_path / "parts" / part, {"images/1.png": shade(k), "gt/1.png": b""})
    for name, found in (("p", [1, 2]), ("one", [1]), ("loose", [3, 1]), ("parts", [0, 1])):
        table = read_grids(tmp_path / name, outcomes=False)
        assert levels(table) == found and table.masks is None and list(table.frame) == ["image"]
    with pytest.raises(DataError, match="has no mask in"):
        read_grids(tmp_path / "p")


def test_inputs_alone_of_a_table_need_no_column_of_masks(tmp_path):
    put(tmp_path, {"1.png": shade(1)})
    for text in ("file,seg\n1.png,gone.png\n", "file\n1.png\n"):
        (tmp_path / "t.csv").write_text(text)
        assert levels(read_grids(tmp_path / "t.csv", masks="seg", outcomes=False)) == [1]


def test_a_folder_of_masks_that_is_named_holds_no_inputs(tmp_path):
    put(tmp_path, {"1.png": shade(1), "m/1.png": corner(1)})
    found = read_grids(tmp_path, masks="m", outcomes=False)
    assert found.grids.names == ("1.png",)


# An option that means nothing for the data is refused.


@pytest.fixture
def published(monkeypatch):
    """A data set of images that is there."""
    x = np.zeros((4, 8, 8), np.uint8)
    frame = pd.DataFrame({"class": list("abab")})
    made = Dataset("shades", frame, "class", "Shades.", "none", grids=Grids.of(x))
    monkeypatch.setitem(registry._members, "shades", lambda: made)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"size": 4}, r"1 x 8 x 8: leave out --size \(size=\)"),
        ({"channels": 3}, "1 x 8 x 8: leave out --channels"),
        ({"classes": ["u", "v"]}, "read as published: leave out classes="),
        ({"masks": "m"}, "leave out --masks"),
        ({"image": "a"}, "shades has no columns of paths: leave out --image"),
        ({"unlabelled": 3}, "leave out --unlabelled"),
    ],
)
def test_a_data_set_by_name_is_read_as_published(published, options, said):
    assert read_grids("shades", size=8, channels=1).grids.shape == (1, 8, 8)
    with pytest.raises(UsageError, match=said):
        read_grids("shades", **options)


@pytest.mark.parametrize(
    "data, options",
    [
        ("a.npz", "masks image unlabelled"),
        ("x-images-idx3-ubyte", "masks image unlabelled"),
        ("images/1.png", "masks image unlabelled classes"),
        ("pets", "image unlabelled classes"),
        ("images", "image unlabelled classes"),
        ("signals.csv", "masks size unlabelled classes"),
    ],
)
def test_options_of_other_data_are_refused(tmp_path, monkeypatch, data, options):
    monkeypatch.chdir(tmp_path)
    x = np.zeros((2, 4, 6), np.uint8)
    np.savez("a.npz", x=x, y=[0, 1])
    Path("x-images-idx3-ubyte").write_bytes(idx(x))
    put(tmp_path, {"images/1.png": shade(1), "pets/a/1.png": shade(1), "pets/b/1.png": shade(2)})
    Path("signals.csv").write_text("a,b\n1,2\n3,4\n")
    values = {"masks": "images", "image": "a", "unlabelled": 3, "classes": ["u", "v"], "size": 4}
    signals = {"signals": True} if data == "signals.csv" else {}
    assert len(read_grids(data, **signals))
    for name in options.split():
        with pytest.raises(UsageError, match=f"leave out (--{name} .{name}=.|{name}=)"):
            read_grids(data, **{name: values[name]}, **signals)


def test_the_masks_of_an_array_file_may_be_another(tmp_path):
    x = np.arange(32, dtype=np.uint8).reshape(2, 4, 4)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "m.npy", x % 2)
    masks = read_grids(tmp_path / "x.npy", masks=tmp_path / "m.npy").masks
    assert_array_equal(masks.load(), x % 2)


def test_an_image_is_not_its_own_mask(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(tmp_path, {"x/1.png": corner(1)})
    for masks in ("x", tmp_path / "x", "../" + tmp_path.name + "/x"):
        with pytest.raises(UsageError, match=r"Leave it out where masks lie beside"):
            read_grids("x", masks=masks)
    Path("t.csv").write_text("file\nx/1.png\n")
    for data, options in (
        ("t.csv", {"image": "file", "masks": "file"}),
        (["x/1.png"], {"masks": ["x/1.png"]}),
    ):
        with pytest.raises(UsageError, match=r"1.png would be its own mask"):
            read_grids(data, **options)


def test_columns_may_be_called_by_numbers(tmp_path):
    put(tmp_path, {"a.png": shade(1), "b.png": shade(2)})
    frame = pd.DataFrame([[str(tmp_path / "a.png"), 1.0], [str(tmp_path / "b.png"), 2.0]])
    assert is_grids(frame) and levels(read_grids(frame)) == [1, 2]
    table = read_grids(frame, image="0")
    assert levels(table) == [1, 2] and table.frame["1"].tolist() == [1, 2]
    assert not is_grids(frame.replace(str(tmp_path), "", regex=True))


def test_parts_of_two_kinds_are_refused(tmp_path):
    put(tmp_path, {"train/a/1.png": shade(1), "train/b/1.png": shade(2)})
    put(tmp_path, {"test/images/1.png": shade(1), "test/masks/1.png": corner(1)})
    with pytest.raises(DataError, match=r"parts of two kinds \(test by mask, train by class\)"):
        read_grids(tmp_path)


def test_negative_numbers_in_mask_files_are_cells_of_no_known_class(tmp_path):
    values = np.array([[0, 1], [-1, -7]], np.int32)
    put(tmp_path, {"images/1.png": shade(1, (2, 2)), "masks/1.tif": Image.fromarray(values)})
    masks = read_grids(tmp_path).masks
    assert masks.classes == ("0", "1") and masks.load().tolist() == [[[0, 1], [-1, -1]]]
    assert masks.classes == read_grids(np.zeros((1, 2, 2)), masks=values[None]).masks.classes


def test_eight_bits_become_shares_on_request(tmp_path):
    put(tmp_path, {"1.png": shade(51)})
    grids = read_grids(tmp_path, shares=True).grids
    assert grids.dtype == torch.float32 and grids.load().unique().tolist() == [np.float32(0.2)]


def test_volumes_without_channels_are_said_by_a_word(tmp_path):
    np.savez(tmp_path / "v.npz", x=np.zeros((2, 8, 8, 8)), y=[0, 1])
    with pytest.raises(DataError, match=r"Say .*--channels first, last, none"):
        read_grids(tmp_path / "v.npz")
    assert read_grids(tmp_path / "v.npz", channels="none").grids.shape == (1, 8, 8, 8)


def test_a_number_of_channels_is_found_in_array_files(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 30)))
    assert read_grids(tmp_path, channels=3).grids.shape == (3, 30)
    np.save(tmp_path / "a.npy", np.zeros((2, 8, 9)))
    assert read_grids(tmp_path, channels=2).grids.shape == (2, 8, 9)
    assert read_grids(tmp_path, channels=1).grids.shape == (1, 2, 8, 9)


def test_a_mask_beside_its_image_is_no_example_of_the_class(tmp_path):
    names = ["a/1.png", "a/1_mask.png", "a/1_mask_1.png", "a/2.png", "b/3.png", "b/face_mask.png"]
    put(tmp_path, {name: shade(k) for k, name in enumerate(names)})
    for table in (read_grids(tmp_path), read_grids(tmp_path, outcomes=False)):
        assert levels(table) == [0, 3, 4, 5]
        said = "2 masks left out: called like an image beside them (1_mask.png)."
        assert said in table.notes


def test_masks_beside_their_images_are_pairs(tmp_path):
    for k in (1, 2):
        put(tmp_path, {f"{k}.png": shade(k), f"{k}_mask.png": shade(255 * (k - 1))})
    table = read_grids(tmp_path)
    assert levels(table) == [1, 2] and table.target == "mask"
    assert table.masks.load()[:, 0, 0].tolist() == [0, 1]


def test_the_folders_of_nnunet_are_images_and_masks(tmp_path):
    put(tmp_path, {"imagesTr/a_0000.png": shade(7), "labelsTr/a.png": shade(1)})
    table = read_grids(tmp_path)
    assert levels(table) == [7] and table.target == "mask"


def test_a_column_of_masks_is_not_taken_for_images(tmp_path):
    put(tmp_path, {"1.png": shade(1), "m.png": shade(2)})
    frame = pd.DataFrame({"id": ["p1"], "mask": [str(tmp_path / "m.png")], "age": [3]})
    with pytest.raises(UsageError, match=r"column 'mask' seems to name masks.*--image"):
        read_grids(frame)
    assert levels(read_grids(frame, image="mask")) == [2]
    assert levels(read_grids(frame.assign(file=str(tmp_path / "1.png")))) == [1]


def test_an_option_that_is_none_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match=r"no option 'sise'. Did you mean 'size'\?"):
        read_grids(np.zeros((2, 4, 4)), sise=4)
    with pytest.raises(UsageError, match=r"no option 'zzz'\. It has channels, classes"):
        read_grids(np.zeros((2, 4, 4)), zzz=4)


@pytest.fixture
def folder(tmp_path):
    """Images of three sizes, one of them in colour."""
    for k, size in enumerate([(4, 6), (5, 5), (8, 4)]):
        Image.new("RGB" if k == 1 else "L", size[::-1], k + 1).save(tmp_path / f"{k}.png")
    return tmp_path


def test_every_file_keeps_its_size(folder):
    notes = []
    found = list(read_each(folder, notes=notes, channels=1))
    assert [each.table.grids.shape[1:] for each in found] == [(4, 6), (5, 5), (8, 4)]
    assert [each.table.grids.names for each in found] == [("0.png",), ("1.png",), ("2.png",)]
    assert [each.size for each in found] == [None] * 3
    assert notes == ["some images have colours: they were read as grey."]


def test_a_size_that_is_asked_for_comes_with_the_image_s_own(folder):
    found = list(read_each(folder, notes=[], size=4))
    assert {each.table.grids.shape[1:] for each in found} == {(4, 4)}
    assert [each.size for each in found] == [(4, 6), (5, 5), (8, 4)]


def test_damaged_files_are_refused_or_left_out_with_a_note(folder):
    (folder / "1.png").write_text("none")
    with pytest.raises(DataError, match=r"1.png is not an image.*--skip-corrupt"):
        list(read_each(folder, notes=[]))
    notes = []
    assert len(list(read_each(folder, notes=notes, on_corrupt="skip"))) == 2
    assert len(notes) == 1 and notes[0].startswith("1 of 3 files left out:")
    assert "--skip-corrupt" not in notes[0]
    for k in range(3):
        (folder / f"{k}.png").write_text("none")
    with pytest.raises(DataError, match="Nothing is left"):
        list(read_each(folder, notes=[], on_corrupt="skip"))


def test_what_is_no_list_of_files_is_one_table():
    x = np.zeros((3, 4, 4), np.uint8)
    (found,) = read_each(x, notes=[], channels=1)
    assert len(found.table) == len(read_grids(x))
    assert found.size is found.stack is found.volume is None
