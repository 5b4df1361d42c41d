import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from ansatz.fitting.candidates import candidates
from ansatz.likelihoods import create

rng = np.random.default_rng(0)
COUNTS = rng.poisson(3.0, size=200)
REALS = rng.normal(size=200)
SURVIVAL = ["exponential", "weibull", "log_normal", "gamma"]
INFLATED = ["zero_inflated_poisson", "hurdle_poisson", "zero_inflated_negative_binomial"]


@pytest.mark.parametrize(
    "y, likelihoods",
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
def test_the_support_of_the_values_proposes_the_likelihoods(y, candidates):
    assert candidates(y) == candidates


def test_a_whole_number_is_a_count_in_every_type():
    assert candidates(COUNTS.astype(float)) == candidates(COUNTS.astype(np.int16))
    assert candidates(pd.Series(COUNTS, dtype="Int64")) == candidates(COUNTS)


def test_zeros_beyond_those_of_a_poisson_likelihood_propose_inflated_ones():
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


def test_censored_times_have_likelihoods_of_their_own():
    assert candidates(REALS**2, censored=True) == SURVIVAL


def test_every_candidate_accepts_the_values_that_proposed_it():
    for y in (REALS, REALS**2, np.append(REALS**2, 0), stats.norm.cdf(REALS), COUNTS, COUNTS + 1):
        for likelihood in candidates(y):
            create(likelihood).check(torch.tensor(np.asarray(y, dtype=float)))
