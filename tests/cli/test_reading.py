import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansatz.cli.options import takes
from ansatz.fitting.options.option import separator, words
from ansatz.fitting.options.vector import TableReading

NAME = st.text(alphabet="abc ,x", min_size=1).map(str.strip).filter(bool)


@given(st.lists(NAME, min_size=1))
def test_names_in_quotes_may_hold_commas(names):
    assert words(",".join(f'"{name}"' for name in names)) == names


def read(**said):
    @takes(TableReading)
    def command(given):
        return given

    return command(**{**dict.fromkeys(inspect.signature(command).parameters), **said})


def test_what_is_not_given_is_not_passed():
    assert read() == {}
    assert read(missing=[]) == {}


@pytest.mark.parametrize("spelling", ["\\t", "tab", "\t"])
def test_a_tab_can_be_typed(spelling):
    assert separator(spelling) == "\t"


def test_all_options_reach_the_reader():
    given = read(delimiter=";", header=True, names="a,b", comment="#", missing=["n/a", "-"])
    assert given == {
        "delimiter": ";",
        "header": False,
        "names": ["a", "b"],
        "comment": "#",
        "missing": ["n/a", "-"],
    }
