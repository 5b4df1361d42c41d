import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansatz.cli.reading import reader_options, words

NAME = st.text(alphabet="abc ,x", min_size=1).map(str.strip).filter(bool)


@given(st.lists(NAME, min_size=1))
def test_names_in_quotes_may_hold_commas(names):
    assert words(",".join(f'"{name}"' for name in names)) == names


def test_what_is_not_given_is_not_passed():
    assert reader_options(None, None, None, None, None) == {}
    assert reader_options(None, False, None, None, []) == {}


@pytest.mark.parametrize("spelling", ["\\t", "tab", "\t"])
def test_a_tab_can_be_typed(spelling):
    assert reader_options(spelling, None, None, None, None) == {"delimiter": "\t"}


def test_all_options_reach_the_reader():
    given = reader_options(";", True, "a,b", "#", ["n/a", "-"])
    assert given == {
        "delimiter": ";",
        "header": False,
        "names": ["a", "b"],
        "comment": "#",
        "missing": ["n/a", "-"],
    }
