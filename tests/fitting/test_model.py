import numpy as np
import torch
from numpy.testing import assert_allclose
from tests.estimators.conftest import TINY

from ansatz import Regressor
from ansatz.fitting import tensor_structure
from ansatz.structures.vector.rows import TableRows


def test_predictions_are_float64_whatever_the_training_used():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    model = Regressor(widths=(4,), epochs=1).fit(X, X[:, 0]).model_
    assert {p.dtype for p in model.network.parameters()} == {torch.float64}
    assert model.predictive(TableRows(X)).raw.dtype == torch.float64 and not model.network.training


def test_many_rows_are_predicted_in_chunks(numbers, monkeypatch):
    X, y = numbers
    model = Regressor(**TINY).fit(X, y, offset=np.zeros(60)).model_
    offset = torch.linspace(-1, 1, 60)
    whole = model.predictive(TableRows(X), offset).raw
    monkeypatch.setattr(tensor_structure, "CHUNK", 7)
    assert_allclose(model.predictive(TableRows(X), offset).raw, whole, rtol=1e-13)


def test_the_number_of_parameters_counts_weights_and_a_learned_spread(numbers):
    model = Regressor(**TINY).fit(*numbers).model_
    assert model.parameters == 3 * 8 + 8 + 8 * 1 + 1 + 1


def test_the_trained_network_is_copied():
    X = np.arange(20.0).reshape(-1, 1)
    estimator = Regressor(**TINY).fit(X, X[:, 0])
    before = estimator.predict(X)
    estimator.history_.records.clear()
    assert_allclose(estimator.predict(X), before)
