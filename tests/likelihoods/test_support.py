import math

import pytest
import torch

from ansatz.errors import DataError
from ansatz.likelihoods import create, matching_likelihoods
from ansatz.likelihoods.support import refuse_outside

UNIVARIATE = [
    "bernoulli",
    "categorical",
    "ordinal",
    "poisson",
    "negative_binomial",
    "zero_inflated_poisson",
    "zero_inflated_negative_binomial",
    "hurdle_poisson",
    "hurdle_negative_binomial",
    "beta",
    "zero_one_inflated_beta",
    "gamma",
    "log_normal",
    "weibull",
    "inverse_gaussian",
    "exponential",
    "generalized_pareto",
    "tweedie",
    "normal",
    "laplace",
    "student_t",
    "normal_mixture",
    "quantiles",
]


@pytest.mark.parametrize(
    "values, narrowest",
    [
        ([0.0, 1.0], "bernoulli"),
        ([0.0, 7.0], "categorical"),
        ([0.5, 0.7], "beta"),
        ([0.5, 1.0], "zero_one_inflated_beta"),
        ([0.0, 0.3], "zero_one_inflated_beta"),
        ([0.5, 7.0], "gamma"),
        ([0.0, 7.5], "tweedie"),
        ([-1.0], "normal"),
        ([-100.0, 0.5], "normal"),
    ],
)
def test_the_likelihoods_that_fit_accept_the_values_and_the_others_refuse_them(values, narrowest):
    y = torch.tensor(values)
    candidates = matching_likelihoods(y)
    assert candidates[0] == narrowest
    assert len(set(candidates)) == len(candidates)
    assert set(candidates) <= {*UNIVARIATE, "von_mises"}
    for name in UNIVARIATE:
        if name in candidates:
            create(name).check(y)
        else:
            with pytest.raises(DataError):
                create(name).check(y)


@pytest.mark.parametrize(
    "values, angles",
    [([-3.0, 3.0], True), ([0.0, 6.28], True), ([0.0, 359.0], False), ([-6.0, 6.0], False)],
)
def test_angles_are_the_last_hint_where_all_values_could_be_radians(values, angles):
    candidates = matching_likelihoods(torch.tensor(values))
    assert ("von_mises" in candidates) == angles
    assert (candidates[-1] == "von_mises") == angles


def test_a_rounded_pi_is_still_an_angle():
    assert "von_mises" in matching_likelihoods(
        torch.tensor([math.pi, -math.pi], dtype=torch.float32)
    )


def test_an_error_names_six_likelihoods_at_most_and_normal_among_them():
    y = torch.tensor([0.0, 1.0])
    with pytest.raises(DataError) as caught:
        refuse_outside(y == 0, y, "Numbers must be > 0")
    named = str(caught.value).split("all of y: ")[1]
    assert named.startswith("bernoulli, categorical, ordinal, poisson, negative_binomial, normal")
    assert named.endswith(f"and {len(matching_likelihoods(y)) - 6} more.")
    y = torch.tensor([-10.0, 1.0])
    with pytest.raises(
        DataError, match=r"y: normal, laplace, student_t, normal_mixture, quantiles"
    ):
        refuse_outside(y < 0, y, "Numbers must be > 0")


def test_no_likelihood_fits_what_is_not_finite():
    y = torch.tensor([1.0, torch.nan])
    assert matching_likelihoods(y) == []
    with pytest.raises(
        DataError, match=r"got nan at y\[1\]\. No likelihood produces it: drop the row"
    ):
        refuse_outside(y.isnan(), y, "Numbers must be finite")
