import numpy as np
import pandas as pd
import pytest

from ansatz.data import find_duplicates, find_leaks, infer_columns, row_keys
from ansatz.data.leakage import split_warnings

RNG = np.random.default_rng(0)
N = 300
BASE = pd.DataFrame(RNG.normal(size=(N, 4)), columns=list("abcd"))
BASE["y"] = BASE["a"] + 0.5 * RNG.normal(size=N)


def leaks(frame, target="y", **options):
    return find_leaks(frame, target, infer_columns(frame.drop(columns=target)), **options)


def test_an_honest_table_is_not_suspected():
    assert leaks(BASE) == []


@pytest.mark.parametrize("bend", [lambda y: y, lambda y: 3 - 2 * y, np.exp, lambda y: -(y**3)])
def test_a_monotone_copy_of_the_target_is_named(bend):
    (said,) = leaks(BASE.assign(copy=bend(BASE["y"])))
    assert "column 'copy' gives the target 'y' away" in said and "--drop copy" in said


def test_parts_that_add_up_to_the_target_are_named():
    (said,) = leaks(BASE.assign(y=2 * BASE["b"] + 3 * BASE["d"]))
    assert said.startswith("columns 'b' and 'd' together give the target 'y' (linear R2 1.0000)")


def test_noise_of_a_tenth_percent_is_the_boundary():
    signal = BASE["b"] + BASE["c"]
    noise = RNG.normal(size=N) * signal.std()
    assert leaks(BASE.assign(y=signal + 0.01 * noise)) != []  # R2 = 0.9999
    assert leaks(BASE.assign(y=signal + 0.1 * noise)) == []  # R2 = 0.99


def test_another_name_for_each_class_is_named():
    label = np.where(BASE["a"] > 0, "yes", "no")
    frame = BASE.assign(y=label, code=np.where(BASE["a"] > 0, 7, 3))
    (said,) = leaks(frame)
    assert "column 'code'" in said


def test_few_rows_or_many_columns_do_not_look_like_a_leak():
    wide = pd.DataFrame(RNG.normal(size=(40, 200)), columns=[f"x{k}" for k in range(200)])
    assert leaks(wide.assign(y=RNG.normal(size=40))) == []
    assert leaks(BASE.iloc[:5]) == []


def test_dates_and_repeated_ids_without_a_split_are_noted():
    frame = BASE.assign(
        day=pd.date_range("2024-01-01", periods=N).astype(str), patient_id=np.arange(N) // 3
    )
    said = leaks(frame)
    assert any("--time day" in s for s in said) and any("--group patient_id" in s for s in said)
    columns = infer_columns(frame.drop(columns="y"))
    assert split_warnings(columns, group="patient_id", time="day") == []


def test_missing_and_huge_features_do_not_disturb():
    frame = BASE.assign(gap=np.where(BASE["a"] > 0, BASE["b"], np.nan), huge=1e200 * BASE["c"])
    assert leaks(frame) == []


def test_duplicates_between_two_files_are_counted():
    train = pd.DataFrame({"a": [1, 2, 3], "s": ["x", "y", "z"]})
    test = pd.DataFrame({"s": ["x", "q", "y", "y"], "a": [1.0, 1.0, 2.0, np.nan]})
    assert find_duplicates(row_keys(train), row_keys(test)).tolist() == [True, False, True, False]


def test_duplicate_rows_do_not_make_a_measurement_stand_for_its_outcome():
    assert leaks(pd.concat([BASE] * 3, ignore_index=True)) == []
