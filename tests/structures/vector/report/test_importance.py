"""Associations against scipy; importance of what a model is known to use."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ansatz import Regressor
from ansatz.report import gather
from ansatz.structures.vector.report.importance import associations, group_columns, importances


def test_numbers_go_together_by_spearman():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2)) @ [[1, 0.8], [0, 0.6]]
    truth = abs(stats.spearmanr(x[:, 0], x[:, 1]).statistic)
    assert associations(x, [False, False])[0, 1] == pytest.approx(truth)


def test_levels_go_together_by_cramers_v():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 500)
    b = np.where(rng.random(500) < 0.6, a, rng.integers(0, 3, 500))
    table = pd.crosstab(a, b).to_numpy()
    truth = stats.contingency.association(table, method="cramer")
    found = associations(np.column_stack([a, b]).astype(float), [True, True])[0, 1]
    assert found == pytest.approx(truth, abs=0.01)  # corrected for bias, which 500 rows make small
    alone = associations(rng.integers(0, 9, (200, 2)).astype(float), [True, True])[0, 1]
    assert alone < 0.15


def test_a_level_and_a_number_go_together_by_the_correlation_ratio():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 4, 400)
    both = np.column_stack([level, level * 10 + rng.normal(size=400)]).astype(float)
    assert associations(both, [True, False])[0, 1] > 0.95
    noise = np.column_stack([level, rng.normal(size=400)]).astype(float)
    assert associations(noise, [True, False])[0, 1] < 0.15


def test_groups_are_joined_through_others():
    strength = np.eye(4)
    strength[0, 1] = strength[1, 0] = strength[1, 2] = strength[2, 1] = 0.8
    assert group_columns(strength) == [[0, 1, 2], [3]]


def test_the_rise_of_the_loss_is_what_the_coefficient_says():
    """Shuffling x of y = b x + e under a normal of sd s raises the nll by b^2 var(x) / s^2."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2_000, 2))
    y = 0.5 * x[:, 0] + rng.normal(size=2_000)
    found = importances(gather(Regressor("normal", network="linear").fit(x, y), x, y))
    assert [item.columns for item in found] == [("x1",), ("x2",)]
    assert found[0].rise == pytest.approx(0.25, abs=0.05)
    assert abs(found[1].rise) < 0.01


def test_columns_that_stand_in_for_each_other_are_shuffled_together():
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    frame = pd.DataFrame(
        {"a": a, "copy": a + 0.01 * rng.normal(size=400), "k": rng.choice(["u", "v"], 400)}
    )
    y = a + rng.normal(size=400)
    found = importances(gather(Regressor("normal", network="linear").fit(frame, y), frame, y))
    assert found[0].columns == ("a", "copy")
