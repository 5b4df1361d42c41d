"""Bayesian linear models from fit to the saved folder."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.testing import assert_close

import ansatz
from ansatz.estimators import Regressor

OPTIONS = {"warmup": 150, "draws": 200, "chains": 4}


@pytest.fixture(scope="module")
def table():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(80, 2))
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": 3 + 2 * x[:, 0] + draw.normal(size=80)})


@pytest.fixture(scope="module")
def fitted(table):
    model = Regressor(network="linear", inference="nuts", inference_options=OPTIONS)
    return model.fit(table[["a", "b"]], table["y"])


def test_the_posterior_is_near_the_maximum_likelihood_where_priors_are_wide(fitted, table):
    point = Regressor(network="linear").fit(table[["a", "b"]], table["y"])
    own = fitted.model_.network.output.weight[0]
    assert_close(own, point.model_.network.output.weight[0], atol=0.05, rtol=0)
    assert fitted.model_.posterior.state["verdict"]["r_hat"] < 1.05


def test_a_saved_model_predicts_the_same(fitted, table, tmp_path):
    fitted.save(tmp_path / "model")
    again = ansatz.load(tmp_path / "model")
    X = table[["a", "b"]]
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert_close(again.predict_dist(X).variance, fitted.predict_dist(X).variance)
    assert again.model_.posterior.names == ["(Intercept)", "a", "b", "sigma"]
    assert torch.equal(again.model_.posterior.numbers, fitted.model_.posterior.numbers)
