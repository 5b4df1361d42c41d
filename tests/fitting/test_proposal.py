import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from ansatz.errors import DataError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.proposal import candidates, propose
from ansatz.likelihoods import create

PARTS = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]])


def frame_of(**columns):
    return pd.DataFrame(columns)


def test_parts_that_add_up_to_one_are_a_composition():
    table = pd.DataFrame(PARTS, columns=list("abc"))
    assert propose("t", table, ColumnRoles(target=list("abc"))).candidates == ["dirichlet"]
    rounded = table.assign(a=table.a + 0.004)
    proposal = propose("t", rounded, ColumnRoles(target=list("abc")))
    assert proposal.candidates == ["dirichlet"] and proposal.options == {"normalize": True}
    assert "divided" in proposal.why


def test_other_numbers_side_by_side_are_normal_each():
    table = pd.DataFrame(PARTS * 7, columns=list("abc"))
    assert propose("t", table, ColumnRoles(target=["a", "b"])).candidates == ["normal"]


def test_successes_of_trials_are_binomial_or_more_variable():
    table = frame_of(k=[1, 2], n=[3, 4])
    assert propose("t", table, ColumnRoles(target=["k"], trials="n")).candidates == [
        "binomial",
        "beta_binomial",
    ]


def test_censored_times_have_likelihoods_of_times_and_several_causes_a_hazard_each():
    table = frame_of(t=[1.0, 2.0, 3.0], e=[0, 1, 1], cause=[0, 1, 2])
    candidates = propose("t", table, ColumnRoles(target=["t"], event="e")).candidates
    assert candidates[0] == "exponential" and {"weibull", "log_normal"} <= set(candidates)
    assert propose("t", table, ColumnRoles(target=["t"], event="cause")).candidates == [
        "discrete_hazard"
    ]


def test_times_that_may_be_negative_are_normal():
    table = frame_of(t=[-1.0, 2.0, 3.0], e=[0, 1, 1])
    assert propose("t", table, ColumnRoles(target=["t"], event="e")).candidates == ["normal"]


def test_orders_are_rankings():
    table = frame_of(y=["a>b>c", "b>a>c"])
    assert propose("t", table, ColumnRoles(target=["y"])).candidates == ["plackett_luce"]


def test_several_targets_must_be_numbers():
    with pytest.raises(DataError, match="several targets must all be numbers"):
        propose("t", frame_of(a=[1.0, 2.0], b=["u", "v"]), ColumnRoles(target=["a", "b"]))


rng = np.random.default_rng(0)
COUNTS = rng.poisson(3.0, size=200)
REALS = rng.normal(size=200)
SURVIVAL = ["exponential", "weibull", "log_normal", "gamma"]
INFLATED = ["zero_inflated_poisson", "hurdle_poisson", "zero_inflated_negative_binomial"]


@pytest.mark.parametrize(
    "y, wanted",
    [
        (REALS, ["normal", "laplace", "student_t"]),
        (REALS**2, ["normal", "gamma", "log_normal", "weibull", "laplace", "student_t"]),
        (np.append(REALS**2, 0), ["tweedie", "normal"]),
        (1 / (1 + np.exp(-REALS)), ["beta", "normal"]),
        (np.append(1 / (1 + np.exp(-REALS)), 1), ["zero_one_inflated_beta"]),
        (COUNTS, ["poisson", "negative_binomial", "normal"]),
        (COUNTS * 10 + 1, ["poisson", "negative_binomial", "normal", "gamma", "log_normal"]),
        (COUNTS - 5, ["normal", "laplace", "student_t"]),
        (COUNTS % 2, ["bernoulli"]),
        (COUNTS % 2 + 1, ["bernoulli"]),
        (COUNTS % 2 == 0, ["bernoulli"]),
        (np.full(9, 2.5), ["normal"]),
        (np.array(["a", "b", "a"]), ["bernoulli"]),
        (pd.Series(["a", "b", "c"]), ["categorical"]),
    ],
)
def test_the_support_of_the_values_proposes_the_likelihoods(y, wanted):
    assert candidates(y) == wanted


def test_a_whole_number_is_a_count_in_every_type():
    assert candidates(COUNTS.astype(float)) == candidates(COUNTS.astype(np.int16))
    assert candidates(pd.Series(COUNTS, dtype="Int64")) == candidates(COUNTS)


def test_zeros_beyond_those_of_a_poisson_law_propose_inflated_ones():
    assert not set(INFLATED) & set(candidates(COUNTS))
    inflated = np.where(np.arange(200) % 3 == 0, 0, COUNTS)
    assert candidates(inflated) == ["poisson", "negative_binomial", *INFLATED, "normal"]


def test_whole_amounts_beside_many_zeros_may_be_claims():
    claims = np.where(np.arange(200) % 3 == 0, 100 * COUNTS, 0)
    assert candidates(claims)[-2:] == ["normal", "tweedie"]


def test_an_exposure_asks_for_a_log_link():
    assert candidates(COUNTS, exposure=True) == ["poisson", "negative_binomial"]
    assert candidates(REALS**2, exposure=True) == ["gamma", "log_normal", "weibull"]
    assert candidates(REALS, exposure=True) == candidates(REALS)


def test_censored_times_have_laws_of_their_own():
    assert candidates(REALS**2, censored=True) == SURVIVAL


def test_every_candidate_accepts_the_values_that_proposed_it():
    for y in (REALS, REALS**2, np.append(REALS**2, 0), stats.norm.cdf(REALS), COUNTS, COUNTS + 1):
        for likelihood in candidates(y):
            create(likelihood).check(torch.tensor(np.asarray(y, dtype=float)))
