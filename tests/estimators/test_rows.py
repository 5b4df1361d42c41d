import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ansatz import Regressor
from ansatz.errors import DataError
from ansatz.estimators.rows import read_column, read_rows


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
