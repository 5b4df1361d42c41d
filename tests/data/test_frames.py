import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from ansatz.data import as_frame, is_frame
from ansatz.errors import DataError, UsageError

EXPECTED = pd.DataFrame({"a": [1, 2], "b": ["u", "v"]})
SPELLED = {
    "pandas": EXPECTED,
    "pandas with an index": EXPECTED.set_axis([7, 3], axis=0),
    "polars": pl.DataFrame({"a": [1, 2], "b": ["u", "v"]}),
    "arrow": pa.table({"a": [1, 2], "b": ["u", "v"]}),
    "mapping": {"a": [1, 2], "b": ["u", "v"]},
    "mapping of tensors": {"a": torch.tensor([1, 2]), "b": np.array(["u", "v"])},
    "records": [{"a": 1, "b": "u"}, {"a": 2, "b": "v"}],
}


@pytest.mark.parametrize("data", SPELLED.values(), ids=SPELLED)
def test_every_kind_of_table_is_the_same_frame(data):
    frame = as_frame(data)
    assert list(frame) == ["a", "b"] and frame.index.tolist() == [0, 1]
    assert frame.values.tolist() == EXPECTED.values.tolist()
    assert is_frame(data) == (not isinstance(data, list))


@pytest.mark.parametrize(
    "data", [np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]], torch.tensor([[1, 2], [3, 4]])]
)
def test_columns_of_an_array_are_numbered(data):
    frame = as_frame(data)
    assert list(frame) == ["x1", "x2"] and frame.values.tolist() == [[1, 2], [3, 4]]
    assert all(dtype.kind == "i" for dtype in frame.dtypes)


def test_an_array_of_objects_keeps_a_kind_per_column():
    frame = as_frame(np.array([[1.5, "a"], [2.5, "b"]], dtype=object))
    assert frame["x1"].dtype.kind == "f"


def test_names_become_text():
    assert list(as_frame(pd.DataFrame({0: [1], 1: [2]}))) == ["0", "1"]


def test_what_is_no_table_is_refused():
    with pytest.raises(DataError, match=r"shape \(N, D\), got shape \(3,\).*reshape"):
        as_frame(np.zeros(3))
    with pytest.raises(DataError, match=r"got shape \(3,\)"):
        as_frame([1, 2, 3])
    with pytest.raises(DataError, match=r"got shape \(1, 2, 3\)"):
        as_frame(np.zeros((1, 2, 3)))
    with pytest.raises(DataError, match="one length, got 'a' 2, 'b' 3"):
        as_frame({"a": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(DataError, match="2 columns are called 'a'"):
        as_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(DataError, match="several levels of names"):
        as_frame(pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])))
    with pytest.raises(UsageError, match="Collect it first"):
        as_frame(pl.LazyFrame({"a": [1]}))


def test_sparse_matrices_are_refused_with_advice():
    from scipy import sparse

    with pytest.raises(DataError, match="toarray"):
        as_frame(sparse.eye(3).tocsr())
