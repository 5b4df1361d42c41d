"""Logarithmic axes in plain text."""

import pytest

from ansatz.figures.decades import logarithmic, power_of_ten
from ansatz.figures.style import figure


@pytest.mark.parametrize(
    "value, text",
    [
        (0, "0"),
        (0.001, "0.001"),
        (1e4, "10000"),
        (1e-16, "10⁻¹⁶"),
        (5e12, "5·10¹²"),
    ],
)
def test_a_number_reads_as_a_person_would_write_it(value, text):
    assert power_of_ten(value) == text


@pytest.mark.parametrize("high", [1.5, 30.0, 1e9])
def test_labels_hold_no_mathtext_and_there_are_at_least_two(high):
    with figure(3, 2) as paper:
        axes = paper.subplots()
        axes.plot([1, 2], [1, high])
        logarithmic(axes.yaxis)
        paper.canvas.draw()
        low, top = axes.get_ylim()
        pairs = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
        shown = [label.get_text() for tick, label in pairs if low <= tick <= top]
    assert len(shown) >= 2
    assert not any("$" in text for text in shown)
