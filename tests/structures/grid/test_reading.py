"""Grids read as a fit read them, and as a user hands them over."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from PIL import Image
from torch.testing import assert_close

import ansatz
from ansatz import Classifier, Regressor, Segmenter
from ansatz.data.grids import Grids, read_grids
from ansatz.errors import DataError, ModelError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.structures.grid.problem import grid_problem
from ansatz.structures.grid.reading import grids_of, read_each_like, read_like
from ansatz.structures.grid.recognition import recognizes_rows

PIXELS = {"network": "linear_pixels", "options": {"epochs": 2}}
CELLS = {"network": "linear_grid", "options": {"epochs": 2}}


def save(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def noise(*shape, seed=0, kind=np.uint8):
    return np.random.default_rng(seed).integers(0, np.iinfo(kind).max, shape).astype(kind)


def fit(folder, data, **options):
    """A model that was saved and loaded."""
    return ansatz.load(ansatz.fit(data, out=folder / "model", **options).folder)


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    """A table that names images and their masks, which are of two classes and 255."""
    monkeypatch.chdir(tmp_path)
    rows = []
    for k in range(16):
        image = noise(8, 8, seed=k)
        mask = (image > 100).astype(np.uint8)
        mask[0] = 255
        save(tmp_path / f"cells/images/{k}.png", image)
        save(tmp_path / f"cells/masks/{k}.png", mask)
        rows.append({"file": f"cells/images/{k}.png", "seg": f"cells/masks/{k}.png", "y": k % 2})
    pd.DataFrame(rows).to_csv("t.csv", index=False)
    return tmp_path


def test_the_column_of_images_is_remembered(pairs):
    model = fit(pairs, "t.csv", image="file", target="y", **CELLS)
    assert len(model.predict_frame("t.csv")) == 16 and model.evaluate("t.csv")["accuracy"] >= 0
    assert read_like(model.model_, "t.csv").grids.names[0] == "cells/images/0.png"
    assert (
        len(read_like(model.model_, "cells/images", outcomes=False)) == 16
    )  # a folder has no columns


def test_the_columns_of_images_and_masks_are_remembered(pairs):
    model = fit(pairs, "t.csv", masks="seg", unlabelled=255, **PIXELS)
    table = read_like(model.model_, "t.csv")
    assert table.masks.classes == ("0", "1") and model.evaluate(table)["dice"] >= 0
    pd.read_csv("t.csv").drop(columns="seg").to_csv("new.csv", index=False)
    for data in ("t.csv", "new.csv"):
        assert len(read_like(model.model_, data, outcomes=False)) == 16


def test_the_value_of_unlabelled_cells_is_remembered(pairs):
    model = fit(pairs, "cells", unlabelled=255, **PIXELS)
    assert read_like(model.model_, "cells").masks.classes == ("0", "1")
    assert model.evaluate("cells")["dice"] >= 0


def test_a_folder_of_masks_is_remembered_for_the_images_it_belongs_to(pairs):
    model = fit(pairs, "cells/images", masks="cells/masks", unlabelled=255, **PIXELS)
    assert read_like(model.model_, "cells/images").masks.classes == ("0", "1")
    save(pairs / "other/0.png", noise(8, 8))
    assert read_like(model.model_, "other", outcomes=False).masks is None
    with pytest.raises(UsageError, match="other has no masks"):
        read_like(model.model_, "other")


def test_the_size_of_a_fit_is_that_of_its_masks_too(pairs):
    model = fit(pairs, "cells", size=4, unlabelled=255, **PIXELS)
    assert read_like(model.model_, "cells").grids.shape == (1, 4, 4)
    first, *_ = read_each_like(model.model_, "cells", notes=[])
    assert first.table.grids.shape == (1, 4, 4) and first.size == (8, 8)


def test_what_pages_were_to_a_fit_they_are_to_its_model(pairs):
    """Told by option, or by one file of images and one of masks."""
    for name, values in {"x": noise(6, 8, 8), "y": noise(6, 8, 8, seed=1) % 2}.items():
        first, *others = map(Image.fromarray, values)
        first.save(pairs / f"{name}.tif", save_all=True, append_images=others)
    model = fit(pairs, "x.tif", masks="y.tif", **PIXELS)
    assert (
        len(read_like(model.model_, "x.tif", outcomes=False))
        == len(read_like(model.model_, "x.tif"))
        == 6
    )
    assert len(read_like(model.model_, ["x.tif"], outcomes=False)) == 6
    assert len(read_like(model.model_, "x.tif", outcomes=False, pages="first")) == 1
    assert (
        len(read_like(model.model_, {"x": noise(2, 8, 8)}, outcomes=False)) == 2
    )  # arrays: no pages
    assert read_like(model.model_, "x.tif", masks="y.tif").masks.classes == ("0", "1")


def test_grey_values_of_sixteen_bits_are_no_bytes(tmp_path):
    """Of 12 used bits, the upper eight of 16 would leave 16 levels."""
    for k in range(8):
        save(tmp_path / f"x/{'ab'[k % 2]}/{k}.png", noise(8, 8, seed=k))
    model = fit(tmp_path, tmp_path / "x", **CELLS)
    save(tmp_path / "new/0.png", noise(8, 8, kind=np.uint16))
    with pytest.raises(DataError, match="fitted to bytes from 0 to 255, got other numbers"):
        model.predict(read_like(model.model_, tmp_path / "new", outcomes=False).grids)


def test_bytes_are_shares_for_a_model_of_shares(tmp_path):
    for k in range(16):
        image = noise(8, 8, seed=k, kind=np.uint16 if k == 3 else np.uint8)
        save(tmp_path / f"x/{'ab'[k % 2]}/{k}.png", image)
    model = fit(tmp_path, tmp_path / "x", **CELLS)
    some, whole = (
        read_like(model.model_, tmp_path / "x/a").grids,
        read_like(model.model_, tmp_path / "x").grids,
    )
    assert some.dtype == torch.float32
    assert_array_equal(some.load(), whole.load()[:8])
    assert_close(model.predict_proba(some), model.predict_proba(whole)[:8])


def test_bytes_are_no_free_numbers(tmp_path):
    x = 100 * np.random.default_rng(0).normal(size=(16, 8, 8)).astype(np.float32)
    model = Classifier(network="linear_grid", epochs=1).fit(x, np.arange(16) % 2)
    save(tmp_path / "x/1.png", noise(8, 8))
    assert read_like(model.model_, tmp_path / "x").grids.dtype == torch.uint8


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("count", [2, 3])
def test_channels_are_found_by_their_number(tmp_path, count, last):
    x = np.random.default_rng(0).normal(size=(12, count, 30)).astype(np.float32)
    model = Classifier(network="linear_grid", epochs=1).fit(Grids.of(x, "first"), [0, 1] * 6)
    given = x.transpose(0, 2, 1) if last else x
    np.save(tmp_path / "x.npy", given)
    np.savez(tmp_path / "x.npz", x=given)
    for data in (tmp_path / "x.npy", tmp_path / "x.npz", given):
        assert_array_equal(read_like(model.model_, data).grids.load(), x)


def test_volumes_are_read_as_the_fit_did(tmp_path):
    x = np.random.default_rng(0).normal(size=(12, 6, 6, 6)).astype(np.float32)
    np.savez(tmp_path / "v.npz", x=x, y=[0, 1] * 6)
    model = fit(tmp_path, tmp_path / "v.npz", channels="none", **CELLS)
    assert read_like(model.model_, tmp_path / "v.npz").grids.shape == (1, 6, 6, 6)


def test_names_of_classes_that_were_numbers_are_remembered(tmp_path):
    np.savez(tmp_path / "x.npz", x=noise(16, 8, 8), y=np.arange(16) % 2)
    model = fit(tmp_path, tmp_path / "x.npz", classes=["cat", "dog"], **CELLS)
    assert model.evaluate(tmp_path / "x.npz")["accuracy"] >= 0


def test_dropped_columns_are_no_part_of_a_signal(tmp_path):
    values = np.random.default_rng(0).normal(size=(40, 6))
    frame = pd.DataFrame(values).add_prefix("t").assign(id=range(40), rhythm=["s", "f"] * 20)
    frame.to_csv(tmp_path / "s.csv", index=False)
    settings = {"x": "grid", "target": "rhythm", "drop": ["id"], **CELLS}
    model = fit(tmp_path, tmp_path / "s.csv", **settings)
    assert model.model_.encoder.preprocessor.shape == (1, 6)
    changed = model.predict_frame(frame.assign(id=-5e6))
    assert_array_equal(model.predict_frame(frame), changed)
    assert read_like(model.model_, frame.drop(columns=["id", "rhythm"])).grids.shape == (1, 6)
    with pytest.raises(UsageError, match="no target"):
        grid_problem(frame, ColumnRoles(), drop=["id"])


def test_a_model_made_by_its_class_has_no_options_of_a_fit(tmp_path):
    x = noise(8, 6, 6)
    model = Segmenter(network="linear_pixels", epochs=1).fit(x, x > 100)
    assert len(read_like(model.model_, {"x": x, "masks": (x > 100).astype(int)})) == 8
    model.model_.evidence = {"provenance": {"reader": 3}}
    with pytest.raises(ModelError, match="record of its rows"):
        read_like(model.model_, x)


IMAGES = np.random.default_rng(0).integers(0, 256, (12, 9, 8), np.uint8)
QUICK = {"network": "linear_grid", "epochs": 1, "holdout": 0.0}


@pytest.fixture
def files(tmp_path):
    """Images of one size in files of every kind, by the files' ending."""
    x = np.random.default_rng(0).integers(0, 256, (6, 8, 9)).astype(np.uint8)
    for k, image in enumerate(x):
        Image.fromarray(image).save(tmp_path / f"{k}.png")
        np.save(tmp_path / f"{k}.npy", image)
        head = bytearray(352)  # of NIfTI-1: length, sizes, type, offset, slope, magic
        struct.pack_into("<i", head, 0, 348)
        struct.pack_into("<8h", head, 40, 3, *image[None].shape[::-1], 1, 1, 1, 1)
        struct.pack_into("<h", head, 70, 2)
        struct.pack_into("<2f", head, 108, 352, 1)
        head[344:348] = b"n+1\0"
        (tmp_path / f"{k}.nii.gz").write_bytes(gzip.compress(bytes(head) + image.tobytes()))
    return lambda ending: [str(tmp_path / f"{k}.{ending}") for k in range(6)], x


