"""The note that the latest rows are not like those before them."""

import re

import numpy as np
import pandas as pd
import pytest

import ansatz

LINEAR = {"target": "y", "network": "linear"}


def rows(drift, count=300, likelihood="normal"):
    """Numbers whose mean leaves the line in the last third; or classes that change sides."""
    rng, when = np.random.default_rng(0), np.arange(count)
    x, late = rng.normal(size=count), np.maximum(0, when - 2 * count / 3) / (count / 10)
    if likelihood == "bernoulli":
        side = np.where(when < 0.8 * count, 1, 1 - 2 * drift)
        y = rng.uniform(size=count) < 1 / (1 + np.exp(-2 * side * x))
        return pd.DataFrame({"x": x, "when": when, "y": np.where(y, "yes", "no")})
    y = x + drift * late + rng.normal(size=count)
    return pd.DataFrame({"x": x, "when": when, "y": y})


def noted(fit):
    return [note for note in fit.notes if note.startswith("of the latest")]


@pytest.mark.parametrize("likelihood", ["normal", "bernoulli"])
@pytest.mark.parametrize("drift", [1.0, 0.0])
def test_a_drift_of_the_latest_rows_is_noted(likelihood, drift):
    frame = rows(drift, likelihood=likelihood)
    fit = ansatz.fit(frame, time="when", likelihood=likelihood, **LINEAR)
    assert len(noted(fit)) == (drift > 0)
    assert all(note.startswith("of the latest 60 rows, ") for note in noted(fit))


def test_the_note_counts_and_says_how_wide_intervals_must_be():
    frame = rows(1.0).sample(frac=1.0, random_state=0)
    fit = ansatz.fit(frame, time="when", likelihood="normal", **LINEAR)
    X, y = fit.rows_of["test"]
    lower, upper = fit.model.interval(X, 0.9).T
    inside, early = (lower <= y) & (y <= upper), X["when"] < X["when"].median()
    (note,) = noted(fit)
    shares = inside.mean(), inside[early].mean(), inside[~early].mean()
    first = f"90% intervals hold {shares[0]:.0%} ({shares[1]:.0%} of their first half, "
    assert f"{first}{shares[2]:.0%} of their second)" in note and shares[1] > shares[2]
    wider = float(re.search(r"Intervals ([0-9.]+) times as wide", note)[1])
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    assert (abs(y - middle) <= wider * half).mean() == pytest.approx(0.9, abs=0.02)


def test_classes_are_counted_by_the_probability_of_the_predicted_one():
    fit = ansatz.fit(rows(1.0, likelihood="bernoulli"), time="when", **LINEAR)
    X, y = fit.rows_of["test"]
    (note,) = noted(fit)
    held, claimed = (fit.model.predict(X) == y).mean(), fit.model.predict_proba(X).max(1).mean()
    assert f"{held:.0%} have the predicted class, by its probability {claimed:.0%} should" in note


def test_what_has_no_intervals_has_no_note():
    fit = ansatz.fit(rows(1.0), time="when", likelihood="huber", target="y", options={"steps": 5})
    assert not noted(fit)
    frame = rows(1.0)[:60]
    assert not noted(ansatz.fit(frame, time="when", likelihood="normal", **LINEAR))  # 12 rows


def test_rows_without_an_order_have_no_such_note():
    fit = ansatz.fit(rows(1.0).sort_values("y"), drop="when", likelihood="normal", **LINEAR)
    assert not noted(fit)
