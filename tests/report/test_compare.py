"""Comparisons of models against scores computed by hand, and what must be refused."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.linear_model import LinearRegression

import ansatz
from ansatz.cli.output import text_of
from ansatz.errors import DataError, UsageError
from ansatz.fitting.replay import replay
from ansatz.report.compare import compare
from ansatz.report.difference import fits_verdict, paired_difference
from ansatz.report.methods import candidate, compare_methods
from ansatz.report.paired_scores import ScorePair


def table(rows=150, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, rows))
    life = np.exp(0.8 * x) * rng.weibull(1.5, size=rows) + 0.05
    end = rng.exponential(2.5, size=rows) + 0.05
    places = np.argsort(-(np.outer(x, [1.0, 0.0, -1.0]) + rng.gumbel(size=(rows, 3))), axis=1)
    price = np.exp(1 + 0.5 * x + 0.3 * rng.normal(size=rows))
    return pd.DataFrame(
        {
            "x": x,
            "z": z,
            "price": price,
            "log_price": np.log(price),
            "cents": 100 * price,
            "label": np.where(2 * x + rng.logistic(size=rows) > 0, "yes", "no"),
            "count": rng.poisson(np.exp(0.5 + 0.4 * x)),
            "rain": np.where(rng.uniform(size=rows) < 0.3, 0.0, price),
            "time": np.minimum(life, end),
            "event": (life <= end).astype(int),
            "first": np.array(["a", "b", "c"])[places[:, 0]],
            "second": np.array(["a", "b", "c"])[places[:, 1]],
            "third": np.array(["a", "b", "c"])[places[:, 2]],
            "weight": rng.integers(1, 4, size=rows),
            "patient": rng.integers(0, 25, size=rows),
            "day": rng.permutation(rows),
        }
    )


TABLE = table()


def fit(target, *features, likelihood=None, data=TABLE, network="linear", **options):
    """A fast fit of some columns; groups by ``patient`` split alike whatever the features."""
    used = [target] if isinstance(target, str) else list(target)
    used += [options[k] for k in ("event", "group", "time", "weights") if k in options]
    return ansatz.fit(
        data[[*(features or ("x", "z")), *(name for name in used if name not in features)]],
        target=target,
        likelihood=likelihood,
        network=network,
        **options,
    )


def test_the_log_score_difference_is_that_of_the_formula():
    a, b = fit("price", likelihood="normal"), fit("price", likelihood="gamma")
    found = compare(a, b)
    X, y = a.rows_of["test"]
    rows = [fitted.model.predict_dist(X).log_prob(_tensor(y)).numpy() for fitted in (a, b)]
    d = rows[0] - rows[1]
    log, crps = found.scores
    assert log.difference.mean == pytest.approx(d.mean())
    assert log.difference.error == pytest.approx(d.std(ddof=1) / np.sqrt(len(d)))
    assert log.a == pytest.approx(-a.metrics["nll"]) and log.b == pytest.approx(-b.metrics["nll"])
    assert crps.a == pytest.approx(a.metrics["crps"]) and not crps.higher
    assert crps.to_dict()["difference"] == pytest.approx(crps.a - crps.b)
    assert found.metrics[found.a]["rmse"] == pytest.approx(a.metrics["rmse"])
    assert "30 test rows: the standard error is unreliable below 100." in found.cautions


def _tensor(values):
    import torch

    return torch.from_numpy(np.array(values, dtype=np.float64))


def test_the_better_model_is_named():
    data = table(800)
    good = fit("price", "x", likelihood="gamma", data=data, group="patient")
    poor = fit("price", "z", likelihood="gamma", data=data, group="patient")
    found = compare(good, poor)
    assert found.better == found.a and found.verdict.startswith(f"{found.a} is better: its log")
    assert compare(poor, good).better == compare(poor, good).b
    assert any("is based on" in caution for caution in found.cautions)  # few groups


def test_a_model_is_not_distinguishable_from_itself_fitted_again():
    a, b = fit("count", likelihood="poisson"), fit("count", likelihood="poisson")
    found = compare(a, b)
    assert found.better is None and "the models predict the same" in found.verdict
    assert found.differs == []


def test_groups_cluster_the_standard_error():
    a = fit("price", "x", likelihood="normal", group="patient")
    b = fit("price", "z", likelihood="normal", group="patient")
    found = compare(a, b).scores[0].difference
    test = replay(a).test
    assert found.units == len(np.unique(test.group)) and "clustered" in found.method


def test_time_orders_the_standard_error_and_features_may_differ():
    a = fit("price", "x", "day", likelihood="normal", time="day")
    b = fit("price", "z", "day", likelihood="normal", time="day")
    assert "Newey-West" in compare(a, b).scores[0].difference.method


def test_weights_count_rows():
    a, b = (
        fit("price", likelihood=likelihood, weights="weight") for likelihood in ("normal", "gamma")
    )
    found = compare(a, b).scores[0]
    assert found.a == pytest.approx(-a.metrics["nll"])


def test_several_targets_are_averaged_as_in_the_metrics():
    a, b = (fit(["price", "rain"], likelihood=likelihood) for likelihood in ("normal", "laplace"))
    found = compare(a, b).scores
    assert found[0].b == pytest.approx(-b.metrics["nll"])
    assert found[1].a == pytest.approx(a.metrics["crps"])


def test_an_ensemble_is_compared_as_the_mixture_that_it_serves():
    options = {"epochs": 2, "widths": [4]}
    a = fit("price", likelihood="normal", network="mlp", options=options)
    b = fit("price", likelihood="normal", network="mlp", inference="ensemble", options=options)
    found = compare(a, b)
    assert found.scores[0].b == pytest.approx(-b.metrics["nll"])
    assert found.scores[1].b == pytest.approx(b.metrics["crps"])
    assert "inference" in [setting.name for setting in found.differs]


def test_classes_have_the_brier_score_beside_the_log_score():
    a = fit("label", "x", likelihood="bernoulli", group="patient")
    b = fit("label", "z", likelihood="categorical", group="patient")
    log, brier = compare(a, b).scores
    assert log.a == pytest.approx(-a.metrics["nll"])
    assert brier.name == "brier" and brier.a == pytest.approx(a.metrics["brier"])
    # categorical's own brier sums over both classes
    assert brier.b == pytest.approx(b.metrics["brier"] / 2)


def test_counts_compare_with_counts():
    a, b = fit("count", likelihood="poisson"), fit("count", likelihood="negative_binomial")
    found = compare(a, b)
    assert found.scores[0].a == pytest.approx(-a.metrics["nll"])
    assert found.scores[1].name == "crps"


def test_a_pmf_against_a_density_is_refused():
    with pytest.raises(DataError, match=r"normal has a density and poisson probabilities"):
        compare(fit("count", likelihood="normal"), fit("count", likelihood="poisson"))
    with pytest.raises(DataError, match=r"normal has a density and poisson probabilities"):
        compare(fit("count", likelihood="poisson"), fit("count", likelihood="normal"))


def test_an_atom_against_a_density_is_refused_where_rows_have_it():
    few = TABLE[:30]
    a, b = (
        fit("rain", "x", likelihood=likelihood, data=few) for likelihood in ("tweedie", "normal")
    )
    with pytest.raises(DataError, match=r"tweedie gives 0 a probability and normal a density"):
        compare(a, b)
    a, b = (
        fit("price", "x", likelihood=likelihood, data=few) for likelihood in ("tweedie", "normal")
    )  # no row is 0
    assert compare(a, b).scores[0].name == "log score"


def test_survival_likelihoods_compare_by_their_likelihood():
    a, b = (
        fit("time", likelihood=likelihood, event="event")
        for likelihood in ("weibull", "exponential")
    )
    log, brier = compare(a, b).scores
    assert log.b == pytest.approx(-b.metrics["nll"])
    assert brier.a == pytest.approx(a.metrics["integrated_brier"])


def test_cox_compares_with_cox_by_the_partial_likelihood():
    options = {"likelihood": "cox", "event": "event", "group": "patient"}
    a, b = fit("time", "x", **options), fit("time", "z", **options)
    found = compare(a, b)
    assert found.scores[0].name == "partial log score" and found.scores[0].difference.mean > 0


def test_cox_and_weibull_have_only_the_brier_score_in_common():
    a, b = (fit("time", likelihood=likelihood, event="event") for likelihood in ("cox", "weibull"))
    found = compare(a, b)
    assert [score.name for score in found.scores] == ["integrated_brier"]
    assert found.scores[0].b == pytest.approx(b.metrics["integrated_brier"])
    assert any("no common likelihood" in caution for caution in found.cautions)


def test_rankings_have_a_log_score():
    places = ["first", "second", "third"]
    options = {"likelihood": "plackett_luce", "group": "patient"}
    a, b = fit(places, "x", **options), fit(places, "z", **options)
    found = compare(a, b)
    assert found.scores[0].a == pytest.approx(-a.metrics["nll"])
    assert found.scores[0].difference.mean > 0


def test_losses_are_compared_by_themselves():
    a, b = fit("price", likelihood="mse"), fit("price", likelihood="normal")
    found = compare(a, b)
    assert found.scores[0].name == "mse" and found.scores[0].b == pytest.approx(
        b.metrics["rmse"] ** 2
    )
    assert any("mse is a loss, not a likelihood" in caution for caution in found.cautions)
    assert "loss" in found.verdict


def test_quantiles_compare_with_the_quantiles_of_a_likelihood():
    levels = [0.1, 0.5, 0.9]
    a = fit("price", likelihood="quantiles", options={"levels": levels})
    b = fit("price", likelihood="normal")
    found = compare(a, b).scores[0]
    X, y = b.rows_of["test"]
    likelihood = b.model.predict_dist(X)
    location, scale = likelihood.location.numpy(), likelihood.scale.numpy()
    df = 120 - 3  # Student's t, as in the prediction intervals of least squares
    q = location[:, None] + scale[:, None] * stats.t(df).ppf(levels)
    error = y.to_numpy()[:, None] - q
    expected = np.maximum(np.array(levels) * error, (np.array(levels) - 1) * error).sum(1).mean()
    assert found.b == pytest.approx(expected)


def test_a_target_on_the_log_scale_is_translated():
    """A normal distribution of log y is a log-normal one of y: their scores must agree.

    Up to the nodes of the integral over the estimation error: of log y it has a closed form.
    """
    a = fit("price", likelihood="log_normal", group="patient")
    b = fit("log_price", likelihood="normal", group="patient")
    found = compare(a, b)
    X, y = b.rows_of["test"]
    translated = b.model.predict_dist(X).log_prob(_tensor(y)) - _tensor(y)
    score = found.scores[0]
    assert score.a == pytest.approx(-a.metrics["nll"], rel=1e-6)
    assert score.b == pytest.approx(float(translated.mean()), rel=1e-6)
    assert score.a == pytest.approx(score.b, rel=2e-3)
    assert any("another scale (log)" in caution for caution in found.cautions)
    assert len(found.scores) == 1  # a CRPS has a unit
    reverse = compare(b, a).scores[0]
    assert reverse.a == pytest.approx(-b.metrics["nll"], rel=1e-6)
    assert reverse.a - reverse.b == pytest.approx(score.b - score.a, rel=1e-4)


def test_a_target_in_other_units_is_translated():
    a, b = (fit(name, likelihood="normal", group="patient") for name in ("price", "cents"))
    found = compare(a, b)
    assert found.scores[0].a == pytest.approx(found.scores[0].b, rel=1e-6)


def test_other_outcomes_are_refused():
    a = fit("price", likelihood="normal", group="patient")
    with pytest.raises(DataError, match="predict different outcomes"):
        compare(a, fit("z", "x", likelihood="normal", group="patient"))
    with pytest.raises(DataError, match="different outcomes in the same rows"):
        compare(
            fit("label", "x", group="patient"),
            fit("label", "x", group="patient", data=TABLE.assign(label=TABLE["label"][::-1].array)),
        )
    with pytest.raises(DataError, match=r"predicts numbers and .* classes"):
        compare(a, fit("label", "z", group="patient"))


def test_a_likelihood_that_was_named_and_one_that_was_chosen_do_not_differ():
    a, b = fit("price"), fit("price", likelihood=fit("price").likelihood, network="linear")
    assert a.likelihood == b.likelihood
    assert "likelihood" not in {setting.name for setting in compare(a, b).differs}


def test_other_test_rows_are_refused_with_the_way_out():
    a, b = fit("price", likelihood="normal"), fit("price", likelihood="normal", seed=1)
    with pytest.raises(
        DataError, match=r"different test rows \(30 and 30, \d+ in common\).*--refit"
    ):
        compare(a, b)
    with pytest.raises(DataError, match=r"no test rows: fit it with --test 0\.2"):
        compare(fit("price", likelihood="normal", folds=3), a)


def test_models_of_arrays_are_compared_on_rows_that_are_given(numbers_and_lines):
    X, y, models = numbers_and_lines
    found = compare(*models, data=(X[40:], y[40:]))
    assert found.scores[0].difference.rows == 20
    assert not any("trained on" in caution for caution in found.cautions)
    seen = compare(*models, data=(X[30:], y[30:])).cautions
    assert sum("was trained on 10 of these 30 rows" in caution for caution in seen) == 2
    for model in models:  # as one that an older version saved
        model.model_.row_keys = None
    found = compare(*models, data=(X[40:], y[40:]))
    assert any("it is not known whether" in caution for caution in found.cautions)
    with pytest.raises(UsageError, match=r"has no record to refit it from"):
        compare(*models, data=(X[40:], y[40:]), refit=True)


@pytest.fixture
def numbers_and_lines():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=60)
    candidates = ("normal", "laplace")
    return (
        X,
        y,
        [
            ansatz.Regressor(likelihood, network="linear").fit(X[:40], y[:40])
            for likelihood in candidates
        ],
    )


def test_refits_are_what_a_loop_over_the_folds_gives():
    a = fit("price", "x", likelihood="normal")
    b = fit("price", "z", likelihood="normal")
    seen = []
    found = compare(a, b, refit=True, folds=4, repeats=2, progress=lambda *n: seen.append(n))
    methods = found.methods
    assert seen[-1] == (16, 16) and methods.rows == 150 and methods.folds == 4
    assert found.better == found.a and "better method" in found.verdict
    # scikit-learn's least squares with its t-based predictive distribution, on the same folds
    gains = []
    for inside, outside in _folds(a, b, 4, 2):
        scores = []
        for column in ("x", "z"):
            X, y = TABLE[[column]].to_numpy(), TABLE["price"].to_numpy()
            line = LinearRegression().fit(X[inside], y[inside])
            df, centre = len(inside) - 2, X[inside].mean()
            squares = ((y[inside] - line.predict(X[inside])) ** 2).sum() / df
            away = (X[outside, 0] - centre) ** 2 / ((X[inside] - centre) ** 2).sum()
            scale = np.sqrt(squares * (1 + 1 / len(inside) + away))
            t = stats.t(df, line.predict(X[outside]), scale)
            scores.append(t.logpdf(y[outside]).mean())
        gains.append(scores[1] - scores[0])
    assert_allclose(methods.table[1].gain, np.mean(gains), rtol=1e-6)
    ratio = methods.tested / methods.learned
    expected = np.std(gains, ddof=1) * np.sqrt(1 / 8 + ratio)
    assert_allclose(methods.table[1].error, expected, rtol=1e-6)
    assert methods.tested == pytest.approx(37.5) and methods.learned == pytest.approx(112.5)


def _folds(a, b, folds, repeats):
    from ansatz.report.methods import _splits

    made = [candidate(replay(model)) for model in (a, b)]
    rows = np.arange(150)
    parts = list(_splits(made, rows, folds, repeats, 0))
    for k in range(repeats):  # every repetition evaluates each row once
        evaluated = np.concatenate([part[1] for part in parts[k * folds : (k + 1) * folds]])
        assert sorted(evaluated.tolist()) == rows.tolist()
    return [(inside, outside) for inside, outside, _ in parts]


def test_refits_of_time_look_forward_and_are_not_repeated():
    a = fit("price", "x", "day", likelihood="normal", time="day")
    b = fit("price", "z", "day", likelihood="normal", time="day")
    methods = compare_methods([candidate(replay(m)) for m in (a, b)], folds=3, repeats=5)
    assert methods.repeats == 1


def test_refits_compare_methods_whose_test_rows_differ():
    a, b = fit("price", "x", likelihood="normal"), fit("price", "z", likelihood="normal")
    with pytest.raises(DataError, match="different test rows"):
        compare(a, b)
    assert compare(a, b, refit=True, folds=3, repeats=1).better is not None
    with pytest.raises(UsageError, match="--folds from 2"):
        compare(a, b, refit=True, folds=1)


def test_of_many_models_folds_choose_and_the_test_rows_evaluate_once():
    options = {"likelihood": "normal", "group": "patient"}
    poor, good, other = (fit("price", *names, **options) for names in (("z",), ("x",), ("x", "z")))
    found = compare(poor, good, other, folds=3, repeats=1)
    assert found.methods.rows == len(replay(poor).learn.y)
    best = found.methods.best.name
    assert found.b == best and found.verdict.startswith(f"{best} was chosen by cross-validation.")
    assert len(found.scores) == 2 and found.scores[0].difference.rows == len(replay(poor).test.y)
    first = compare(good, poor, poor, folds=3, repeats=1)
    assert first.scores == [] and "not used" in first.cautions[0]


def test_what_differs_is_reported_and_nothing_else():
    a = fit("price", likelihood="normal", group="patient")
    b = fit("price", "x", likelihood="gamma", group="patient")
    differs = {setting.name: (setting.a, setting.b) for setting in compare(a, b).differs}
    assert differs["likelihood"] == ("normal", "gamma")
    assert differs["columns"] == ("x, z", "x")
    assert "group" not in differs and "seed" not in differs and "network" not in differs
    c = fit("price", likelihood="normal", network="mlp", group="patient", options={"epochs": 2})
    differs = {setting.name: (setting.a, setting.b) for setting in compare(a, c).differs}
    assert differs["network"] == ("linear", "mlp")
    assert differs["training"][0] == "solved exactly" and "learning_rate" not in differs
    d = fit("price", likelihood="normal", network="mlp", group="patient", options={"epochs": 3})
    differs = [setting.name for setting in compare(c, d).differs]
    assert differs == ["steps"]


def test_an_impossible_outcome_decides():
    a, b = np.zeros(120), np.zeros(120)
    b[:2] = -np.inf
    pair = ScorePair("log score", a, b, higher=True)
    said, better = fits_verdict("A", "B", paired_difference(a, b), pair)
    assert better == "A" and said.startswith("A is better: B gives 2 outcomes probability 0")
    a[5] = -np.inf
    said, better = fits_verdict(
        "A", "B", paired_difference(a, b), ScorePair("log score", a, b, True)
    )
    assert better is None and said.startswith("Not comparable: each model gives some outcomes")


def test_the_document_is_strict_json():
    a, b = fit("price", likelihood="normal"), fit("price", likelihood="gamma")
    for found in (compare(a, b), compare(a, b, refit=True, folds=2, repeats=1)):
        document = json.loads(text_of(found.to_dict()))
        assert {"a", "b", "verdict", "better", "scores", "methods", "differs"} <= set(document)
