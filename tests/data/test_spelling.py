"""Text that spells numbers or dates."""

import numpy as np
import pandas as pd
import pytest

from ansatz.data import Column, Preprocessor, infer_columns, read_table, split_warnings
from ansatz.data.spelling import Spelling, find_spelling
from ansatz.data.streams.survey import Survey
from ansatz.errors import DataError

DAYS = pd.date_range("2019-12-20", periods=60, freq="31h")
AMOUNTS = np.array([0.0, 12.5, -3.25, 999.99, 1234.5, 87_889.17, 1_234_567.0])


def read(cells):
    (column, _) = infer_columns({"c": cells, "other": np.arange(3, 3 + len(cells))})
    assert column.spelling is not None
    return column, column.spelling.read(pd.Series(cells, name="c"))


@pytest.mark.parametrize(
    "format",
    ["%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%b-%Y", "%Y/%m/%d", "%B %d, %Y", "%d.%m.%y",
     "%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M %p", "%d-%m-%Y"],
)  # fmt: skip
def test_dates_in_one_format_are_dates(format):
    column, values = read([*DAYS.strftime(format), "NA"])
    assert (column.role, column.missing, column.spelling.format) == ("date", 1, format)
    expected = DAYS.floor("min" if "M" in format else "D")
    assert values[:-1].tolist() == list(expected)
    assert pd.isna(values.iloc[-1])


def test_iso_dates_with_a_zone_and_gaps_are_utc():
    _, values = read(["2021-12-31T13:45:00+02:00", "NULL", "2021-12-30"])
    assert values[0] == pd.Timestamp("2021-12-31 11:45")
    assert pd.isna(values[1])


SPELLED = {
    "dollars": ("${:,.2f}", str.strip),
    "euros": ("{:,.2f} €", lambda s: s.translate(str.maketrans(",.", ".,"))),
    "Swiss": ("CHF {:,.2f}", lambda s: s.replace(",", "'")),
    "percent": ("{:.2f}%", str.strip),
    "blanks": ("{:,.2f}", lambda s: s.replace(",", "\u202f").replace(".", ",")),
    "thousands": ("{:,.2f}", str.strip),
}


@pytest.mark.parametrize("pattern, local", SPELLED.values(), ids=SPELLED)
def test_numbers_with_units_and_marks_are_numbers(pattern, local):
    column, values = read([local(pattern.format(v)) for v in AMOUNTS])
    assert column.role == "numeric"
    np.testing.assert_array_equal(values, AMOUNTS)


def test_brackets_are_negative():
    assert read(["($1,000.50)", "$2.00"])[1].tolist() == [-1000.5, 2.0]


def test_whole_amounts_without_decimals_are_grouped_where_something_shows_it():
    assert read(["$1,234", "$5,678"])[1].tolist() == [1234, 5678]
    assert read(["1,234", "850"])[1].tolist() == [1234, 850]
    assert read(["12.125%", "3.875%"])[1].tolist() == [12.125, 3.875]


@pytest.mark.parametrize("cells", [["1,234", "5,678"], ["1.234 €", "5.678 €"]])
def test_ambiguous_numbers_ask(cells):
    table = {"c": cells * 20, "x": np.arange(3, 43)}
    with pytest.raises(
        DataError, match=r"may be 1234 or 1.234. Choose: --role \"c=1[.,]234[.,]5\""
    ):
        infer_columns(table)
    for role, value in (("1,234.5", 1234), ("1234,5", 1.234)):
        if "€" not in cells[0]:
            (column, _) = infer_columns(table, roles={"c": role})
            assert column.spelling.read(pd.Series(cells))[0] == value


def test_ambiguous_dates_ask_and_the_role_decides():
    table = {"day": ["03/04/2021", "05/06/2021"] * 20, "x": np.arange(3, 43)}
    with pytest.raises(DataError, match=r'--role "day=%d/%m/%Y" or --role "day=%m/%d/%Y"'):
        infer_columns(table)
    for format, month in (("%d/%m/%Y", 4), ("%m/%d/%Y", 3)):
        (column, _) = infer_columns(table, roles={"day": format})
        assert column.spelling.read(pd.Series(table["day"]))[0].month == month
    assert infer_columns(table, drop=["day"])[0].role == "dropped"


