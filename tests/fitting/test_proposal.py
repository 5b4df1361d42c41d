import numpy as np
import pandas as pd
import pytest

from ansatz.errors import DataError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.proposal import propose

PARTS = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]])


def frame_of(**columns):
    return pd.DataFrame(columns)


def test_parts_that_add_up_to_one_are_a_composition():
    table = pd.DataFrame(PARTS, columns=list("abc"))
    assert propose("t", table, ColumnRoles(target=list("abc"))).likelihoods == ["dirichlet"]
    rounded = table.assign(a=table.a + 0.004)
    proposal = propose("t", rounded, ColumnRoles(target=list("abc")))
    assert proposal.likelihoods == ["dirichlet"] and proposal.options == {"normalize": True}
    assert "divided" in proposal.why


def test_other_numbers_side_by_side_are_normal_each():
    table = pd.DataFrame(PARTS * 7, columns=list("abc"))
    assert propose("t", table, ColumnRoles(target=["a", "b"])).likelihoods == ["normal"]


def test_successes_of_trials_are_binomial_or_more_variable():
    table = frame_of(k=[1, 2], n=[3, 4])
    assert propose("t", table, ColumnRoles(target=["k"], trials="n")).likelihoods == [
        "binomial",
        "beta_binomial",
    ]


def test_censored_times_have_likelihoods_of_times_and_several_causes_a_hazard_each():
    table = frame_of(t=[1.0, 2.0, 3.0], e=[0, 1, 1], cause=[0, 1, 2])
    candidates = propose("t", table, ColumnRoles(target=["t"], event="e")).likelihoods
    assert candidates[0] == "exponential" and {"weibull", "log_normal"} <= set(candidates)
    assert propose("t", table, ColumnRoles(target=["t"], event="cause")).likelihoods == [
        "discrete_hazard"
    ]


def test_times_that_may_be_negative_are_normal():
    table = frame_of(t=[-1.0, 2.0, 3.0], e=[0, 1, 1])
    assert propose("t", table, ColumnRoles(target=["t"], event="e")).likelihoods == ["normal"]


def test_orders_are_rankings():
    table = frame_of(y=["a>b>c", "b>a>c"])
    assert propose("t", table, ColumnRoles(target=["y"])).likelihoods == ["plackett_luce"]


def test_several_targets_must_be_numbers():
    with pytest.raises(DataError, match="several targets must all be numbers"):
        propose("t", frame_of(a=[1.0, 2.0], b=["u", "v"]), ColumnRoles(target=["a", "b"]))
