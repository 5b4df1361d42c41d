"""How a report formats numbers and text from data."""

from ansatz.figures.number_format import number, percent, printable, with_error


def test_numbers_have_four_significant_digits_and_a_true_minus():
    found = [number(value) for value in (0.123456, 12345.6, 7, None, -0.5)]
    assert found == ["0.1235", "12,346", "7", "–", "−0.5"]


def test_an_estimate_has_the_digits_of_its_error():
    assert with_error(2.34567, 0.0321) == "2.346 ± 0.032" and with_error(1.5, None) == "1.5"


def test_shares_are_percentages():
    assert [percent(share) for share in (0.1234, 1.0, None)] == ["12.3 %", "100 %", "–"]


def test_control_characters_are_escaped_and_long_text_is_shortened():
    assert printable("a\u202eb\n") == "a\\u202eb\\n"
    assert printable("abcdefghij", 7) == "abc…hij"
