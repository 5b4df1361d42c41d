import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal

from ansatz.errors import DataError, UsageError
from ansatz.likelihoods import Censored, Cox, DiscreteHazard, Gamma, Normal, Weibull
from ansatz.outcomes.survival_times import (
    survival_likelihood,
    survival_outcomes,
    survival_target,
    times_and_causes,
)

INF = np.inf
TIME, EVENT, ENTRY = np.array([5.0, 8.0, 9.0]), np.array([1, 0, 1]), np.array([0.0, 2.0, 3.0])
ROWS = [[5.0, 5.0, 1.0, -INF], [8.0, INF, 0.0, -INF], [9.0, 9.0, 1.0, -INF]]
LATE = [[*row[:3], entry] for row, entry in zip(ROWS, ENTRY, strict=True)]


def structured(*fields):
    """Rows as scikit-survival has them."""
    made = np.empty(3, dtype=[(name, values.dtype) for name, values in fields])
    for name, values in fields:
        made[name] = values
    return made


@pytest.mark.parametrize(
    "y",
    [
        pd.DataFrame({"time": TIME, "event": EVENT}),
        pd.DataFrame({"event": EVENT.astype(bool), "time": TIME}),
        np.stack([TIME, EVENT], 1),
        structured(("cens", EVENT.astype(bool)), ("time", TIME)),
        structured(("t", TIME.astype(int)), ("dead", EVENT.astype(bool))),
        pd.DataFrame({"lower": TIME, "upper": [5.0, np.nan, 9.0]}),
    ],
    ids=["frame", "other order", "two columns", "structured", "whole numbers", "ends"],
)
def test_the_same_rows_in_any_form_are_the_same(y):
    assert_array_equal(survival_outcomes(y), ROWS)


@pytest.mark.parametrize(
    "y",
    [
        pd.DataFrame({"time": TIME, "event": EVENT, "entry": ENTRY}),
        np.stack([TIME, EVENT, ENTRY], 1),
        structured(("start", ENTRY), ("event", EVENT.astype(bool)), ("stop", TIME)),
    ],
    ids=["frame", "three columns", "structured"],
)
def test_entries_come_in_any_form_too(y):
    assert_array_equal(survival_outcomes(y), LATE)


def test_arguments_stand_beside_the_times():
    assert_array_equal(survival_outcomes(TIME, event=EVENT), ROWS)
    assert_array_equal(survival_outcomes(list(TIME), event=list(EVENT), entry=ENTRY), LATE)
    assert_array_equal(survival_outcomes(TIME, upper=[5.0, INF, 9.0]), ROWS)


def test_without_events_every_time_is_one():
    assert_array_equal(survival_outcomes(TIME)[:, 2], np.ones(3))


def test_intervals_may_be_open_on_either_side():
    found = survival_outcomes([np.nan, 2.0, 3.0], upper=[4.0, np.nan, 5.0])
    assert_array_equal(found[:, :2], [[-INF, 4], [2, INF], [3, 5]])
    assert_array_equal(found[:, 2], np.zeros(3))  # none was seen exactly


def test_an_entry_that_is_missing_is_none():
    assert_array_equal(survival_outcomes(TIME, event=EVENT, entry=[np.nan] * 3), ROWS)


def test_numbers_as_text_are_numbers():
    assert_array_equal(survival_outcomes(TIME, event=["1", "0", "1"]), ROWS)


WRONG = {
    "codes without 0": (dict(event=[1, 2, 1]), r"codes 1, 2 and no 0 .* --event COLUMN=2"),
    "text": (dict(event=["dead", "alive", "dead"]), r"got 'dead' at y\[0\].*event=\(status == "),
    "half an event": (dict(event=[1, 0.5, 0]), r"must be 0, 1, 2, \.\.\., got 0\.5 at y\[1\]"),
    "no event known": (dict(event=[1, 0, np.nan]), r"got nan at y\[2\]"),
    "entry after": (dict(entry=[0, 9, 0]), r"before the outcome, got 9 and 8 at y\[1\]"),
    "entry at": (dict(entry=[5, 0, 0]), r"before the outcome, got 5 and 5 at y\[0\]"),
    "ends crossed": (dict(upper=[6, 7, 10]), r"lower end .* got 8 and 7 at y\[1\]"),
    "both": (dict(upper=TIME, event=EVENT), "they take no event"),
    "short": (dict(event=[1, 0]), r"the event must have shape \(3,\), got \(2,\)"),
    "no number": (dict(entry=["a", "b", "c"]), "the entry must hold numbers"),
}


