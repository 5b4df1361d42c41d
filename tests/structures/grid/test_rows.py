"""What docs/images.md promises as X."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from ansatz import Classifier, Regressor
from ansatz.data.grids import Grids, read_grids
from ansatz.errors import DataError, UsageError
from ansatz.structures.grid.reading import grids_of
from ansatz.structures.grid.recognition import recognizes_rows

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
    found = grids_of(form(named(ending)), face=Regressor(), reset=True)
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
        grids = grids_of(form, face=Classifier(), reset=True)
        assert_array_equal(grids.load()[:, 0], IMAGES)
    with pytest.raises(DataError, match=r"shapes, \(9, 8\) and \(8, 8\) at X\[1\]"):
        grids_of([IMAGES[0], IMAGES[1, 1:]], face=Classifier(), reset=True)


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
def test_numbers_in_another_unit_than_the_fits_are_told():
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
        grids_of(leads, face=Classifier(), reset=True)
    assert "--channels first" in read_grids({"x": leads}).notes[0]
    assert grids_of(Grids.of(leads, "first"), face=Classifier(), reset=True).shape == (3, 60)


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
