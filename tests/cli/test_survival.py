"""ansatz fit, predict and evaluate of times until events."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

DATA = Path(os.environ.get("ANSATZ_DATA", "nowhere")) / "survival"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="ANSATZ_DATA is not set")
TIME = ("--target", "weeks", "--event", "died")


@pytest.fixture
def patients(tmp_path):
    """A table of weeks until death by age and arm; returns a writer of variants of it."""
    rng = np.random.default_rng(0)
    age, arm = rng.uniform(40, 80, 60).round(), rng.choice(["drug", "none"], 60)
    life = rng.weibull(1.5, 60) * np.exp(5 - 0.03 * age + 0.5 * (arm == "drug"))
    end = rng.uniform(5, 60, 60)
    weeks, died = np.minimum(life, end).round(2) + 0.01, (life <= end).astype(int)
    table = pd.DataFrame({"age": age, "arm": arm, "weeks": weeks, "died": died})

    def write(name="patients.csv", **columns):
        table.assign(**columns).to_csv(tmp_path / name, index=False)
        return table

    write()
    return write


def fit(command, *words, data="patients.csv"):
    done = command("fit", data, *words, "--network", "linear", "--json", "--quiet")
    assert done.status == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize("likelihood", ["weibull", "cox", "discrete_hazard"])
def test_from_a_table_to_chances(command, patients, table_of, likelihood):
    words = ("--set", "intervals=3") if likelihood == "discrete_hazard" else ()
    done = fit(command, *TIME, "--likelihood", likelihood, *words)
    assert done["likelihood"] == likelihood
    assert done["metrics"]["c_index"] > 0.5 and done["metrics"]["integrated_brier"] < 0.3
    assert ("nll" in done["metrics"]) == (likelihood != "cox")
    found = command("predict", "patients-model", "patients.csv", "--times", "12,24.5")
    assert (found.status, found.err) == (0, "")
    table = table_of(found.out)
    assert list(table) == ["prediction", "risk", "survival_12", "survival_24.5"]
    assert table["survival_12"].between(0, 1).all()
    assert (table["survival_24.5"] <= table["survival_12"]).all()
    evaluated = command("evaluate", "patients-model", "patients.csv", "--json")
    assert json.loads(evaluated.out)["c_index"] > 0.5


@pytest.mark.slow
def test_the_likelihood_is_chosen_among_those_of_positive_times(command, patients):
    done = fit(command, *TIME)
    candidates = {row["likelihood"] for row in done["candidates"]}
    assert {"exponential", "weibull", "log_normal", "gamma"} <= candidates
    assert done["likelihood"] in candidates


def test_the_event_may_be_named_by_its_value(command, patients):
    table = patients("b.csv")
    patients("b.csv", died=np.where(table["died"] == 1, "dead", "alive"))
    given = fit(command, *TIME, "--likelihood", "weibull")
    named = fit(
        *(command, "--target", "weeks", "--event", "died=dead", "--likelihood", "weibull"),
        data="b.csv",
    )
    assert named["metrics"] == pytest.approx(given["metrics"])


def test_ends_of_intervals_take_the_place_of_time_and_event(command, patients):
    table = patients("i.csv")
    upper = np.where(table["died"] == 1, np.ceil(table["weeks"]), np.nan)
    patients("i.csv", weeks=np.floor(table["weeks"]), died=upper)
    words = ("--lower", "weeks", "--upper", "died", "--likelihood", "weibull")
    assert set(fit(command, *words, data="i.csv")["metrics"]) == {"nll"}
    done = command("predict", "i-model", "i.csv", "--times", "10")
    assert done.status == 0, done.err


def test_rows_may_enter_late(command, patients):
    patients("e.csv", start=patients()["weeks"] / 3)
    done = fit(command, *TIME, "--entry", "start", "--likelihood", "cox", data="e.csv")
    assert set(done["metrics"]) == {"c_index"}


def test_several_causes_have_their_incidences(command, patients, table_of):
    died = patients()["died"].to_numpy()
    patients("c.csv", died=np.where(np.arange(60) % 3 == 0, 2 * died, died))
    done = fit(
        command, *TIME, "--likelihood", "discrete_hazard", "--set", "intervals=2", data="c.csv"
    )
    assert {"c_index_1", "c_index_2"} <= set(done["metrics"])
    table = table_of(command("predict", "c-model", "c.csv", "--times", "20").out)
    parts = table[["survival_20", "incidence_1_20", "incidence_2_20"]]
    np.testing.assert_allclose(parts.sum(axis=1), 1)


FAULTS = {
    "codes 1 and 2": ({"died": lambda t: t["died"] + 1}, TIME, 3, "no 0 for rows that were"),
    "text": ({"died": lambda t: np.where(t["died"], "gone", "well")}, TIME, 3, "at row 1. Say"),
    "negative": ({"weeks": lambda t: t["weeks"].where(t.index != 6, -2)}, TIME, 3, "at row 7"),
    "all censored": ({"died": lambda t: 0}, TIME, 3, "censored"),
    "entry after": (
        {"start": lambda t: np.where(t.index == 4, 999, 0)},
        (*TIME, "--entry", "start"),
        3,
        "got 999 and",
    ),
    "no such value": ({}, ("--target", "weeks", "--event", "died=yes"), 3, "'yes' in no row"),
    "no such column": ({}, ("--target", "weeks", "--event", "dead"), 3, "Did you mean 'died'"),
    "half an interval": ({}, ("--lower", "weeks"), 2, "--lower and --upper go together"),
    "time of two": ({}, ("--target", "weeks,age", "--event", "died"), 2, "one --target, the time"),
}


@pytest.mark.parametrize("likelihood", ["weibull", "cox", None])
@pytest.mark.parametrize("columns, words, status, said", FAULTS.values(), ids=FAULTS)
def test_what_is_wrong_is_one_line_and_a_status(
    command, patients, columns, words, status, said, likelihood
):
    table = patients()
    patients("bad.csv", **{name: make(table) for name, make in columns.items()})
    if likelihood is None and columns.keys() == {"weeks"}:
        pytest.skip("without a likelihood, values below 0 are read as those of a normal one")
    choice = () if likelihood is None else ("--likelihood", likelihood)
    done = command("fit", "bad.csv", *words, *choice, "--network", "linear", "--quiet")
    assert done.status == status, done.err
    assert done.err.startswith("ansatz: ") and done.err.count("\n") == 1, done.err
    assert said in done.err
    if "at row" in said and likelihood is not None:
        assert "bad.csv, Surv(" in done.err


@pytest.mark.parametrize("given", ["soon", "12,,24", "inf", ""])
def test_times_that_are_no_numbers_are_refused(command, model, given):
    done = command("predict", model, "new.csv", "--times", given)
    assert done.status == 2 and done.err.count("\n") == 1
    assert f"--times takes numbers like 12,24, got '{given}'" in done.err


def test_a_model_of_something_else_has_no_survival_curve(command, model):
    done = command("predict", model, "new.csv", "--times", "12")
    assert (done.status, done.out) == (2, "")
    assert done.err == "ansatz: --times is for survival models; this one has no survival curve.\n"


SETS = {
    "lung": ("--target", "time", "--event", "status"),
    "gbsg2": ("--target", "time", "--event", "cens"),
    "lymphoma": ("--target", "Time", "--event", "Censor"),
    "rossi": ("--target", "week", "--event", "arrest"),
    "interval-diabetes": ("--lower", "left", "--upper", "right"),
    "stanford-heart": ("--target", "stop", "--event", "event", "--entry", "start", "--group", "id"),
}


@needs_data
@pytest.mark.parametrize("name", SETS)
def test_published_tables_are_fitted_with_a_weibull_likelihood(command, name):
    done = fit(command, *SETS[name], "--likelihood", "weibull", data=name)
    assert done["metrics"]["nll"] <= done["constant"]["nll"] + 0.05
    assert command("inspect", f"{name}-model").status == 0


@needs_data
@pytest.mark.parametrize("name", [name for name in SETS if name != "interval-diabetes"])
def test_published_tables_are_fitted_by_cox(command, name):
    done = fit(command, *SETS[name], "--likelihood", "cox", data=name)
    assert done["metrics"]["c_index"] is not None


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_published_tables_are_fitted_when_nothing_is_said(command, name):
    done = command("fit", name, *SETS[name], "--json", "--quiet")
    assert done.status == 0, done.err
    assert json.loads(done.out)["candidates"]


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["cox", "weibull"])
@pytest.mark.parametrize("name", ["metabric", "gbsg", "whas"])
def test_published_splits_are_fitted_by_networks(command, name, likelihood):
    words = ("--target", "time", "--event", "event", "--likelihood", likelihood)
    done = command("fit", name, *words, "--json", "--quiet")
    assert done.status == 0, done.err
    metrics = json.loads(done.out)["metrics"]
    assert metrics["c_index"] > 0.6 and metrics["integrated_brier"] < 0.25


@pytest.mark.parametrize("yes, no", [("yes", "no"), ("TRUE", "False"), ("ja", "nein"), ("y", "n")])
def test_words_for_yes_and_no_are_events(yes, no, patients, command):
    table = patients()
    expected = fit(command, *TIME, "--likelihood", "weibull", "--out", "codes")
    patients(died=np.where(table["died"], yes, no))
    found = fit(command, *TIME, "--likelihood", "weibull", "--out", "words")
    assert found["log_likelihood"] == expected["log_likelihood"]