def as_paths(names):
    return [Path(name) for name in names]


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, as_paths, read_grids])
@pytest.mark.parametrize("ending", ["png", "npy", "nii.gz"])
def test_files_are_grids_in_every_form(files, ending, form):
    named, x = files
    assert recognizes_rows(form(named(ending)))
    found = grids_of(form(named(ending)), estimator=Regressor(), reset=True)
    assert isinstance(found, Grids)
    assert_array_equal(found.load().flatten(), x.ravel())


def test_files_to_predict_get_the_size_and_the_channels_of_the_fit(files, tmp_path):
    named, x = files
    model = Classifier(network="linear_grid", epochs=1).fit(named("png"), [0, 1] * 3)
    Image.new("RGB", (20, 30), (9, 9, 9)).save(tmp_path / "large.png")
    assert model.predict_proba([tmp_path / "large.png", *named("png")]).shape == (7, 2)
    assert_array_equal(model.predict_proba(read_grids(x)), model.predict_proba(named("png")))


def test_words_are_no_files():
    for words in (["a", "b"], np.array(["a.x", "b"]), pd.Series(["a", None])):
        assert not recognizes_rows(words)


def test_a_list_of_images_is_their_array():
    among_objects = np.empty(12, object)
    among_objects[:] = list(IMAGES)
    for form in (list(IMAGES), among_objects, [Image.fromarray(each) for each in IMAGES]):
        grids = grids_of(form, estimator=Classifier(), reset=True)
        assert_array_equal(grids.load()[:, 0], IMAGES)
    with pytest.raises(DataError, match=r"shapes, \(9, 8\) and \(8, 8\) at X\[1\]"):
        grids_of([IMAGES[0], IMAGES[1, 1:]], estimator=Classifier(), reset=True)


