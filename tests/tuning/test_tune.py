"""A search never sees the test rows, goes on where it stopped, and says what it found."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import ansatz
from ansatz.cli.output import text_of
from ansatz.errors import NumericalError, UsageError
from ansatz.fitting import Request
from ansatz.fitting.problem import reading, with_structure
from ansatz.fitting.replay import replay
from ansatz.tuning import inner_folds, search_problem, tune
from ansatz.tuning.inner_folds import InnerFolds

FAST = {"searches": 3, "folds": 2, "options": {"epochs": 2}, "space": ["width=4..8", "depth=1"]}


def table(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    return pd.DataFrame(
        {"x": x, "day": np.arange(rows), "y": np.exp(x / 2 + 0.5 * rng.normal(size=rows))}
    )


def search(data=None, **options):
    given = {"target": "y", "likelihood": "normal", **FAST, **options}
    return tune(table() if data is None else data, **given)


def told(found):
    return [(trial.parameters, trial.scores) for trial in found.trials]


def test_the_chosen_configuration_is_what_was_fitted_and_evaluated():
    found = search()
    assert [trial.number for trial in found.trials] == [0, 1, 2, 3]
    assert found.best.score == max(trial.score for trial in found.trials)
    assert found.leaders()[0] == found.best
    assert found.default.rows == found.fit.rows
    if found.best.number:
        assert list(found.model.widths) == [found.best.parameters["width"]]
        assert found.comparison.a == "tuned" and found.comparison.b == "default"
        assert found.comparison.metrics["tuned"]["nll"] == pytest.approx(found.fit.metrics["nll"])
        gain, error = found.gain(found.best)
        assert gain == pytest.approx(found.best.score - found.trials[0].score) and error >= 0


def test_outcomes_of_the_test_rows_change_no_trial():
    """With a split by time they change no split either: whatever the search saw is the same."""
    data = table()
    found = search(data, time="day")
    test = replay(found.fit).parts.test
    assert len(test) == 24 and test.min() == 96
    data.loc[test, "y"] = data.loc[test, "y"].to_numpy()[::-1] * 1000
    again = search(data, time="day")
    assert told(found) == told(again) and found.best.number == again.best.number
    assert found.fit.metrics["nll"] != again.fit.metrics["nll"]


def test_each_trial_is_the_mean_of_folds_fitted_by_hand():
    found = search(searches=1)
    trial = found.trials[1]
    rows = replay(found.fit)
    inner = inner_folds.make_folds(rows.learn, 2, seed=0)
    for k, (inside, outside) in enumerate(inner):
        evaluated = rows.learn
        X, y = evaluated.rows, evaluated.y.numpy()
        model = ansatz.Regressor(
            "normal",
            **{"widths": [trial.parameters["width"]], "epochs": 2},
            **{k: v for k, v in trial.parameters.items() if k not in ("width", "depth")},
            random_state=ansatz.seeds.derive(0, "inner", k) >> 32,
        ).fit(X[inside].frame, y[inside])
        assert trial.scores[k] == pytest.approx(
            model.log_score(X[outside].frame, y[outside]), rel=1e-6
        )


def test_a_search_that_was_interrupted_goes_on_with_the_same_trials(tmp_path, monkeypatch):
    whole = search()
    evaluate, calls = InnerFolds.scores, []

    def scores(self, parameters, deadline=None):
        calls.append(parameters)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return evaluate(self, parameters, deadline)

    monkeypatch.setattr(InnerFolds, "scores", scores)
    with pytest.raises(KeyboardInterrupt) as stopped:
        search(out=tmp_path / "model")
    assert stopped.value.checkpoint == tmp_path / "model.tuning"
    monkeypatch.setattr(InnerFolds, "scores", evaluate)
    with pytest.raises(UsageError, match="holds an unfinished search: go on with --resume"):
        search(out=tmp_path / "model")
    with pytest.raises(UsageError, match="a search with other options"):
        search(out=tmp_path / "model", resume=True, seed=1)
    again = search(out=tmp_path / "model", resume=True)
    assert told(again) == told(whole)
    assert again.fit.metrics == whole.fit.metrics
    assert not (tmp_path / "model.tuning").exists()
    done = search(out=tmp_path / "model", resume=True)
    assert told(done) == told(whole) and done.verdict == whole.verdict
    assert "nothing to do" in done.notes[-1]


def test_a_killed_search_goes_on_with_the_same_trials(tmp_path):
    table().to_csv(tmp_path / "table.csv", index=False)
    code = (
        "import os, sys; from ansatz.tuning.inner_folds import InnerFolds\n"
        "from ansatz.tuning import tune\n"
        "evaluate, calls = InnerFolds.scores, []\n"
        "def scores(self, parameters, deadline=None):\n"
        "    calls.append(1)\n"
        "    found = evaluate(self, parameters, deadline)\n"
        "    os._exit(9) if len(calls) == 3 else None\n"  # no handler, no flush, no clean-up
        "    return found\n"
        "InnerFolds.scores = scores\n"
        f"tune('table.csv', target='y', likelihood='normal', out='model', **{FAST!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=os.environ)
    assert done.returncode == 9
    kept = json.loads((tmp_path / "model.tuning" / "trials.json").read_text())
    assert len(kept["trials"]) == 2
    whole = search(tmp_path / "table.csv")
    again = search(tmp_path / "table.csv", out=tmp_path / "model", resume=True)
    assert told(again) == told(whole)
    assert len(replay(tmp_path / "model").test.y) == 24


def test_the_time_limit_ends_the_search_and_not_the_answer():
    found = search(time_limit=1e-9, searches=50)
    assert len(found.trials) == 1 and "after 0 of 50 trials" in found.notes[0]
    assert found.verdict.startswith("No trial was made") and found.comparison is None


def test_likelihoods_are_searched_where_none_is_given(monkeypatch):
    def likelihoods_of(y, first):
        monkeypatch.setattr(
            search_problem, "choose_likelihood", lambda *_: SimpleNamespace(likelihood=first)
        )
        data = table().assign(y=y)
        request = Request.of(data, {"target": "y", "test": 0.2, "device": "cpu"})
        request = with_structure(request)
        with reading(request) as problem:
            _, space, notes = search_problem.build_search(request, problem, (), 2)
        return space["likelihood"].values, notes

    candidates, notes = likelihoods_of(lambda frame: frame["y"], "gamma")
    assert candidates[0] == "gamma" and {"normal", "log_normal"} <= set(candidates) and notes == []
    candidates, notes = likelihoods_of(lambda frame: frame["y"].round(), "poisson")
    assert (
        candidates[0] == "poisson"
        and "negative_binomial" in candidates
        and "normal" not in candidates
    )


def test_the_likelihood_is_a_dimension_like_any_other():
    found = search(space=["width=4", "depth=1", "likelihood=normal,laplace"], searches=3)
    candidates = {trial.parameters.get("likelihood", "normal") for trial in found.trials}
    assert candidates == {"normal", "laplace"}
    assert found.fit.likelihood == found.best.parameters.get("likelihood", "normal")


def test_likelihoods_without_a_common_measure_do_not_compete():
    with pytest.raises(UsageError, match="poisson and normal have no score in common"):
        data = table().assign(y=lambda frame: frame["y"].round())
        search(data, space=["likelihood=normal,poisson"])


def test_a_configuration_that_cannot_be_fitted_is_a_failed_trial(monkeypatch):
    evaluate = InnerFolds.scores

    def scores(self, parameters, deadline=None):
        if parameters:
            raise NumericalError("the loss is nan at step 1.")
        return evaluate(self, parameters, deadline)

    monkeypatch.setattr(InnerFolds, "scores", scores)
    found = search()
    assert found.best.number == 0 and found.fit is found.default
    assert found.trials[1].reason == "the loss is nan at step 1."
    assert "3 of 4 trials could not be fitted." in found.notes
    assert "None of 3 trials beat the default recipe" in found.verdict


def test_an_indistinguishable_winner_is_said_to_be_one():
    found = search()
    if found.comparison is not None and found.comparison.better is None:
        assert found.verdict.startswith("The search found nothing that the test rows can tell")


def test_classes_and_survival_are_searched_too():
    rng = np.random.default_rng(1)
    data = table().assign(
        label=lambda frame: np.where(frame["x"] + rng.logistic(size=120) > 0, "yes", "no"),
        died=rng.integers(0, 2, size=120),
    )
    found = tune(data.drop(columns=["y", "died"]), target="label", **{**FAST, "searches": 1})
    assert found.fit.metrics["accuracy"] is not None
    options = {**FAST, "searches": 1, "event": "died", "likelihood": "cox"}
    found = tune(data.drop(columns=["label"]), target="y", **options)
    assert "batch_size" not in found.space and found.fit.likelihood == "cox"


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(UsageError, match="a linear model has nothing to search"):
        search(network="linear")
    with pytest.raises(UsageError, match="--searches from 1"):
        search(searches=0)
    with pytest.raises(UsageError, match="unknown option 'with'"):
        search(space=["with=1..2"])
    with pytest.raises(UsageError, match="--resume needs --out"):
        search(resume=True)


def test_given_options_are_not_searched():
    found = search(searches=1, options={"epochs": 2, "dropout": 0.2, "widths": [4]}, space=())
    assert not {"dropout", "width", "depth"} & set(found.space)
    assert found.model.dropout == 0.2


def test_the_document_is_strict_json(tmp_path):
    document = json.loads(text_of(search(searches=1, out=tmp_path / "model").to_dict()))
    assert {"model", "verdict", "best", "trials", "space", "fit", "comparison"} <= set(document)
    assert document["trials"][0]["score"] is not None
