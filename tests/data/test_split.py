import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansatz.data import fold_numbers, row_keys, split_rows
from ansatz.errors import DataError, UsageError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 3))


def frame(n=200):
    rng = np.random.default_rng(1)
    return pd.DataFrame({"a": rng.integers(0, 5, n), "s": rng.choice(["u", "v", None], n)})


def test_keys_are_equal_exactly_where_rows_are_equal():
    table = frame()
    keys = row_keys(table)
    contents = [tuple(map(str, row)) for row in table.itertuples(index=False)]
    assert len(set(keys.tolist())) == len(set(contents))
    assert all(len(set(keys[[c == d for d in contents]])) == 1 for c in set(contents))


def test_keys_do_not_depend_on_order_or_storage():
    table = frame()
    keys, order = row_keys(table, seed=3), RNG.permutation(200)
    np.testing.assert_array_equal(row_keys(table.iloc[order], seed=3), keys[order])
    np.testing.assert_array_equal(row_keys(table[["s", "a"]], seed=3), keys)
    np.testing.assert_array_equal(row_keys(table.astype({"a": float}), seed=3), keys)
    np.testing.assert_array_equal(row_keys(X.astype("f4")), row_keys(X.astype("f4").astype("f8")))
    np.testing.assert_array_equal(row_keys(np.asfortranarray(X)), row_keys(X))
    np.testing.assert_array_equal(row_keys([[0.0, np.nan]]), row_keys([[-0.0, -np.nan]]))


def test_keys_are_the_same_in_every_process():
    """Fixed numbers: a split of today is a split of tomorrow."""
    assert row_keys({"a": [1], "s": ["u"]}, seed=0).tolist() == [1926724532802714600]


def test_columns_are_not_interchangeable():
    assert row_keys([[1.0, 2.0]]) != row_keys([[2.0, 1.0]])
    assert row_keys({"a": [1.0]}) != row_keys({"b": [1.0]})
    assert row_keys([[1.0]], [2.0]) != row_keys([[2.0]], [1.0])


@pytest.mark.parametrize("n", [3, 4, 10, 57, 500])
@pytest.mark.parametrize(
    "test, valid", [(0.2, 0.1), (0.0, 0.1), (0.3, 0.0), (0.0, 0.0), (0.5, 0.4)]
)
def test_distinct_rows_meet_the_fractions_and_none_is_empty_or_lost(n, test, valid):
    split = split_rows(X[:n], seed=5, test=test, valid=valid)
    np.testing.assert_array_equal(np.sort(np.concatenate(split)), np.arange(n))
    for part, share in zip(split, (1 - test - valid, valid, test), strict=True):
        assert (len(part) > 0) == (share > 1e-12)
        assert abs(len(part) - share * n) <= 2


@given(st.lists(st.integers(0, 8), min_size=3, max_size=60), st.integers(0, 100))
@settings(max_examples=80, deadline=None)
def test_duplicates_fall_on_one_side(values, seed):
    distinct = set(values)
    if len(distinct) < 3:
        return
    split = split_rows({"v": values}, seed=seed)
    sides = [{values[k] for k in part} for part in split]
    assert all(sides)
    assert sum(len(side) for side in sides) == len(distinct)
    folds = fold_numbers(row_keys({"v": values}), 2, seed=seed)
    assert all(
        len({f for f, v in zip(folds, values, strict=True) if v == d}) == 1 for d in distinct
    )


def test_the_split_follows_the_content_not_the_order():
    order = RNG.permutation(500)
    split, shuffled = split_rows(X, seed=2), split_rows(X[order], seed=2)
    assert set(order[shuffled.test]) == set(split.test)
    assert set(order[shuffled.valid]) == set(split.valid)


def test_seeds_give_independent_splits():
    a, b = (set(split_rows(X, seed=seed, test=0.2).test.tolist()) for seed in (0, 1))
    # The overlap of two random fifths of 500 is 20 +- 3.6.
    assert abs(len(a & b) - 20) < 5 * 3.6


def test_the_hash_is_uniform():
    """Each row is in the test part with probability 0.2, whatever its content."""
    times = np.zeros(500)
    for seed in range(200):
        times[split_rows(X, seed=seed).test] += 1
    deviation = (0.2 * 0.8 / 200) ** 0.5
    assert np.abs(times / 200 - 0.2).max() < 5 * deviation
    assert np.std(times / 200) == pytest.approx(deviation, rel=0.2)


