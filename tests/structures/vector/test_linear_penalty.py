"""The penalty of a linear baseline is chosen by rows that were left out."""

import numpy as np
from sklearn.datasets import load_breast_cancer

from ansatz import Classifier, Regressor, SurvivalRegressor, structures
from ansatz.likelihoods import Bernoulli, Cox, Normal
from ansatz.metrics import harrell_c


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


def test_a_cox_baseline_is_penalised_where_that_orders_left_out_rows_better():
    """60 rows and 30 columns, of which two have an effect: unpenalised, the risks are noise."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(1060, 30))
    risk = 0.7 * (x[:, 0] + x[:, 1])
    times = np.c_[draw.exponential(np.exp(-risk)), np.ones(len(x))]
    learn, test = (SurvivalRegressor("cox").read(x[s], times[s]) for s in np.s_[:60, 60:])
    vector = structures.create("vector")
    assert vector.penalty(Cox(), learn, 0).name in ("l1", "l2")
    chosen, _ = vector.baseline(Cox(), learn, 0)
    plain = vector.linear(Cox(), learn).posterior
    better, worse = (
        harrell_c(*test.y[:, :2].unbind(1), each.predictive(test.rows).raw[:, 0])
        for each in (chosen, plain)
    )
    assert better > worse + 0.02