def test_a_single_image_needs_an_axis_in_front():
    grey = Classifier(**QUICK).fit(IMAGES, np.arange(12) % 2)
    colour = Classifier(**QUICK).fit(np.stack([IMAGES] * 3, 1), np.arange(12) % 2)
    for model, one in ((grey, IMAGES[0]), (colour, np.stack([IMAGES[0]] * 3))):
        with pytest.raises(DataError, match=r"needs an axis in front: X\[None\]"):
            model.predict(one)
        assert len(model.predict(one[None])) == 1
    with pytest.raises(DataError, match="Give examples of that size"):
        grey.predict(IMAGES.reshape(12, -1))


@pytest.mark.filterwarnings("error")
def test_numbers_in_another_unit_than_the_fits_are_noted():
    shares = IMAGES / 255
    model = Classifier(**QUICK).fit(shares, np.arange(12) % 2)
    for other in (255 * shares, shares / 255):
        with pytest.warns(UserWarning, match="X has values from .* were they scaled alike"):
            model.predict(other)
    model.predict(shares[:1])
    model.predict(np.zeros((1, 9, 8)))


@pytest.mark.filterwarnings("error")
def test_several_leads_are_not_taken_for_an_image_in_silence():
    leads = np.zeros((4, 3, 60))
    with pytest.warns(UserWarning, match=r"images of 3 x 60; signals of 3 channels: Grids.of"):
        grids_of(leads, estimator=Classifier(), reset=True)
    assert "--channels first" in read_grids({"x": leads}).notes[0]
    assert grids_of(Grids.of(leads, "first"), estimator=Classifier(), reset=True).shape == (3, 60)


def test_a_path_is_predicted_but_not_fitted(tmp_path):
    names = [tmp_path / f"{k}.png" for k in range(12)]
    for name, image in zip(names, IMAGES, strict=True):
        Image.fromarray(image).save(name)
    model = Classifier(**QUICK).fit(names, np.arange(12) % 2)
    known = model.predict_proba(IMAGES)
    assert_array_equal(model.predict_proba(tmp_path), known)
    assert_array_equal(model.predict_proba(pd.DataFrame({"file": map(str, names)})), known)
    assert len(model.predict(str(names[0]))) == 1
    with pytest.raises(UsageError, match="read it first, table = read_grids"):
        model.fit(tmp_path, np.arange(12) % 2)
