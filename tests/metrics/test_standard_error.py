"""Standard errors against statsmodels, DeLong's own formula and the bootstrap."""

import numpy as np
import pytest
import statsmodels.api as sm
import torch
from torch.testing import assert_close

from ansatz.metrics import (
    auc,
    auc_estimate,
    influence_error,
    mean_estimate,
    r2_estimate,
    rmse_estimate,
    standard_error,
)


@pytest.fixture
def values():
    return torch.from_numpy(np.random.default_rng(0).gamma(2.0, size=120))


def test_independent_rows_have_sd_over_root_n(values):
    found = influence_error(mean_estimate(values).influence)
    assert found == pytest.approx(float(values.std()) / 120**0.5)
    assert found == pytest.approx(float(standard_error(values)))


def test_a_weight_of_two_is_the_row_twice(values):
    weight = torch.from_numpy(np.random.default_rng(1).integers(0, 4, 120)).double()
    twice = values.repeat_interleave(weight.long())
    for estimate in (mean_estimate, lambda v, w=None: rmse_estimate(v, torch.zeros_like(v), w)):
        a, b = estimate(values, weight), estimate(twice)
        assert a.value == pytest.approx(b.value)
        assert influence_error(a.influence, weight) == pytest.approx(influence_error(b.influence))


def test_groups_agree_with_statsmodels_clusters(values):
    group = np.random.default_rng(2).integers(0, 15, 120)
    ols = sm.OLS(values.numpy(), np.ones(120))
    truth = ols.fit(cov_type="cluster", cov_kwds={"groups": group, "use_correction": False}).bse[0]
    found = influence_error(mean_estimate(values).influence, group=torch.from_numpy(group))
    assert found == pytest.approx(truth * (15 / 14) ** 0.5)


def test_time_agrees_with_statsmodels_newey_west(values):
    walk = values.cumsum(0) / 10
    kernel = {"maxlags": int(4 * 1.2 ** (2 / 9)), "use_correction": True}
    truth = sm.OLS(walk.numpy(), np.ones(120)).fit(cov_type="HAC", cov_kwds=kernel).bse[0]
    order = torch.randperm(120)
    found = influence_error(mean_estimate(walk).influence[order], time=torch.arange(120)[order])
    assert found == pytest.approx(truth)


def test_rows_of_one_time_are_summed_first(values):
    time = torch.arange(120) // 4
    sums = values.reshape(30, 4).sum(1)
    found = influence_error(mean_estimate(values).influence, time=time)
    alone = influence_error(mean_estimate(sums).influence, time=torch.arange(30))
    assert found == pytest.approx(alone * 30 / 120)


def delong(y, *scores):
    """Variance of the difference of areas, pair by pair as DeLong et al. write it."""
    areas, v10, v01 = [], [], []
    for score in scores:
        x, z = score[y == 1], score[y == 0]
        kernel = (x[:, None] > z).astype(float) + 0.5 * (x[:, None] == z)
        areas.append(kernel.mean())
        v10.append(kernel.mean(1))
        v01.append(kernel.mean(0))
    s = np.cov(np.array(v10)) / (y == 1).sum() + np.cov(np.array(v01)) / (y == 0).sum()
    return areas, np.atleast_2d(s)


def test_auc_has_delongs_error_and_so_has_a_difference():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 80)
    a, b = np.round(y + rng.normal(size=80), 1), np.round(y + 2 * rng.normal(size=80), 1)
    areas, s = delong(y, a, b)
    one, two = (auc_estimate(torch.from_numpy(y), torch.from_numpy(score)) for score in (a, b))
    assert one.value == pytest.approx(areas[0])
    assert influence_error(one.influence) == pytest.approx(s[0, 0] ** 0.5)
    gap = one.minus(two)
    assert gap.value == pytest.approx(areas[0] - areas[1])
    truth = (s[0, 0] + s[1, 1] - 2 * s[0, 1]) ** 0.5
    assert influence_error(gap.influence) == pytest.approx(truth)


@pytest.mark.parametrize("estimate", [rmse_estimate, r2_estimate, auc_estimate])
def test_the_bootstrap_agrees(estimate):
    rng = np.random.default_rng(4)
    y = torch.from_numpy((rng.normal(size=400) > 0).astype(float))
    point = torch.from_numpy(0.5 * y.numpy() + rng.normal(size=400) / 2)
    draws = [
        estimate(y[rows], point[rows]).value
        for rows in torch.from_numpy(rng.integers(0, 400, (400, 400)))
    ]
    found = influence_error(estimate(y, point).influence)
    # The error of a bootstrap sd from 400 draws is 1 / sqrt(800) = 3.5 %.
    assert found == pytest.approx(np.std(draws), rel=0.14)


def test_influences_have_mean_zero(values):
    y = (values > 2).double()
    for estimate in (mean_estimate(values), r2_estimate(values, y), auc_estimate(y, values**0.5)):
        assert_close(estimate.influence.mean(), torch.tensor(0.0), atol=1e-12, rtol=0)
    assert auc_estimate(y, values).value == pytest.approx(float(auc(y, values)))


def test_what_cannot_be_reported_is_nan():
    assert np.isnan(influence_error(torch.zeros(1)))
    assert np.isnan(influence_error(torch.zeros(3), group=torch.zeros(3)))
    assert np.isnan(auc_estimate(torch.ones(3), torch.rand(3)).value)
    assert np.isnan(r2_estimate(torch.ones(3), torch.rand(3)).value)
