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


def test_what_strata_cannot_do_is_refused(table, fitted):
    with pytest.raises(UsageError, match="--strata goes with --likelihood cox"):
        ansatz.fit(table, likelihood="weibull", network="linear", **OPTIONS)
    with pytest.raises(DataError, match=r"row 1, column 'site': 'w' is not among the strata x, y"):
        fitted.model.predict(pd.DataFrame({"a": [0.0], "b": [0.0], "site": ["w"]}))
    with pytest.raises(UsageError, match="--strata goes with --event"):
        ansatz.fit(table, target="t", strata="site")
