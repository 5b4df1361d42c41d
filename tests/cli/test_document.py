import json
from pathlib import Path

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from ansatz.cli.document import plain, text_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e300, 1e300) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_what_json_can_say_is_said_unchanged(value):
    assert plain(value) == value


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_text_survives_the_round_trip(text):
    assert json.loads(text_of({"name": text})) == {"name": text}


def test_what_is_not_a_number_is_null():
    value = {"a": float("nan"), "b": [float("inf"), np.float32("nan")], "c": torch.tensor(1.5)}
    assert json.loads(text_of(value)) == {"a": None, "b": [None, None], "c": 1.5}


def test_arrays_paths_and_numpy_numbers_become_plain():
    value = [np.arange(2), np.int64(3), np.bool_(True), Path("a"), (1,), {1: 2}]
    assert plain(value) == [[0, 1], 3, True, "a", [1], {"1": 2}]


def test_an_undecodable_file_name_is_still_a_document():
    assert json.loads(text_of("a\udcff").encode("utf-8")) == "a\udcff"
