import numpy as np
import pandas as pd

from ansatz.data import row_keys
from ansatz.fitting.split import are_duplicates, describe_duplicates, warn_of_duplicates


def test_duplicates_share_a_key_wherever_they_stand():
    frame = pd.DataFrame({"a": [1.0, 2.0, 1.0, 1.0], "b": ["u", "u", "u", "v"]})
    keys = row_keys(frame, np.array([0.0, 0, 0, 0]), seed=0)
    assert keys[0] == keys[2] and len(set(keys)) == 3
    assert len(set(row_keys(frame, np.array([0.0, 0, 1, 0]), seed=0))) == 4


def test_duplicates_are_counted_once_each():
    keys = np.array([1, 1, 1, 2], dtype=np.uint64)
    assert describe_duplicates(keys)[0].startswith("2 of 4 rows are duplicates")
    assert describe_duplicates(np.array([1, 2], dtype=np.uint64)) == []


def test_evaluated_duplicates_are_reported_with_the_metrics_without_them():
    mask = are_duplicates(np.array([1, 2], dtype=np.uint64), np.array([2, 3, 4], dtype=np.uint64))
    assert mask.tolist() == [True, False, False]
    (told,) = warn_of_duplicates(mask, {"nll": 2.0})
    assert "1 of 3 evaluated rows (33 %)" in told and "nll 2" in told
    assert warn_of_duplicates(np.zeros(3, dtype=bool), None) == []
    assert "no row is left" in warn_of_duplicates(np.ones(3, dtype=bool), None)[0]