def test_a_few_odd_cells_among_dates_are_an_error_with_their_row():
    cells = [*DAYS.strftime("%d.%m.%Y")]
    cells[17] = "unknown"
    with pytest.raises(DataError, match=r"row 18, column 'c'.*%d.%m.%Y.*'unknown'.*--missing"):
        infer_columns({"c": cells, "x": np.arange(60)})


def test_two_currencies_are_an_error():
    with pytest.raises(DataError, match=r"amounts in \$ and €"):
        infer_columns({"c": ["$5", "€6"] * 20, "x": np.arange(40)})


@pytest.mark.parametrize(
    "cells", [["a1", "b2"], ["1-2", "3-4"], ["10 mg", "20 mg"], ["1.2.3", "2.0"]]
)
def test_other_words_stay_levels(cells):
    assert find_spelling("c", cells) is None


def test_the_rule_of_training_rows_reads_new_rows_or_names_the_cell():
    made = Preprocessor.fit({"price": ["$1,234.50", "$7.25", "$3.00"], "x": [1.0, 2.0, 4.0]})
    again = Preprocessor.from_state(made.state())
    (new,) = again.transform({"price": ["$12,345.00"], "x": [1.0]})
    (same,) = again.transform({"price": [12345.0], "x": [1.0]})
    assert (new == same).all()
    with pytest.raises(DataError, match=r"row 2, column 'price': expected numbers.*got 'cheap'"):
        again.transform({"price": ["$5", "cheap"], "x": [1.0, 1.0]})


def test_a_file_and_a_stream_agree(tmp_path):
    frame = pd.DataFrame(
        {
            "price": [f"${v:,.2f}" for v in np.linspace(5, 5000, 60)],
            "share": [f"{v}%" for v in range(60)],
            "day": DAYS.strftime("%d.%m.%Y"),
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    at_once = infer_columns(read_table(tmp_path / "t.csv").frame)
    survey = Survey()
    survey.add(frame[:30])
    survey.add(frame[30:])
    assert survey.columns() == at_once
    assert [column.role for column in at_once] == ["numeric", "numeric", "date"]


def test_decimal_commas_of_a_whole_file_are_its_option(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n" + "1,5;2\n" * 30)
    with pytest.raises(DataError, match="--decimal ,"):
        read_table(tmp_path / "t.csv")


def test_spelled_columns_are_never_ids():
    cells = [f"${v:,.2f}" for v in np.linspace(5, 5000, 60)]
    assert infer_columns({"price": cells, "x": np.arange(7, 67)})[0].role == "numeric"


def test_whole_numbers_called_like_ids_or_in_blocks_get_a_hint():
    rows = np.repeat(np.random.default_rng(0).permutation(15), 4)
    noise = np.random.default_rng(1).normal(size=60)
    for table in ({"patient": np.arange(60) % 7, "x": noise}, {"who": rows, "x": noise}):
        columns = infer_columns(table)
        name = columns[0].name
        assert columns[0].role == "numeric"
        (hint,) = split_warnings(columns)
        assert f"--group {name}" in hint
        assert split_warnings(columns, group=name) == []
    for quiet in ({"week": rows}, {"n": np.arange(60) % 7}, {"z": np.sort(noise)}):
        assert split_warnings(infer_columns({**quiet, "x": noise})) == []


def test_old_columns_load_without_a_spelling():
    assert Column.model_validate({"name": "a", "role": "numeric"}).spelling is None
    assert Spelling.model_validate({"format": "%d.%m.%Y"}).role == "date"


def test_a_format_that_is_none_is_an_error_in_one_line():
    with pytest.raises(DataError, match="'%Q-%d' is not a format of dates"):
        infer_columns({"day": ["1-2", "3-4"], "x": [1, 2]}, roles={"day": "%Q-%d"})
