import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch
from numpy.testing import assert_allclose, assert_array_equal
from tests.estimators.conftest import TINY

import ansatz
from ansatz import Regressor
from ansatz.errors import DataError, UsageError
from ansatz.likelihoods import Normal

SAME = {  # the same outcomes, said in other ways
    "list": lambda y: y.tolist(),
    "Series": lambda y: pd.Series(y, index=np.arange(len(y))[::-1]),
    "tensor": torch.from_numpy,
    "float64": lambda y: y,
    "float32": lambda y: y.astype(np.float32),
    "object": lambda y: y.astype(object),
    "read-only": lambda y: np.frombuffer(y.tobytes()),
    "not contiguous": lambda y: np.repeat(y, 2)[::2],
    "int": lambda y: y.astype(int),
    "nullable": lambda y: pd.Series(y).astype("Int64"),
}


@pytest.mark.parametrize("spell", SAME.values(), ids=SAME)
def test_outcomes_may_be_spelled_in_many_ways(numbers, spell):
    X, y = numbers[0], numbers[1].round()
    expected = Regressor(**TINY).fit(X, y).predict(X)
    assert_array_equal(Regressor(**TINY).fit(X, spell(y)).predict(X), expected)


def test_booleans_are_zeros_and_ones(numbers):
    X, y = numbers
    expected = Regressor(**TINY).fit(X, (y > 0).astype(float)).predict(X)
    assert_array_equal(Regressor(**TINY).fit(X, y > 0).predict(X), expected)


def test_a_column_in_is_a_column_out_and_nothing_is_broadcast(numbers):
    X, y = numbers
    flat, column = Regressor(**TINY).fit(X, y), Regressor(**TINY).fit(X, y[:, None])
    assert flat.predict(X).shape == (60,) and column.predict(X).shape == (60, 1)
    assert_array_equal(column.predict(X)[:, 0], flat.predict(X))
    assert column.score(X, y[:, None]) == flat.score(X, y)
    with pytest.raises(ValueError, match=r"shape \(60, 1\).*\(N\)"):
        flat.evaluate(X, y[:, None])


def test_several_targets_are_learned_at_once(numbers):
    X, _ = numbers
    Y = np.stack([X[:, 0], 10 + 5 * X[:, 1]], 1)
    model = Regressor(widths=(32,), epochs=300, learning_rate=1e-2).fit(X, Y)
    assert model.predict(X).shape == (60, 2) and model.score(X, Y) > 0.9
    assert model.interval(X, 0.5).shape == (60, 2, 2)
    assert model.sample(X, 3).shape == (3, 60, 2)
    assert model.predict_dist(X).log_prob(torch.from_numpy(Y)).shape == (60, 2)
    with pytest.raises(ValueError, match=r"\(60, 3\).*\(N, 2\)"):
        model.evaluate(X, np.zeros((60, 3)))


def test_target_names_come_from_where_there_are_any(numbers):
    X, y = numbers
    frame = pd.DataFrame({"height": y, "weight": -y})
    assert Regressor(**TINY).fit(X, frame).target_names_ == ["height", "weight"]
    assert Regressor(**TINY).fit(X, y).target_names_ == ["y"]
    assert Regressor(**TINY).fit(X, frame.to_numpy()).target_names_ == ["y0", "y1"]


def test_a_log_exposure_is_an_offset_as_in_a_glm(mixed):
    frame, _, _, _ = mixed
    X = frame[["a"]].to_numpy()
    rng = np.random.default_rng(4)
    exposure = rng.uniform(0.2, 5, size=80)
    y = rng.poisson(exposure * np.exp(0.5 + 0.3 * X[:, 0]))
    model = Regressor("poisson", network="linear").fit(X, y, offset=np.log(exposure))
    glm = sm.GLM(y, sm.add_constant(X), sm.families.Poisson(), exposure=exposure).fit()
    assert_allclose(model.predict(X, offset=np.log(exposure)), glm.predict(), rtol=1e-6)
    # Twice the exposure is twice the mean, in a network as well.
    network = Regressor("poisson", **TINY).fit(X, y, offset=np.log(exposure))
    one, two = (network.predict(X, offset=np.log(k * exposure)) for k in (1, 2))
    assert_allclose(two, 2 * one, rtol=1e-12)


def test_an_offset_alone_leaves_the_network_at_the_constant_rate():
    """With no signal in x, the fitted rate is sum y / sum exposure."""
    rng = np.random.default_rng(5)
    exposure = rng.uniform(0.5, 50, size=90)
    y = np.round(2 * exposure)
    X = np.zeros((90, 1)) + np.arange(90)[:, None] % 2
    model = Regressor("poisson", widths=(4,), epochs=1, learning_rate=1e-9).fit(
        X, y, offset=np.log(exposure)
    )
    rate = model.predict(X, offset=np.zeros(90))
    assert rate.mean() == pytest.approx(y.sum() / exposure.sum(), rel=0.05)


@pytest.mark.parametrize(
    "bad, says",
    [
        (np.ones(3), r"offset must have shape \(60,\), got \(3,\)"),
        (np.ones((60, 1)), r"offset must have shape \(60,\), got \(60, 1\)"),
        (np.full(60, np.nan), "offset must be finite"),
    ],
)
def test_an_offset_of_a_prediction_is_checked(numbers, bad, says):
    model = Regressor(**TINY).fit(*numbers)
    for ask in (model.predict, model.predict_dist, model.interval):
        with pytest.raises(DataError, match=says):
            ask(numbers[0], offset=bad)


