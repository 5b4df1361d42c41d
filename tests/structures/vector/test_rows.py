import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ansatz import Regressor
from ansatz.data import infer_columns
from ansatz.structures.vector.rows import read_table_rows


def read(estimator, X, columns=None, *, reset=True):
    return read_table_rows(X, estimator=estimator, columns=columns, reset=reset)


def test_a_frame_of_numbers_becomes_an_array_and_one_with_text_stays():
    numbers = pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan]})
    found = read(Regressor(), numbers)
    assert isinstance(found.values, np.ndarray) and np.isnan(found.values[1, 1])
    assert found.names == ["a", "b"] and found.columns is None
    assert isinstance(read(Regressor(), numbers, infer_columns(numbers)).values, pd.DataFrame)
    mixed = numbers.assign(c=["u", "v"])
    assert isinstance(read(Regressor(), mixed).values, pd.DataFrame)


def test_names_and_number_of_columns_are_remembered():
    model = Regressor()
    rows = read(model, pd.DataFrame({"a": ["u"], "b": [1]}))
    assert model.feature_names_in_.tolist() == ["a", "b"] and model.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names"):
        read(model, pd.DataFrame({"a": ["u"], "c": [1]}), rows.columns, reset=False)


@pytest.mark.parametrize(
    "bad",
    [
        np.ones(3),
        np.ones((2,) * 6),  # three to five axes are signals, images and volumes
        [["a", "b"]],
        [[1, 2], [3]],
        [[1 + 2j]],
        sparse.eye(3, dtype=complex).tocsr(),
        sparse.eye(3, dtype=complex).todok(),
        3.0,
        "houses.csv",
    ],
)
def test_what_is_no_table_is_refused(bad):
    model = Regressor()
    with pytest.raises((ValueError, TypeError)):
        model.task(bad).structure.from_python(bad, estimator=model, reset=True)
