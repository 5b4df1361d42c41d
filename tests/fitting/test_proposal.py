import numpy as np
import pandas as pd
import pytest

from ansatz.errors import DataError
from ansatz.fitting.proposal import propose
from ansatz.fitting.uses import Uses

PARTS = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]])


def frame_of(**columns):
    return pd.DataFrame(columns)


def test_parts_that_add_up_to_one_are_a_composition():
    table = pd.DataFrame(PARTS, columns=list("abc"))
    assert propose("t", table, Uses(target=list("abc"))).laws == ["dirichlet"]
    rounded = table.assign(a=table.a + 0.004)
    proposal = propose("t", rounded, Uses(target=list("abc")))
    assert proposal.laws == ["dirichlet"] and proposal.options == {"normalize": True}
    assert "divided" in proposal.why


def test_other_numbers_side_by_side_are_normal_each():
    table = pd.DataFrame(PARTS * 7, columns=list("abc"))
    assert propose("t", table, Uses(target=["a", "b"])).laws == ["normal"]


def test_successes_of_trials_are_binomial_or_more_variable():
    table = frame_of(k=[1, 2], n=[3, 4])
    assert propose("t", table, Uses(target=["k"], trials="n")).laws == ["binomial", "beta_binomial"]


def test_censored_times_have_laws_of_times_and_several_causes_a_hazard_each():
    table = frame_of(t=[1.0, 2.0, 3.0], e=[0, 1, 1], cause=[0, 1, 2])
    laws = propose("t", table, Uses(target=["t"], event="e")).laws
    assert laws[0] == "exponential" and {"weibull", "log_normal"} <= set(laws)
    assert propose("t", table, Uses(target=["t"], event="cause")).laws == ["discrete_hazard"]


def test_times_that_may_be_negative_are_normal():
    table = frame_of(t=[-1.0, 2.0, 3.0], e=[0, 1, 1])
    assert propose("t", table, Uses(target=["t"], event="e")).laws == ["normal"]


def test_orders_are_rankings():
    table = frame_of(y=["a>b>c", "b>a>c"])
    assert propose("t", table, Uses(target=["y"])).laws == ["plackett_luce"]


def test_several_targets_must_be_numbers():
    with pytest.raises(DataError, match="several targets must all be numbers"):
        propose("t", frame_of(a=[1.0, 2.0], b=["u", "v"]), Uses(target=["a", "b"]))
