import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from ansatz.errors import DataError, UsageError
from ansatz.likelihoods import Censored, Cox, DiscreteHazard, Gamma, Normal, Weibull
from ansatz.outcomes.survival_likelihood import (
    survival_likelihood,
    survival_target,
    times_and_causes,
)
from ansatz.outcomes.survival_times import survival_outcomes

INF = np.inf


def test_any_likelihood_of_numbers_takes_censoring():
    made = survival_likelihood("weibull")
    assert isinstance(made, Censored) and isinstance(made.likelihood, Weibull)
    assert isinstance(survival_likelihood(Gamma()).likelihood, Gamma)


def test_likelihoods_of_survival_are_taken_as_they_are():
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


def test_several_causes_need_a_likelihood_that_knows_them():
    with pytest.raises(DataError, match=r"2 causes\. weibull knows one: take discrete_hazard"):
        survival_likelihood("weibull", causes=2)
    with pytest.raises(DataError, match="cox knows one"):
        survival_likelihood(Cox(), causes=3)


def test_likelihoods_without_an_order_are_refused():
    with pytest.raises(UsageError, match="no order"):
        survival_likelihood("categorical")


def test_targets_are_what_each_likelihood_takes():
    rows = survival_outcomes([5.0, 8.0], event=[1, 0], entry=[1.0, np.nan])
    assert_array_equal(
        survival_target(survival_likelihood("gamma"), rows), [[5, 5, 1], [8, INF, -INF]]
    )
    assert_array_equal(survival_target(survival_likelihood("cox"), rows), [[5, 1, 1], [8, 0, -INF]])


@pytest.mark.parametrize("likelihood", ["cox", "discrete_hazard"])
def test_intervals_need_a_likelihood_with_a_density(likelihood):
    rows = survival_outcomes([5.0, 6.0], upper=[5.0, 8.0])
    with pytest.raises(DataError, match=rf"{likelihood} takes events .* interval at y\[1\]"):
        survival_target(survival_likelihood(likelihood), rows)


def test_a_time_below_0_is_refused_by_likelihoods_of_positive_times_even_if_censored():
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


def test_the_likelihood_checks_what_it_was_given():
    y = torch.from_numpy(survival_target(Cox(), survival_outcomes([1.0, 2.0], event=[1, 0])))
    Cox().check(y)
