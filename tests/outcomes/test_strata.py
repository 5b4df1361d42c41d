"""Cox models with a baseline hazard per stratum, from the table to predictions."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.duration.hazard_regression import PHReg

import ansatz
from ansatz.errors import DataError, UsageError

OPTIONS = {"target": "t", "event": "e", "strata": "site"}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 240
    a, b, site = rng.normal(size=n), rng.normal(size=n), rng.choice(["x", "y", "z"], n)
    slow = np.select([site == "x", site == "y"], [1.0, 5.0], 20.0)
    t, end = rng.exponential(size=n) * np.exp(-0.5 * a) * slow, rng.uniform(1, 30, n)
    event = (t <= end).astype(int)
    return pd.DataFrame({"a": a, "b": b, "site": site, "t": np.minimum(t, end), "e": event})


@pytest.fixture(scope="module")
def fitted(table):
    return ansatz.fit(table, network="linear", test=0.0, **OPTIONS)


def test_the_linear_model_is_that_of_statsmodels(table, fitted):
    other = PHReg(table["t"], table[["a", "b"]], status=table["e"], strata=table["site"])
    (linear,) = fitted.fitted.linear
    np.testing.assert_allclose(linear.coefficients[1:, 0], other.fit().params, rtol=1e-5)
    assert fitted.likelihood == "cox"
    assert [c.role for c in fitted.columns] == ["numeric", "numeric", "stratum"]


def test_each_stratum_has_its_own_curve(table, fitted, tmp_path):
    model = fitted.model
    rows = pd.DataFrame({"a": [0.0] * 3, "b": [0.0] * 3, "site": ["x", "y", "z"]})
    chances = model.predict_survival(rows, [3.0])[:, 0]
    assert chances[0] < chances[1] < chances[2]
    again = ansatz.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_survival(rows, [3.0])[:, 0], chances)
    assert again.evaluate(table) == model.evaluate(table)


def test_networks_and_ensembles_have_strata(table):
    small = {"epochs": 5, "widths": [4]}
    for more in ({"options": small}, {"inference": "ensemble", "options": {**small, "members": 3}}):
        fit = ansatz.fit(table, **OPTIONS, **more)
        assert fit.metrics["c_index"] > 0.7
        assert fit.metrics["integrated_brier"] < 0.25


def test_an_estimator_takes_the_strata_from_a_column(table, fitted, tmp_path):
    X = table[["a", "b", "site"]]
    model = ansatz.SurvivalRegressor("cox", network="linear")
    model.fit(X, table["t"], event=table["e"], strata="site")
    np.testing.assert_allclose(
        model.linear_.coefficients, fitted.fitted.linear[0].coefficients, rtol=1e-9
    )
    rows = pd.DataFrame({"a": [0.0] * 3, "b": [0.0] * 3, "site": ["x", "y", "z"]})
    expected = fitted.model.predict_survival(rows, [3.0])
    np.testing.assert_allclose(model.predict_survival(rows, [3.0]), expected, rtol=1e-9)
    y = table[["t", "e"]].to_numpy()
    found, whole = model.evaluate(X, y, warn=False), fitted.model.evaluate(table, warn=False)
    assert found == pytest.approx(whole)
    again = ansatz.load(model.save(tmp_path / "model"))
    assert again.evaluate(X, y, warn=False) == found
    with pytest.warns(ansatz.data.DataWarning, match="240 of these 240 rows"):
        again.evaluate(X, y)


def test_strata_of_an_estimator_with_networks_validation_and_folds(table):
    X, y = table[["a", "b", "site"]], table[["t", "e"]].to_numpy()
    small = {"epochs": 5, "widths": [4]}
    model = ansatz.SurvivalRegressor("cox", **small)
    model.fit(X[:160], y[:160], strata="site", validation_data=(X[160:], y[160:]))
    assert model.score(X[160:], y[160:]) > 0.6
    assert "c_index" in model.report(X[160:], y[160:]).page


def test_strata_of_an_estimator_must_be_a_column(table):
    X, y = table[["a", "b"]], table[["t", "e"]].to_numpy()
    model = ansatz.SurvivalRegressor("cox", network="linear")
    with pytest.raises(DataError, match="strata='site': X must be a data frame with this column"):
        model.fit(X, y, strata="site")
    with pytest.raises(UsageError, match="strata must be the name of a column of X"):
        model.fit(X, y, strata=table["site"])
    with pytest.raises(UsageError, match="strata go with likelihood cox, not with weibull"):
        ansatz.SurvivalRegressor(network="linear").fit(table[["a", "site"]], y, strata="site")


def test_a_stratified_model_is_not_exported(table, fitted, tmp_path):
    pytest.importorskip("onnx")
    with pytest.raises(UsageError, match=r"a model with strata \('site'\) cannot be exported"):
        ansatz.export(fitted.model, tmp_path / "model.onnx")


def test_what_strata_cannot_do_is_refused(table, fitted):
    with pytest.raises(UsageError, match="strata go with likelihood cox"):
        ansatz.fit(table, likelihood="weibull", network="linear", **OPTIONS)
    with pytest.raises(DataError, match=r"row 1, column 'site': 'w' is not among the strata x, y"):
        fitted.model.predict(pd.DataFrame({"a": [0.0], "b": [0.0], "site": ["w"]}))
    with pytest.raises(UsageError, match="--strata goes with --event"):
        ansatz.fit(table, target="t", strata="site")
