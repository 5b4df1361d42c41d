from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from PIL import Image
from scipy import sparse

from ansatz import Classifier, Regressor
from ansatz.data.grids import Grids, read_grids
from ansatz.data.grids.nifti import write_nifti
from ansatz.errors import DataError, UsageError
from ansatz.structures.vector.rows import looks_like_grids, read_column, read_rows


def test_a_frame_of_numbers_becomes_an_array_and_one_with_text_stays():
    numbers = pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan]})
    found = read_rows(Regressor(), numbers, reset=True)
    assert isinstance(found, np.ndarray) and np.isnan(found[1, 1])
    assert isinstance(read_rows(Regressor(), numbers, reset=True, as_table=True), pd.DataFrame)
    mixed = numbers.assign(c=["u", "v"])
    assert isinstance(read_rows(Regressor(), mixed, reset=True), pd.DataFrame)


def test_names_and_number_of_columns_are_remembered():
    model = Regressor()
    read_rows(model, pd.DataFrame({"a": ["u"], "b": [1]}), reset=True)
    assert model.feature_names_in_.tolist() == ["a", "b"] and model.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names"):
        read_rows(model, pd.DataFrame({"a": ["u"], "c": [1]}), reset=False, as_table=True)


@pytest.mark.parametrize(
    "bad",
    [
        np.ones(3),
        np.ones((2,) * 6),  # three to five axes are signals, images and volumes
        [["a", "b"]],
        [[1, 2], [3]],
        [[1 + 2j]],
        sparse.eye(3).tocsr(),
        sparse.eye(3).todok(),
        3.0,
        "houses.csv",
    ],
)
def test_what_is_no_table_is_refused(bad):
    with pytest.raises((ValueError, TypeError)):
        read_rows(Regressor(), bad, reset=True)


def test_a_column_is_copied_checked_and_may_be_absent():
    values = np.arange(3.0)
    column = read_column("offset", values, 3)
    column[0] = 9
    assert values[0] == 0 and read_column("offset", None, 3) is None
    with pytest.raises(DataError, match="offset must be finite, got inf at row 1"):
        read_column("offset", [0, np.inf, 0], 3)


# What docs/grids.md promises as X.


@pytest.fixture
def files(tmp_path):
    """Images of one size in files of every kind, by the files' ending."""
    x = np.random.default_rng(0).integers(0, 256, (6, 8, 9)).astype(np.uint8)
    for k, image in enumerate(x):
        Image.fromarray(image).save(tmp_path / f"{k}.png")
        np.save(tmp_path / f"{k}.npy", image)
        write_nifti(tmp_path / f"{k}.nii.gz", image[None])
    return lambda ending: [str(tmp_path / f"{k}.{ending}") for k in range(6)], x


def as_paths(names):
    return [Path(name) for name in names]


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, as_paths, read_grids])
@pytest.mark.parametrize("ending", ["png", "npy", "nii.gz"])
def test_files_are_grids_in_every_form(files, ending, form):
    named, x = files
    found = read_rows(Regressor(), form(named(ending)), reset=True)
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
        assert not looks_like_grids(words)


IMAGES = np.random.default_rng(0).integers(0, 256, (12, 9, 8), np.uint8)
QUICK = {"network": "linear_grid", "epochs": 1, "holdout": 0.0}


def test_a_list_of_images_is_their_array():
    among_objects = np.empty(12, object)
    among_objects[:] = list(IMAGES)
    for form in (list(IMAGES), among_objects, [Image.fromarray(each) for each in IMAGES]):
        grids = read_rows(Classifier(), form, reset=True)
        assert_array_equal(grids.load()[:, 0], IMAGES)
    with pytest.raises(DataError, match=r"shapes, \(9, 8\) and \(8, 8\) at X\[1\]"):
        read_rows(Classifier(), [IMAGES[0], IMAGES[1, 1:]], reset=True)


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
        read_rows(Classifier(x="grid"), leads, reset=True)
    assert "--channels first" in read_grids({"x": leads}).notes[0]
    assert read_rows(Classifier(), Grids.of(leads, "first"), reset=True).shape == (3, 60)


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