@pytest.mark.parametrize("given, words", WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_one_line_that_names_the_row(given, words):
    with pytest.raises(DataError, match=words) as caught:
        survival_outcomes(TIME, **given)
    assert "\n" not in str(caught.value)


SHAPES = {
    "nothing": (None, "requires y to be passed, but the target y is None"),
    "nan": ([1.0, np.nan], r"finite number, got nan at y\[1\]"),
    "infinite": ([1.0, INF], r"finite number, got inf at y\[1\]"),
    "wide": (np.ones((3, 5)), r"got \(3, 5\)"),
    "unnamed": (pd.DataFrame({"a": TIME}), "the columns time and event, or lower and upper"),
    "half an interval": (pd.DataFrame({"lower": TIME}), "lower ends need upper ends"),
    "no Boolean": (structured(("a", TIME), ("b", TIME)), "a Boolean field and a time"),
    "no end": (pd.DataFrame({"lower": [np.nan], "upper": [np.nan]}), r"needs an end.*y\[0\]"),
}


@pytest.mark.parametrize("y, words", SHAPES.values(), ids=SHAPES)
def test_what_has_no_times_is_named(y, words):
    with pytest.raises(DataError, match=words):
        survival_outcomes(y)


def test_an_entry_may_lie_within_an_interval_but_not_beyond_it():
    found = survival_outcomes([2.0, np.nan], upper=[4.0, 4.0], entry=[3.0, 1.0])
    assert_array_equal(found[:, 3], [3, 1])
    with pytest.raises(DataError, match=r"got 4 and 4 at y\[1\]"):
        survival_outcomes([2.0, 2.0], upper=[4.0, 4.0], entry=[3.0, 4.0])


def test_any_law_of_numbers_takes_censoring():
    made = survival_likelihood("weibull")
    assert isinstance(made, Censored) and isinstance(made.likelihood, Weibull)
    assert isinstance(survival_likelihood(Gamma()).likelihood, Gamma)


def test_laws_of_survival_are_taken_as_they_are():
    own = Cox()
    assert survival_likelihood(own) is own
    assert isinstance(survival_likelihood("cox", {"ties": "breslow"}), Cox)
    assert survival_likelihood("discrete_hazard", {"intervals": 4}, causes=2).causes == 2


def test_the_spread_is_constant_where_rows_are_few_unless_said_otherwise():
    assert (
        survival_likelihood("weibull", constant_dispersion=True).likelihood.dispersion.kind
        == "constant"
    )
    told = survival_likelihood("weibull", {"dispersion": "predicted"}, constant_dispersion=True)
    assert told.likelihood.dispersion.kind == "predicted"
    assert (
        survival_likelihood("exponential", constant_dispersion=True).likelihood.name
        == "exponential"
    )


def test_several_causes_need_a_law_that_knows_them():
    with pytest.raises(DataError, match=r"2 causes\. weibull knows one: take discrete_hazard"):
        survival_likelihood("weibull", causes=2)
    with pytest.raises(DataError, match="cox knows one"):
        survival_likelihood(Cox(), causes=3)


def test_laws_without_an_order_are_refused():
    with pytest.raises(UsageError, match="no order"):
        survival_likelihood("categorical")


def test_targets_are_what_each_law_takes():
    rows = survival_outcomes([5.0, 8.0], event=[1, 0], entry=[1.0, np.nan])
    assert_array_equal(
        survival_target(survival_likelihood("gamma"), rows),
        [[5, 5, 1], [8, INF, -INF]],
    )
    assert_array_equal(
        survival_target(survival_likelihood("cox"), rows),
        [[5, 1, 1], [8, 0, -INF]],
    )


@pytest.mark.parametrize("likelihood", ["cox", "discrete_hazard"])
def test_intervals_need_a_law_with_a_density(likelihood):
    rows = survival_outcomes([5.0, 6.0], upper=[5.0, 8.0])
    with pytest.raises(DataError, match=rf"{likelihood} takes events .* interval at y\[1\]"):
        survival_target(survival_likelihood(likelihood), rows)


def test_a_time_below_0_is_refused_by_laws_of_positive_times_even_if_censored():
    """As an end of an interval it would say nothing, and nobody would be told."""
    rows = survival_outcomes([5.0, -1.0], event=[1, 0])
    with pytest.raises(DataError, match=r"weibull needs times >= 0, got -1 at y\[1\]"):
        survival_target(survival_likelihood("weibull"), rows)
    assert survival_target(survival_likelihood(Normal()), rows)[1, 0] == -1


@pytest.mark.parametrize("likelihood", [Censored("weibull"), Cox(), DiscreteHazard()])
def test_times_and_causes_come_back(likelihood):
    y = survival_target(likelihood, survival_outcomes([5.0, 8.0], event=[1, 0]))
    time, cause = times_and_causes(likelihood, y)
    assert_array_equal(time, [5, 8])
    assert_array_equal(cause, [1, 0])


def test_intervals_have_no_times():
    likelihood = Censored("weibull")
    for ends in ([2.0, 3.0], [2.0, np.nan]):
        y = survival_target(likelihood, survival_outcomes([1.0, ends[0]], upper=[1.0, ends[1]]))
        found = times_and_causes(likelihood, y)
        assert (found is None) == (ends[1] == 3.0)  # right-censored rows have a time
    left = survival_target(likelihood, survival_outcomes([np.nan], upper=[2.0]))
    assert times_and_causes(likelihood, left) is None


def test_the_law_checks_what_it_was_given():
    y = torch.from_numpy(survival_target(Cox(), survival_outcomes([1.0, 2.0], event=[1, 0])))
    Cox().check(y)