def test_groups_fall_on_one_side():
    group = np.array([f"g{k % 23}" for k in range(500)])
    for given_group in (group, "g"):
        rows = pd.DataFrame(X).assign(g=group)
        split = split_rows(rows, seed=1, group=given_group)
        sides = [set(group[part]) for part in split]
        assert sum(map(len, sides)) == 23 and all(sides)
        folds = fold_numbers(row_keys(X), 5, seed=1, group=group)
        assert all(len(set(folds[group == g])) == 1 for g in set(group))


def test_time_goes_forward():
    day = pd.Series(pd.date_range("2024-01-01", periods=500)).sample(frac=1, random_state=0)
    for time in (day.to_numpy(), day.astype(str).to_numpy(), day.to_numpy().astype(np.int64)):
        split = split_rows(X, time=time, test=0.2, valid=0.1)
        assert max(time[split.train]) < min(time[split.valid])
        assert max(time[split.valid]) < min(time[split.test])
        assert [len(part) for part in split] == [350, 50, 100]


def test_rows_of_one_moment_stay_together():
    time = np.repeat(np.arange(7), 10)
    split = split_rows(X[:70], time=time)
    assert not set(time[split.train]) & set(time[split.test])


def test_a_weight_is_a_number_of_repetitions():
    times = RNG.integers(1, 5, 500)
    weighted = split_rows(X, seed=4, weight=times)
    repeated = split_rows(np.repeat(X, times, axis=0), seed=4)
    owner = np.repeat(np.arange(500), times)
    for a, b in zip(weighted, repeated, strict=True):
        assert set(a) == set(owner[b])


def test_folds_are_as_even_as_can_be():
    assert np.bincount(fold_numbers(X[:103], 5, seed=0)).tolist() == [21, 21, 21, 20, 20]
    group = np.repeat(np.arange(20), np.arange(1, 21))
    sizes = np.bincount(fold_numbers(X[: len(group)], 4, group=group))
    assert sizes.sum() == 210 and sizes.max() <= 1.05 * 210 / 4


def test_impossible_splits_are_refused():
    with pytest.raises(DataError, match="2 distinct rows or groups cannot be split into 3 parts"):
        split_rows(np.array([[1.0], [2.0], [1.0]]))
    with pytest.raises(UsageError, match="sum to less than 1"):
        split_rows(X, test=0.7, valid=0.3)
    with pytest.raises(UsageError, match="no column is called 'g'"):
        split_rows(frame(), group="g")
    with pytest.raises(DataError, match="row 2 has none"):
        split_rows(X[:3], time=[1.0, np.nan, 2.0])
    with pytest.raises(UsageError, match="from 2 to the 3 distinct rows, got 4"):
        fold_numbers(X[:3], 4)


@pytest.mark.parametrize("seed", range(5))
def test_by_group_and_time_no_group_leaks_and_the_test_is_later(seed):
    generator = np.random.default_rng(seed)
    group = generator.integers(0, 40, 400)
    time = 5 * group + generator.integers(0, 60, 400)  # groups begin at times of their own
    split = split_rows(np.arange(400, dtype=np.uint64), group=group, time=time, test=0.2, valid=0.1)
    sides = [set(group[part]) for part in split]
    assert all(sides)
    assert not (sides[0] & sides[1] or sides[0] & sides[2] or sides[1] & sides[2])
    assert time[split.train].max() < time[split.valid].min()
    assert time[split.valid].max() < time[split.test].min()
    # Nothing else is left out: only rows of earlier groups beyond the begin of a later part.
    cut = time[split.valid].min()
    gone = np.setdiff1d(np.arange(400), np.concatenate(split))
    assert (time[gone] >= cut).all()
    assert set(group[gone]) <= sides[0] | sides[1]


def test_by_group_and_time_without_overlap_every_row_has_a_part():
    group = np.repeat(np.arange(20), 5)
    split = split_rows(np.arange(100, dtype=np.uint64), group=group, time=np.arange(100), test=0.2)
    assert sum(map(len, split)) == 100
    assert split.test.tolist() == list(range(80, 100))


def test_groups_that_begin_together_cannot_be_tested_later():
    rows = {"who": np.tile(np.arange(10), 6), "t": np.repeat(np.arange(6), 10)}
    with pytest.raises(DataError, match=r"begin at 1 moments.*--time alone"):
        split_rows(rows, group="who", time="t")
