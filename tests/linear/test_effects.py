import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch
from scipy import stats

from ansatz.errors import UsageError
from ansatz.likelihoods import create
from ansatz.linear import average_marginal_effects, fit_linear

N = 120


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.normal(40, 10, N),
            "rooms": rng.integers(1, 6, N),
            "town": pd.Categorical(rng.choice(["b", "a", "c"], N)),
        }
    )


def mean(b):
    def predict(rows):
        town = rows["town"].astype(str)
        eta = b[0] + b[1] * rows["age"] + b[2] * rows["rooms"] + b[3] * (town == "b")
        return 1 / (1 + np.exp(-(eta + b[4] * (town == "c")).to_numpy(float)))

    return predict


def test_effects_of_a_linear_mean_are_its_coefficients(frame):
    x = torch.as_tensor(frame[["age", "rooms"]].to_numpy(float))
    fit = fit_linear(create("normal", dispersion="constant"), x, 3 * x[:, 0] + torch.randn(N))

    def predict(rows):
        return fit.predict_raw(torch.as_tensor(rows.to_numpy(float)))[:, 0]

    effects = average_marginal_effects(predict, frame[["age", "rooms"]])
    assert [e.estimate for e in effects] == pytest.approx(fit.coefficients[1:, 0].tolist())
    assert [e.name for e in effects] == ["age", "rooms"]


def test_effects_of_a_logit_are_those_of_statsmodels(frame):
    y = (np.random.default_rng(1).random(N) < 0.4).astype(float)
    dummies = pd.get_dummies(frame["town"], dtype=float)[["b", "c"]]
    design = sm.add_constant(pd.concat([frame[["age", "rooms"]], dummies], axis=1))
    logit = sm.Logit(y, design).fit(disp=0, tol=1e-12)
    effects = average_marginal_effects(mean(logit.params.to_numpy()), frame)
    theirs = logit.get_margeff(at="overall").margeff
    # Central differences with h = sd / 100 leave an error of second order in h.
    assert [e.estimate for e in effects[:2]] == pytest.approx(theirs[:2], rel=1e-4)
    assert [e.contrast for e in effects[2:]] == ["b - a", "c - a"]
    low, high = frame.assign(town="a"), frame.assign(town="b")
    change = mean(logit.params.to_numpy())(high) - mean(logit.params.to_numpy())(low)
    assert effects[2].estimate == pytest.approx(change.mean())


def test_the_reference_level_is_the_first_given(frame):
    effects = average_marginal_effects(mean([0, 0, 0, 1.0, 2.0]), frame, {"town": ["c", "a", "b"]})
    assert [e.contrast for e in effects] == ["a - c", "b - c"]
    assert effects[0].estimate < effects[1].estimate < 0


def test_intervals_are_t_intervals_over_refits(frame):
    refits = [mean([0, slope, 0, 0, 0]) for slope in np.linspace(0.0, 0.02, 41)]
    (effect,) = average_marginal_effects(
        mean([0, 0.01, 0, 0, 0]), frame, {"age": None}, refits=refits, level=0.9
    )
    each = [average_marginal_effects(f, frame, {"age": None})[0].estimate for f in refits]
    half = stats.t(40).ppf(0.95) * np.std(each, ddof=1)
    ends = (effect.estimate - half, effect.estimate + half)
    assert (effect.lower, effect.upper) == pytest.approx(ends)
    assert average_marginal_effects(refits[0], frame, {"age": None})[0].lower is None


def test_intervals_of_twenty_refits_hold_their_share():
    """As those of least squares do; percentiles of 20 refits hold 86 %."""
    rng, held = np.random.default_rng(0), []

    def slope(x, y):
        coefficient = np.polyfit(x, y, 1)
        return lambda rows: np.polyval(coefficient, rows["x"].to_numpy())

    for _ in range(150):
        x = rng.normal(size=60)
        y = x + rng.normal(size=60)
        rows = [rng.integers(0, 60, 60) for _ in range(20)]
        refits = [slope(x[some], y[some]) for some in rows]
        (effect,) = average_marginal_effects(slope(x, y), pd.DataFrame({"x": x}), refits=refits)
        held.append(effect.lower < 1 < effect.upper)
    assert 0.91 < np.mean(held) < 0.99


def test_weights_are_repetitions(frame):
    weight = np.random.default_rng(2).integers(0, 3, N)
    predict = mean([0, 0.02, 0.3, 1.0, 2.0])
    columns = {"town": ["a", "b", "c"]}
    weighted = average_marginal_effects(predict, frame, columns, weight=weight)
    repeated = average_marginal_effects(predict, frame.loc[frame.index.repeat(weight)], columns)
    for a, b in zip(weighted, repeated, strict=True):
        assert a.estimate == pytest.approx(b.estimate)


def test_classes_have_an_effect_each_and_they_add_up_to_nothing(frame):
    def predict(rows):
        p = mean([0, 0.02, 0.3, 1.0, 2.0])(rows)
        return np.stack([p, 1 - p], 1)

    effects = average_marginal_effects(predict, frame, {"age": None})
    assert [e.output for e in effects] == [0, 1]
    assert effects[0].estimate == pytest.approx(-effects[1].estimate)


def test_missing_and_constant_columns(frame):
    frame.loc[:9, "age"] = np.nan
    frame["same"] = 1.0

    def predict(rows):
        return 2 * rows["age"].fillna(0).to_numpy()

    effects = average_marginal_effects(predict, frame, {"age": None, "same": None})
    assert [(e.name, e.estimate) for e in effects] == [("age", pytest.approx(2.0))]


def test_a_column_that_is_not_there_is_named(frame):
    with pytest.raises(UsageError, match="no column 'agee'"):
        average_marginal_effects(mean([0] * 5), frame, {"agee": None})
    with pytest.raises(UsageError, match="level"):
        average_marginal_effects(mean([0] * 5), frame, level=1.0)
