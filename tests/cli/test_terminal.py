import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from ansatz.cli.terminal import number, print_table, printable


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text):
    kinds = {unicodedata.category(character) for character in printable(text)}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_plain_text_stays_what_it_is(text):
    assert printable(text) == text


def test_a_name_of_ten_kilobytes_is_cut_and_marked():
    assert printable("x" * 10_000, limit=10) == "x" * 9 + "…"


def test_markup_in_a_column_name_is_text(capsys):
    print_table(["column"], [["[bold red]a[/]"], ["\x1b[31mb"], [":smile:"]])
    assert capsys.readouterr().out.split() == [
        "column",
        "[bold",
        "red]a[/]",
        "\\x1b[31mb",
        ":smile:",
    ]


def test_a_pipe_gets_whole_lines(capsys):
    print_table(["a", "b"], [["x" * 150, "y" * 150]], limit=None)
    assert len(capsys.readouterr().out.splitlines()[1].rstrip()) == 150 + 2 + 150


def test_numbers_are_read_at_a_glance():
    values = [1.23456, 123456.7, 1e-5, 3, True, None, float("nan"), float("inf"), "text"]
    shown = ["1.235", "123457", "1e-05", "3", "True", "-", "-", "inf", "text"]
    assert [number(value) for value in values] == shown
