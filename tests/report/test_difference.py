"""Standard errors of paired differences against statsmodels, the formula and simulation."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import stats

from ansatz.errors import UsageError
from ansatz.report.difference import corrected_error, moments, paired_difference


def scores(rows=150, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=rows), rng.normal(size=rows)


def ols(d, **options):
    return sm.OLS(d, np.ones(len(d))).fit(**options)


def test_independent_rows_have_the_paired_t_tests_standard_error():
    a, b = scores()
    found, test = paired_difference(a, b), stats.ttest_rel(a, b)
    assert found.mean / found.error == pytest.approx(test.statistic)
    assert found.method == "rows" and found.rows == found.units == 150


def test_groups_give_statsmodels_clustered_standard_error():
    a, b = scores()
    group = np.random.default_rng(1).integers(0, 20, size=150)
    fitted = ols(a - b, cov_type="cluster", cov_kwds={"groups": group})
    assert paired_difference(a, b, group=group).error == pytest.approx(fitted.bse[0])
    names = np.array([f"g{k}" for k in group], dtype=object)
    assert paired_difference(a, b, group=names).error == pytest.approx(fitted.bse[0])


def test_order_in_time_gives_statsmodels_newey_west():
    a, b = scores()
    lags = int(4 * 1.5 ** (2 / 9))
    options = {"maxlags": lags, "use_correction": True}
    fitted = ols(a - b, cov_type="HAC", cov_kwds=options)
    order = np.random.default_rng(2).permutation(150)
    found = paired_difference(a[order], b[order], time=order)
    assert found.error == pytest.approx(fitted.bse[0])
    assert f"{lags} lags" in found.method


def test_rows_of_one_moment_are_added_before_lags_are_taken():
    a, b = scores()
    time = np.repeat(np.arange(50), 3)
    d = a - b
    sums = (d - d.mean()).reshape(50, 3).sum(1)
    lags = int(4 * 0.5 ** (2 / 9))
    total = sums @ sums
    for lag in range(1, lags + 1):
        total += 2 * (1 - lag / (lags + 1)) * (sums[lag:] * sums[:-lag]).sum()
    expected = np.sqrt(50 / 49 * total) / 150
    assert paired_difference(a, b, time=time).error == pytest.approx(expected)


def test_a_weight_of_two_is_the_row_twice():
    a, b = scores(40)
    weight = np.random.default_rng(3).integers(1, 4, size=40)
    group = np.arange(40) % 7
    whole, twice = (np.repeat(part, weight) for part in (a, b))
    for options, repeated in (({}, {}), ({"group": group}, {"group": np.repeat(group, weight)})):
        found = paired_difference(a, b, weight, **options)
        expected = paired_difference(whole, twice, **repeated)
        assert_allclose([found.mean, found.error], [expected.mean, expected.error])


def test_with_groups_and_time_the_larger_error_counts():
    a, b = scores()
    group, time = np.arange(150) % 10, np.arange(150)
    both = paired_difference(a, b, group=group, time=time).error
    single = [
        paired_difference(a, b, **{key: v}).error for key, v in (("group", group), ("time", time))
    ]
    assert both == max(single)


def test_dates_are_put_in_order():
    time = np.array(["2024-03-01", "2023-12-31", "2024-01-15"])
    assert moments(time).tolist() == [2, 0, 1]
    assert moments(pd.to_datetime(time)).tolist() == [2, 0, 1]


def test_a_row_without_a_group_is_a_group():
    a, b = scores(6)
    missing = np.array(["u", "u", None, None, "v", "v"], dtype=object)
    named = np.array(["u", "u", "w", "x", "v", "v"])
    assert paired_difference(a, b, group=missing) == paired_difference(a, b, group=named)


def test_the_worst_rows_and_their_share_are_reported():
    d = np.zeros(300)
    d[:3], d[3:13] = 10.0, 1.0
    found = paired_difference(d, 0 * d)
    assert found.worst_rows == 3 and found.worst_share == pytest.approx(30 / 40)


def test_infinite_scores_decide_and_have_no_standard_error():
    a, b = scores(50)
    b[3] = -np.inf
    found = paired_difference(a, b)
    assert found.mean == np.inf and found.error is None and found.is_clear
    a[3] = -np.inf  # on this row they are alike
    assert np.isfinite(paired_difference(a, b).mean)
    a[4] = -np.inf
    assert paired_difference(a, b).mean == -np.inf
    b[5] = -np.inf
    assert not paired_difference(a, b).is_clear


def test_scores_of_other_rows_are_refused():
    with pytest.raises(UsageError, match=r"equal length, got \(2,\) and \(3,\)"):
        paired_difference(np.zeros(2), np.zeros(3))


def size_of(draw, runs=800):
    """How often equal models are called different."""
    rng = np.random.default_rng(4)
    return np.mean([draw(rng) for _ in range(runs)])


def test_equal_models_are_reported_apart_in_about_one_case_of_twenty():
    def draw(rng):
        d = rng.standard_t(5, size=200)
        return paired_difference(d, 0 * d).is_clear

    # P(|t_199| > 2) = 0.047; its standard error over 800 runs is 0.0075
    assert abs(size_of(draw) - 0.047) < 4 * 0.0075


def test_clusters_keep_that_size_where_independent_rows_would_not():
    def draw(rng, cluster):
        group = np.repeat(np.arange(60), 5)
        d = np.repeat(rng.normal(size=60), 5) + 0.5 * rng.normal(size=300)
        return paired_difference(d, 0 * d, group=group if cluster else None).is_clear

    assert abs(size_of(lambda rng: draw(rng, True)) - 0.05) < 0.03
    assert size_of(lambda rng: draw(rng, False)) > 0.25


def test_newey_west_keeps_the_size_nearer_where_rows_follow_each_other():
    def draw(rng, ordered):
        e = rng.normal(size=400)
        d = np.convolve(e, np.full(4, 0.5))[:400]  # a moving average of 4
        return paired_difference(d, 0 * d, time=np.arange(400) if ordered else None).is_clear

    assert size_of(lambda rng: draw(rng, True)) < 0.13
    assert size_of(lambda rng: draw(rng, False)) > 0.25


def test_the_corrected_error_is_the_formula():
    d = np.array([0.1, 0.4, -0.2, 0.3])
    mean, error = corrected_error(d, tested=20, learned=80)
    assert mean == pytest.approx(0.15)
    assert error == pytest.approx(np.std(d, ddof=1) * np.sqrt(1 / 4 + 20 / 80))
    assert corrected_error([0.1], 1, 1) == (0.1, None)


def test_twenty_uci_splits_have_the_correction_of_1_8():
    """STATISTICS: with 90 % to learn from, sqrt(1/20 + 1/9) / sqrt(1/20) is 1.8."""
    d = np.random.default_rng(5).normal(size=20)
    naive = d.std(ddof=1) / np.sqrt(20)
    assert corrected_error(d, 10, 90)[1] / naive == pytest.approx(1.795, abs=1e-3)


def test_overlapping_splits_need_the_correction():
    """Means of random halves of one sample: the naive error is far too small, ours is not."""
    rng = np.random.default_rng(6)
    wrong, right = [], []
    for _ in range(300):
        sample = rng.normal(size=60)  # whose mean is 0
        splits = [sample[rng.permutation(60)[:12]].mean() for _ in range(40)]
        mean, error = corrected_error(splits, 12, 48)
        right.append(abs(mean) > 2 * error)
        wrong.append(abs(mean) > 2 * np.std(splits, ddof=1) / np.sqrt(40))
    assert np.mean(wrong) > 0.3 and np.mean(right) < 0.1
