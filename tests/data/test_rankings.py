import numpy as np
import pandas as pd
import pytest

from ansatz.data.rankings import read_rankings
from ansatz.errors import DataError, UsageError

CODES = [[1, 0, 2], [2, 1, -1], [0, 2, 1]]  # b a c / c b / a c b
LAYOUTS = {
    "places": pd.DataFrame(
        {"place1": ["b", "c", "a"], "place2": ["a", "b", "c"], "place3": ["c", None, "b"]}
    ),
    "items": pd.DataFrame({"a": [2, np.nan, 1], "b": [1, 2, 3], "c": [3, 1, 2]}),
    "orders": pd.DataFrame({"order": ["b>a>c", "c > b", "a>c>b"]}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_three_layouts_tell_the_same_rankings(layout):
    for given in ("auto", layout):
        found = read_rankings(LAYOUTS[layout], layout=given)
        assert found.codes.tolist() == CODES
        assert found.codes.dtype == np.int64
        assert (found.items, found.layout, found.notes) == (["a", "b", "c"], layout, [])


def test_commas_separate_an_order_too():
    assert read_rankings(["b, a,c", "c,b"]).codes.tolist() == CODES[:2]


def test_arrays_lists_and_series_are_read():
    expected = [[0, 1], [1, 0]]
    for table in (
        np.array([[10, 20], [20, 10]]),
        [["x", "y"], ["y", "x"]],
        pd.Series(["x>y", "y>x"]),
        {"place1": ["x", "y"], "place2": ["y", "x"]},
    ):
        assert read_rankings(table).codes.tolist() == expected
    assert read_rankings([["x", "y"], ["y"]]).codes.tolist() == [[0, 1], [1, -1]]
    assert read_rankings(np.array([[5, 7], [7, -1]])).codes.tolist() == [[0, 1], [1, -1]]


def test_numbers_stay_numbers_even_beside_gaps():
    found = read_rankings(pd.DataFrame({"rank1": [10, 9], "rank2": [9, np.nan]}))
    assert found.items == [9, 10]
    assert read_rankings(["10>9", "9"]).items == [9, 10]


def test_where_cells_allow_both_the_names_decide_and_a_note_tells():
    cells = [[2, 1, 3], [1, 3, 2]]
    places = read_rankings(pd.DataFrame(cells, columns=["place1", "place2", "place3"]))
    ranks = read_rankings(pd.DataFrame(cells, columns=["tea", "milk", "rum"]))
    assert (places.layout, places.items, places.codes.tolist()) == (
        "places",
        [1, 2, 3],
        [[1, 0, 2], [0, 2, 1]],
    )
    assert (ranks.layout, ranks.codes.tolist()) == ("items", [[1, 0, 2], [0, 2, 1]])
    assert ranks.items == ["tea", "milk", "rum"]
    assert "'place1' to 'place3' are read as places" in places.notes[0]
    assert "layout='items'" in places.notes[0]
    assert "'tea' to 'rum' are read as items" in ranks.notes[0]


def test_the_argument_forces_a_layout():
    frame = pd.DataFrame([[2, 3, 1]], columns=["place1", "place2", "place3"])
    assert read_rankings(frame).codes.tolist() == [[1, 2, 0]]
    assert read_rankings(frame, layout="items").codes.tolist() == [[2, 0, 1]]
    with pytest.raises(UsageError, match="auto, places, items or orders, got 'rows'"):
        read_rankings(frame, layout="rows")
    with pytest.raises(UsageError, match="one column of text, got 3"):
        read_rankings(frame, layout="orders")


def test_a_preference_counts_only_where_both_are_possible():
    both, words = [[2, 1, 3], [3, 1, 2]], [["a", "b", "c"]]
    assert read_rankings(np.array(both), prefer="items").codes.tolist() == [[1, 0, 2], [1, 2, 0]]
    assert read_rankings(words, prefer="items").layout == "places"


def test_known_items_keep_their_codes():
    assert read_rankings(["c>b"], items=["a", "b", "c"]).codes.tolist() == [[2, 1]]
    assert read_rankings(["3>1"], items=np.array([1, 2, 3])).codes.tolist() == [[2, 0]]
    assert read_rankings(["3>1"], items=["1", "2", "3"]).items == ["1", "2", "3"]
    with pytest.raises(DataError, match="row 2: 'd' is not among the 3 known items, like a, b, c"):
        read_rankings(["a>b", "a>d"], items=["a", "b", "c"])


PLACES = ["place1", "place2", "place3"]
REFUSED = {
    "an item twice": ([["a", "b", "c"], ["a", "b", "a"]], PLACES, "row 2: 'a' is ranked twice"),
    "a gap": (
        [["a", None, "c"]],
        PLACES,
        "row 1, column 'place2': an empty place before a filled one",
    ),
    "an empty row": ([["a", "b", "c"], [None] * 3], PLACES, "row 2: no item is ranked"),
    "a tie of ranks": (
        [[1, 2, 3], [1, 2, 2]],
        list("abc"),
        "row 2, column 'c': rank 2 is already that of 'b'. Ties are not ranked",
    ),
    "a skipped rank": ([[1, 2, 4]], list("abc"), "row 1, column 'c': rank 4 among 3 ranked items"),
    "a rank of 0": ([[0, 1, 2], [1, 0, 2]], list("abc"), "column 'a': a rank must be .* from 1"),
    "half a rank": ([[1, 2.5, 3]], list("abc"), "column 'b': a rank must be .* from 1, got '2.5'"),
    "a tie in text": ([["a>b=c"]], ["order"], r"row 1, column 'order': 'a>b=c' has a tie"),
    "a hole in text": ([["a>b"], ["a>>b"]], ["order"], "row 2, .*nothing between two '>'"),
    "an item twice in text": ([["a>b>a"]], ["order"], "row 1: 'a' is ranked twice"),
    "an empty text": ([["a>b"], [""]], ["order"], "row 2: no item is ranked"),
}


@pytest.mark.parametrize("cells, names, message", REFUSED.values(), ids=REFUSED)
def test_what_is_no_ranking_is_refused_by_row_and_value(cells, names, message):
    layout = "items" if names == list("abc") else "auto"
    with pytest.raises(DataError, match=message):
        read_rankings(pd.DataFrame(cells, columns=names), layout=layout)


def test_rows_are_counted_as_the_table_counts_them():
    frame = pd.DataFrame({"order": ["a>b", "a>a"]}, index=[4, 7])
    with pytest.raises(DataError, match="row 8: 'a' is ranked twice"):
        read_rankings(frame)


def test_a_table_without_rows_is_refused():
    with pytest.raises(DataError, match=r"shape \(0, 2\)"):
        read_rankings(pd.DataFrame({"place1": [], "place2": []}))
