import numpy as np
import pandas as pd
import pytest

from ansatz.data import describe_columns, infer_columns
from ansatz.errors import DataError, UsageError

N = 40
RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=N)
KINDS = {
    "float": (NOISE, "numeric"),
    "few whole numbers": (np.arange(N) % 4, "numeric"),
    "numbers with gaps": (np.where(NOISE > 0, NOISE, np.nan), "numeric"),
    "pandas Int64 with gaps": (pd.array([1, None, 3, 4] * 10, dtype="Int64"), "numeric"),
    "integers beyond 64 bits": ([2**70 + k for k in range(N)], "numeric"),
    "words": (["a", "b"] * 20, "categorical"),
    "words with gaps": (["a", None, "b", "a"] * 10, "categorical"),
    "booleans": ([True, False] * 20, "categorical"),
    "pandas category": (pd.Categorical(["a", "b"] * 20), "categorical"),
    "pandas ordered": (pd.Categorical(["a", "b"] * 20, ["b", "a"], ordered=True), "ordered"),
    "ISO dates": ([f"2024-01-{1 + k % 28:02d}" for k in range(N)], "date"),
    "ISO times": ([f"2024-01-01T{k % 24:02d}:30:00Z" for k in range(N)], "date"),
    "datetime64": (pd.date_range("2024-01-01", periods=N), "date"),
    "Python dates": (list(pd.date_range("2024-01-01", periods=N).date), "date"),
    "dates with points": (["31.12.2021", "1.2.2021"] * 20, "date"),
    "American dates": (["12/31/2021", "1/2/2021"] * 20, "date"),
    "amounts": (["$87,889.17", "$5"] * 20, "numeric"),
    "percents": (["64.5%", "3%"] * 20, "numeric"),
    "one number": (np.full(N, 7), "constant"),
    "one word": (["a"] * N, "constant"),
    "nothing": ([None] * N, "constant"),
    "nothing, as numbers": (np.full(N, np.nan), "constant"),
    "one number and gaps": ([7.0, None] * 20, "numeric"),
    "row numbers": (np.arange(1, N + 1), "id"),
    "distinct codes": ([f"K{k:03d}" for k in range(N)], "id"),
    "consecutive years": (np.arange(1960, 1960 + N), "numeric"),
}


@pytest.mark.parametrize("cells, role", KINDS.values(), ids=KINDS)
def test_the_role_is_what_a_statistician_would_say(cells, role):
    frame = pd.DataFrame({"u": cells, "other": NOISE})
    assert infer_columns(frame)[0].role == role


@pytest.mark.parametrize("name", ["id", "PassengerId", "customer_id", "row_number", "Unnamed: 0"])
def test_whole_numbers_called_id_are_an_id(name):
    ids = RNG.permutation(10_000)[:N]
    assert infer_columns({name: ids, "x": NOISE})[0].role == "id"


def test_repeated_ids_are_groups():
    ids = np.repeat(np.arange(100, 130), 3)
    (column, _) = infer_columns({"patient_id": ids, "x": np.random.default_rng(1).normal(size=90)})
    assert column.role == "id" and "--group" in column.note


def test_a_counter_that_is_time_or_the_only_feature_stays():
    assert infer_columns({"week": np.arange(N), "x": NOISE})[0].role == "numeric"
    assert infer_columns({"u": np.arange(N)})[0].role == "numeric"


def test_free_text_is_refused_with_advice():
    texts = [f"the house number {k} is old and nice" for k in range(N)]
    with pytest.raises(DataError, match=r"free text: 'remark'.*--drop remark.*categorical"):
        infer_columns({"remark": texts, "x": NOISE})
    columns = infer_columns({"remark": texts, "x": NOISE}, drop=["remark"])
    assert columns[0].role == "dropped"
    columns = infer_columns({"remark": texts, "x": NOISE}, roles={"remark": "categorical"})
    assert len(columns[0].levels) == N


def test_roles_can_be_corrected():
    frame = {"g": ["lo", "hi", "mid"], "n": [3, 1, 2], "i": [1, 2, 3]}
    g, n, i = infer_columns(frame, roles={"g": "lo<mid<hi", "n": "ordered", "i": "categorical"})
    assert g.levels == ("lo", "mid", "hi") and g.role == "ordered"
    assert n.levels == ("1", "2", "3") and n.role == "ordered"
    assert i.role == "categorical"
    g, *_ = infer_columns(frame, roles={"g": "drop"})
    assert g.role == "dropped" and not g.used


def test_a_wrong_correction_is_named():
    with pytest.raises(UsageError, match=r"no column is called 'ag'. Did you mean 'age'"):
        infer_columns({"age": [1, 2]}, roles={"ag": "numeric"})
    with pytest.raises(UsageError, match="unknown role 'number'"):
        infer_columns({"age": [1, 2]}, roles={"age": "number"})
    with pytest.raises(UsageError, match="needs its order"):
        infer_columns({"g": ["a", "b"]}, roles={"g": "ordered"})
    with pytest.raises(DataError, match="row 2, column 'g': 'b' is not among"):
        infer_columns({"g": ["a", "b"]}, roles={"g": ["a", "c"]})


def test_cells_that_are_lists_are_refused():
    with pytest.raises(DataError, match="column 'v' holds a list per row"):
        infer_columns({"v": pd.Series([[1], [2]]), "x": [1, 2]})


def test_an_impossible_date_is_named():
    with pytest.raises(DataError, match=r"row 2, column 'd'.*'2023-02-30'"):
        infer_columns({"d": ["2023-02-28", "2023-02-30"], "x": [1, 2]})


def test_descriptions_count_levels_and_gaps():
    rows = describe_columns(infer_columns({"s": ["a", None, "b"], "x": [1.0, 2.0, 3.0]}))
    assert rows == [("s", "categorical", "2 levels: a, b; 1 missing"), ("x", "numeric", "")]


def test_the_table_is_not_modified():
    frame = pd.DataFrame({"s": ["a", None, "b"], 5: [1, 2, 3]}, index=[3, 1, 2])
    before = frame.copy()
    infer_columns(frame)
    pd.testing.assert_frame_equal(frame, before)
