import numpy as np
import pytest
import torch
from statsmodels.duration.survfunc import SurvfuncRight, survdiff

from ansatz.metrics import log_rank, median_follow_up


def sample(ties, groups=3, n=150):
    rng = np.random.default_rng(3)
    group = rng.integers(0, groups, n)
    time = rng.exponential(1 + 0.5 * group)
    end = rng.uniform(0.1, 4, n)
    seen = np.minimum(time, end)
    return (np.ceil(seen * 5) / 5 if ties else seen), (time <= end).astype(float), group


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("groups", [2, 3])
def test_the_statistic_is_that_of_statsmodels(ties, groups):
    time, event, group = sample(ties, groups)
    found = log_rank(time, event, group)
    chi2, p = survdiff(time, event, group)
    assert found.chi2 == pytest.approx(chi2, rel=1e-9)
    assert found.p_value == pytest.approx(p, rel=1e-8)
    assert float(found.observed.sum()) == pytest.approx(float(found.expected.sum()))


def test_a_weight_of_two_is_the_row_twice():
    time, event, group = sample(True)
    weight = 1 + np.arange(len(time)) % 2
    one = log_rank(time, event, group, weight)
    two = log_rank(*(np.repeat(a, weight) for a in (time, event, group)))
    assert one.chi2 == pytest.approx(two.chi2)


def test_an_entry_before_all_times_changes_nothing_and_a_late_one_does():
    time, event, group = sample(False)
    plain = log_rank(time, event, group).chi2
    assert log_rank(time, event, group, entry=np.zeros_like(time)).chi2 == pytest.approx(plain)
    assert log_rank(time, event, group, entry=time / 2).chi2 != pytest.approx(plain)


def test_the_median_follow_up_is_that_of_the_reversed_curve():
    time, event, _ = sample(False)
    curve = SurvfuncRight(time, 1 - event)
    assert median_follow_up(time, event) == pytest.approx(curve.quantile(0.5))
    assert median_follow_up(torch.tensor([1.0, 2.0]), torch.tensor([1, 1])) == np.inf
