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
from ansatz.errors import DataError
from ansatz.estimators.rows import looks_like_grids, read_column, read_rows


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
