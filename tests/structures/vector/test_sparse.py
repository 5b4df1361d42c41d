"""Sparse matrices as X: the same model as of the dense table, and one dense copy."""

import numpy as np
import pytest
from scipy import sparse

from ansatz import Classifier, Regressor
from ansatz.data import DataWarning
from ansatz.errors import DataError
from ansatz.structures.vector import rows


@pytest.fixture
def table():
    X = sparse.random(80, 6, density=0.3, format="csr", random_state=0)
    return X, np.asarray(X.sum(1)).ravel() + 0.1 * np.random.default_rng(0).normal(size=80)


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_array", "coo_array", "dok_matrix"])
def test_a_sparse_matrix_gives_the_model_of_the_dense_one(table, kind):
    X, y = table
    given = getattr(sparse, kind)(X)
    options = {"widths": (4,), "epochs": 3}
    dense = Regressor(**options).fit(X.toarray(), y)
    found = Regressor(**options).fit(given, y)
    np.testing.assert_array_equal(found.predict(given), dense.predict(X.toarray()))
    linear = Regressor(network="linear").fit(given, y)
    np.testing.assert_allclose(
        linear.predict(given), Regressor(network="linear").fit(X.toarray(), y).predict(X.toarray())
    )
    assert Classifier(network="linear").fit(given, y > 0.5).predict_proba(given).shape == (80, 2)


@pytest.mark.parametrize(
    "kind, dense",
    [("float32", "float32"), ("int8", "float32"), ("int64", "float64"), ("bool", "float32")],
)
def test_the_dense_copy_is_as_small_as_the_numbers_allow(table, kind, dense):
    X = (10 * table[0]).astype(kind)
    found = rows._dense(X)
    assert found.dtype == dense
    np.testing.assert_array_equal(found, X.toarray().astype(dense))


def test_a_large_copy_is_announced_and_an_impossible_one_refused(table, monkeypatch):
    X, y = table
    monkeypatch.setattr(rows, "_LARGE", 100)
    with pytest.warns(DataWarning, match=r"sparse X of 80 x 6 becomes a dense table of 0 MB"):
        Regressor(network="linear").fit(X, y)
    monkeypatch.setattr(rows, "available_memory", lambda: 1000)
    with pytest.raises(DataError, match=r"becomes a dense table of .* GB are free. Fewer columns"):
        Regressor(network="linear").fit(X, y)