@pytest.mark.parametrize(
    "likelihood, y, says",
    [
        ("poisson", -1.0, r"-1.*y\[17\]"),
        ("poisson", 2.5, r"2\.5.*y\[17\]"),
        ("gamma", 0.0, r"0.*y\[17\]"),
        ("bernoulli", 2.0, r"2.*y\[17\]"),
    ],
)
def test_an_outcome_that_the_likelihood_cannot_produce_is_named(numbers, likelihood, y, says):
    X = numbers[0]
    outcomes = np.ones(60)
    outcomes[17] = y
    with pytest.raises(DataError, match=says):
        Regressor(likelihood, **TINY).fit(X, outcomes)


def test_text_is_no_number(numbers):
    with pytest.raises(ValueError, match="could not convert"):
        Regressor(**TINY).fit(numbers[0], np.array(["a"] * 60))


@pytest.mark.parametrize("value", [0.0, 3.5, 1e300, -1e-300])
def test_a_constant_target_is_predicted_as_it_is(numbers, value):
    X = numbers[0]
    model = Regressor(**TINY).fit(X, np.full(60, value))
    assert_allclose(model.predict(X), value, rtol=0.05, atol=2)
    assert np.isfinite(model.interval(X)).all()


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e6, 1e30])
def test_the_unit_of_the_outcome_does_not_matter(numbers, scale):
    X, y = numbers
    expected = Regressor(**TINY).fit(X, y).predict(X)
    found = Regressor(**TINY).fit(X, scale * y).predict(X) / scale
    assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_one_row_is_enough_for_a_mean():
    model = Regressor().fit([[1.0, 2.0]], [3.0])
    assert_allclose(model.predict([[1.0, 2.0]]), 3.0, atol=0.5)


def test_more_columns_than_rows_and_copies_of_columns_are_fine():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 30))
    X[:, 1] = X[:, 0]
    y = X[:, 0]
    for network in ("mlp", "linear"):
        assert np.isfinite(Regressor(network=network).fit(X, y).predict(X)).all()


def test_few_rows_have_one_spread_and_an_instance_is_taken_as_it_is(numbers):
    X, y = numbers
    assert Regressor(**TINY).fit(X, y).model_.likelihood.dispersion.kind == "constant"
    likelihood = Normal(dispersion="predicted")
    model = Regressor(likelihood, **TINY).fit(X, y)
    assert model.model_.likelihood.dispersion.kind == "predicted"
    assert likelihood.dispersion.unit == 1.0  # copied, never changed


@pytest.mark.parametrize("likelihood", ["mse", "mae", "huber"])
def test_a_loss_predicts_a_point_and_says_that_it_has_no_distribution(numbers, likelihood):
    X, y = numbers
    model = Regressor(likelihood, widths=(16,), epochs=200, learning_rate=1e-2).fit(X, y)
    assert model.score(X, y) > 0.7
    for ask in (model.predict_dist, model.interval, model.sample):
        with pytest.raises((UsageError, TypeError), match="loss"):
            ask(X)
    with pytest.raises(UsageError, match="no density"):
        model.log_score(X, y)
    assert "nll" not in model.evaluate(X, y) and model.evaluate(X, y)["rmse"] < 0.6


def test_the_default_learns_a_curve_on_few_rows_and_on_more():
    rng = np.random.default_rng(7)
    for rows, bar in ((90, 0.7), (400, 0.9)):
        x = rng.uniform(-3, 3, size=(rows, 1))
        y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=rows)
        new = np.linspace(-2.5, 2.5, 101)[:, None]
        model = Regressor(epochs=None if rows < 100 else 60).fit(x, y)
        assert model.score(new, np.sin(new[:, 0])) > bar


@pytest.mark.parametrize(
    "likelihood, estimator",
    [("censored", "SurvivalRegressor"), ("cox", "SurvivalRegressor"), ("plackett_luce", "Ranker")],
)
def test_outcomes_that_are_no_numbers_name_their_estimator(likelihood, estimator):
    with pytest.raises(UsageError, match=f"take a {estimator}"):
        Regressor(likelihood).fit(
            np.zeros((2, 1)), np.array([[1.0, np.inf, -np.inf], [2.0, 2.0, 0.0]])
        )


def test_auto_chooses_the_likelihood_that_the_command_chooses(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 2)), columns=["a", "b"])
    y = rng.poisson(np.exp(3 + 0.5 * X["a"]))  # no zeros: those of inflated zeros are slow
    assert y.min() > 0
    model = Regressor("auto", network="linear").fit(X, y)
    fit = ansatz.fit(X.assign(y=y), target="y", network="linear", test=0.0)
    assert model.model_.likelihood.name == fit.likelihood == "poisson"
    assert {row.likelihood for row in model.likelihood_choice_.table} == {
        row["likelihood"] for row in fit.candidates
    }
    assert repr(model).endswith(": likelihood poisson")
    assert model.get_params()["likelihood"] == "auto"
    model.save(tmp_path / "model")
    again = ansatz.load(tmp_path / "model")
    assert again.likelihood_choice_ == model.likelihood_choice_


def test_auto_of_two_numbers_and_of_several_targets():
    X = np.random.default_rng(0).normal(size=(60, 2))
    two = Regressor("auto", network="linear").fit(X, np.where(X[:, 0] > 0, 3.0, 7.0))
    assert two.likelihood_.name == "normal"
    both = Regressor("auto", network="linear").fit(X, X @ np.array([[1.0, 2.0], [0.5, 1.0]]) + X**2)
    assert both.likelihood_.name == "normal"
    with pytest.raises(UsageError, match="likelihood_options go with a likelihood by name"):
        Regressor("auto", likelihood_options={"dispersion": 1.0}).fit(X, X[:, 0])


def test_the_network_is_an_attribute():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = Regressor(**TINY).fit(X, X[:, 0])
    assert model.network_ is model.model_.network
