"""The rows of a fit found again: its own metrics, computed anew, tell whether they are."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from tests.estimators.conftest import TINY

import ansatz
from ansatz.errors import DataError, ModelError, UsageError
from ansatz.fitting.problem import Problem
from ansatz.fitting.replay import _as_then, replay
from ansatz.storage.json_file import plain


def table(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    life = np.exp(0.5 * x) * rng.weibull(1.5, size=rows) + 0.05
    end = rng.exponential(2.5, size=rows) + 0.05
    places = np.argsort(-(np.outer(x, [1.0, 0.0, -1.0]) + rng.gumbel(size=(rows, 3))), axis=1)
    return pd.DataFrame(
        {
            "x": x,
            "town": rng.choice(["Jena", "Gera", "Weimar"], size=rows),
            "number": 2 * x + rng.normal(size=rows),
            "label": np.where(x + rng.logistic(size=rows) > 0, "yes", "no"),
            "count": rng.poisson(np.exp(0.4 * x)),
            "time": np.minimum(life, end),
            "event": (life <= end).astype(int),
            "first": np.array(["a", "b", "c"])[places[:, 0]],
            "second": np.array(["a", "b", "c"])[places[:, 1]],
            "third": np.array(["a", "b", "c"])[places[:, 2]],
            "weight": rng.integers(0, 3, size=rows),
            "years": rng.uniform(0.5, 2.0, size=rows),
            "patient": rng.integers(0, 30, size=rows),
            "day": rng.integers(0, 60, size=rows),
        }
    )


OUTCOMES = ["number", "label", "count", "time", "event", "first", "second", "third"]
EXTRA = ["weight", "years", "patient", "day"]
PLACES = {"target": ["first", "second", "third"], "likelihood": "plackett_luce"}
CASES = {
    "numbers": {"target": "number", "likelihood": "normal"},
    "a chosen likelihood": {"target": "count"},
    "groups": {"target": "number", "likelihood": "normal", "group": "patient"},
    "time": {"target": "number", "likelihood": "normal", "time": "day"},
    "weights": {"target": "number", "likelihood": "normal", "weights": "weight"},
    "exposure": {"target": "count", "likelihood": "poisson", "exposure": "years"},
    "survival": {"target": "time", "event": "event", "likelihood": "weibull"},
    "cox": {"target": "time", "event": "event", "likelihood": "cox"},
    "rankings": PLACES,
    "classes": {"target": "label"},
    "other seed": {"target": "number", "likelihood": "normal", "seed": 7, "test": 0.3},
}


def options_of(case):
    given = CASES[case]
    used = {v for value in given.values() for v in (value if isinstance(value, list) else [value])}
    return {**given, "drop": [name for name in (*OUTCOMES, *EXTRA) if name not in used]}


def metrics_of(found):
    return found.model.evaluate(found.test)


def assert_same(metrics, stored):
    for name, value in stored.items():
        assert metrics[name] == pytest.approx(value, rel=1e-9, nan_ok=True), name


@pytest.mark.parametrize("case", CASES)
def test_the_replayed_test_rows_give_the_metrics_that_the_fit_stored(case, tmp_path):
    table().to_csv(tmp_path / "table.csv", index=False)
    options = options_of(case)
    fit = ansatz.fit(tmp_path / "table.csv", network="linear", out=tmp_path / "model", **options)
    found = replay(tmp_path / "model")
    problem, job, parts = fit.split_problem
    for ours, theirs in zip(found.parts, parts, strict=True):
        assert_array_equal(ours, theirs)
    assert torch.equal(found.job.y, job.y) and torch.equal(found.job.weight, job.weight)
    assert found.problem.candidates == problem.candidates
    assert_same(metrics_of(found), fit.metrics)


def test_a_network_is_replayed_with_the_rows_that_stopped_it(tmp_path):
    table().to_csv(tmp_path / "table.csv", index=False)
    options = {**options_of("numbers"), "options": {**TINY, "holdout": 0.25}}
    fit = ansatz.fit(tmp_path / "table.csv", out=tmp_path / "model", **options)
    found = replay(tmp_path / "model")
    assert len(found.parts.valid) == fit.rows["valid"] > 0
    assert_array_equal(found.parts.valid, fit.split_problem[2].valid)
    assert_same(metrics_of(found), fit.metrics)


def test_a_named_data_set_is_loaded_again(tmp_path):
    fit = ansatz.fit("iris", target="species", network="linear", out=tmp_path / "model")
    found = replay(tmp_path / "model")
    assert found.provenance.source.kind == "data set"
    assert_same(metrics_of(found), fit.metrics)


def test_a_fit_in_memory_is_its_own_replay():
    frame = table()
    fit = ansatz.fit(frame, network="linear", **options_of("numbers"))
    found = replay(fit)
    assert found.job is fit.split_problem[1]
    assert_same(metrics_of(found), fit.metrics)
    assert_same(metrics_of(replay(fit.model, frame)), fit.metrics)


def test_a_model_of_rows_in_memory_asks_for_them_and_knows_them(tmp_path):
    frame = table()
    fit = ansatz.fit(frame, network="linear", out=tmp_path / "model", **options_of("numbers"))
    with pytest.raises(DataError, match=r"a table in memory: give it anew, --data FILE"):
        replay(tmp_path / "model")
    assert_same(metrics_of(replay(tmp_path / "model", frame)), fit.metrics)
    frame.to_csv(tmp_path / "same.csv", index=False)
    assert_same(metrics_of(replay(tmp_path / "model", tmp_path / "same.csv")), fit.metrics)
    with pytest.raises(DataError, match=r"not what .*model was fitted to: cells differ"):
        replay(tmp_path / "model", table(seed=1))


@pytest.fixture
def fitted(tmp_path):
    file = tmp_path / "table.csv"
    table().to_csv(file, index=False)
    ansatz.fit(file, network="linear", out=tmp_path / "model", **options_of("numbers"))
    return file, tmp_path / "model"


def test_a_changed_file_is_refused_with_what_changed(fitted):
    file, model = fitted
    frame = table()
    frame.loc[5, "x"] += 1e-9
    frame.to_csv(file, index=False)
    with pytest.raises(
        DataError, match=r"table.csv is not what .* fitted to: cells differ.*--data"
    ):
        replay(model)
    pd.concat([table(), table().head(2)]).to_csv(file, index=False)
    with pytest.raises(DataError, match=r"it had 120 rows with an outcome, now 122"):
        replay(model)
    table().assign(more=1.0).to_csv(file, index=False)
    with pytest.raises(DataError, match=r"column 'more' is new"):
        replay(model)
    table()[table().columns[::-1]].to_csv(file, index=False)
    with pytest.raises(DataError, match=r"the columns are in another order"):
        replay(model)


def test_a_file_that_moved_is_found_by_data(fitted, tmp_path):
    file, model = fitted
    file.rename(tmp_path / "elsewhere.csv")
    with pytest.raises(DataError, match=r"no longer there\. Say where it is: --data FILE"):
        replay(model)
    assert len(replay(model, tmp_path / "elsewhere.csv").test.y) == 24


def test_a_file_is_found_from_another_folder(tmp_path, monkeypatch):
    table().to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.chdir(tmp_path)
    ansatz.fit("table.csv", network="linear", out="model", **options_of("numbers"))
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    assert len(replay(tmp_path / "model").test.y) == 24


def test_the_same_rows_in_another_format_are_the_same_rows(fitted, tmp_path):
    file, model = fitted
    pd.read_csv(file).to_parquet(tmp_path / "table.parquet")
    assert len(replay(model, tmp_path / "table.parquet").test.y) == 24


def test_reader_options_are_used_again(tmp_path):
    table().to_csv(tmp_path / "table.csv", index=False, sep=";", decimal=",")
    fit = ansatz.fit(
        *(tmp_path / "table.csv",),
        **{"network": "linear", "out": tmp_path / "model", "delimiter": ";", "decimal": ","},
        **options_of("numbers"),
    )
    assert_same(metrics_of(replay(tmp_path / "model")), fit.metrics)


def test_a_model_without_a_record_says_what_to_do(fitted, tmp_path):
    _, folder = fitted
    model = ansatz.load(folder)
    del model.evidence_["provenance"]  # as an older version wrote it
    model.save(tmp_path / "old")
    with pytest.raises(ModelError, match=r"saved without a record of its rows.*Fit it again"):
        replay(tmp_path / "old")


def test_rows_may_be_given_to_a_model_that_remembers_none(numbers):
    X, y = numbers
    model = ansatz.Regressor(network="linear").fit(X[:40], y[:40])
    with pytest.raises(ModelError, match=r"data=\(X, y\)"):
        replay(model)
    found = replay(model, (X[40:], y[40:]))
    assert found.problem is None and len(found.parts.learn) == 0
    assert metrics_of(found)["nll"] == pytest.approx(model.evaluate(X[40:], y[40:])["nll"])
    with pytest.raises(UsageError, match=r"\(X, y\), \(X, y, weight\)"):
        replay(model, (X,))


def test_a_fit_evaluated_by_folds_has_no_test_rows(tmp_path):
    table().to_csv(tmp_path / "table.csv", index=False)
    options = {**options_of("numbers"), "folds": 3}
    ansatz.fit(tmp_path / "table.csv", network="linear", out=tmp_path / "model", **options)
    found = replay(tmp_path / "model")
    assert len(found.test.y) == 0 and len(found.learn.y) == 120


def test_the_record_is_json_whatever_the_options_are():
    said = plain({"a": np.float64(1.5), "b": {2, 1}, "c": (np.int64(1),), "d": object, "e": np.inf})
    assert json.loads(json.dumps(said, allow_nan=False))["b"] == [1, 2]
    assert said["e"] == "inf"


def test_likelihoods_of_times_have_the_same_test_rows_whatever_form_their_outcomes_take():
    frame = table()[["x", "time", "event"]]
    options = {"target": "time", "event": "event", "network": "linear"}
    fits = [
        ansatz.fit(frame, likelihood=likelihood, **options) for likelihood in ("cox", "weibull")
    ]
    assert_array_equal(fits[0].split_problem[2].test, fits[1].split_problem[2].test)


def test_a_fit_of_format_2_called_the_column_of_tiles_piece():
    frame = pd.DataFrame({"tile": [1, 2]})
    problem = Problem("x", frame, None, None, [], {}, [], "")
    rows = SimpleNamespace(columns=["piece"])
    asked = SimpleNamespace(options={"tiles": 2})
    found = _as_then(problem, SimpleNamespace(rows=rows, asked=asked))
    assert list(found.frame.columns) == ["piece"]
    rows.columns = ["tile"]
    assert _as_then(problem, SimpleNamespace(rows=rows, asked=asked)) is problem
