"""The penalty of a linear baseline is chosen by rows that were left out."""

import numpy as np
from sklearn.datasets import load_breast_cancer

from ansatz import Classifier, Regressor, structures
from ansatz.likelihoods import Bernoulli, Normal


def test_classes_that_are_nearly_separated_get_ridge():
    x, y = load_breast_cancer(return_X_y=True)
    model, vector = Classifier(), structures.create("vector")
    learn, test = model.read(x[:400], y[:400]), model.read(x[400:], y[400:])
    posterior, notes = vector.baseline(Bernoulli(), learn, 0)
    likelihood, raw = posterior.predictive(test.rows)
    assert float(likelihood.loss(raw, test.y).mean()) < 0.12  # unpenalised: above 0.8
    assert "ridge" in notes[0] and "out of fold" in notes[0]


def test_many_rows_need_no_penalty_and_sparse_truths_get_the_lasso():
    rng, vector = np.random.default_rng(0), structures.create("vector")
    x = rng.normal(size=(100, 50))
    y = 2 * x[:, 0] + rng.normal(size=100)
    job = Regressor().read(x, y)
    assert vector.penalty(Normal(), job, 0).name == "l1"
    assert vector.penalty(Normal(), Regressor().read(x[:, :5], y), 0) is None
