import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansatz.cli.predict import csv_blocks, escaped


def csv_of(frame, **options):
    return b"".join(csv_blocks(frame, **options)).decode()


@given(st.text())
def test_no_cell_of_text_begins_a_formula(text):
    assert not escaped(text).startswith(("=", "+", "-", "@", "\t", "\r"))


@given(st.one_of(st.floats(), st.integers(), st.none(), st.booleans()))
def test_what_is_no_text_stays_what_it_is(value):
    assert escaped(value) is value


def test_strings_are_prefixed_and_negative_numbers_are_not():
    frame = pd.DataFrame({"prediction": ["=cmd()", "ok", "-1"], "p": [-1.5, 2.0, -3.0]})
    assert csv_of(frame) == "row,prediction,p\n0,'=cmd(),-1.5\n1,ok,2.0\n2,'-1,-3.0\n"
    assert csv_of(frame, raw=True) == "row,prediction,p\n0,=cmd(),-1.5\n1,ok,2.0\n2,-1,-3.0\n"


@pytest.mark.parametrize("kind", [object, "category", "string"])
def test_every_kind_of_text_column_is_escaped(kind):
    assert "'@x" in csv_of(pd.DataFrame({"a": pd.Series(["@x", "y"], dtype=kind)}))


def test_a_header_and_a_row_name_are_text_too():
    frame = pd.DataFrame({"=a": [1.0]}, index=["+b"])
    assert csv_of(frame) == "row,'=a\n'+b,1.0\n"


def test_an_empty_table_is_a_header():
    assert csv_of(pd.DataFrame({"prediction": pd.Series([], dtype=float)})) == "row,prediction\n"


def test_blocks_join_to_the_whole_table():
    frame = pd.DataFrame({"prediction": range(25_000)})
    blocks = list(csv_blocks(frame))
    assert len(blocks) == 3
    back = pd.read_csv(io.BytesIO(b"".join(blocks)), index_col="row")
    assert back["prediction"].tolist() == list(range(25_000))


def test_numbers_survive_to_the_last_digit():
    frame = pd.DataFrame({"prediction": [0.1 + 0.2, 1e-300, 123456789.123456789]})
    cells = [float(line.split(",")[1]) for line in csv_of(frame).splitlines()[1:]]
    assert cells == frame["prediction"].tolist()
