"""Draws texts whose letters have a background colour."""

import unicodedata
from html import escape
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.figures.montage import BLUE, VERMILION
from ansatz.figures.number_format import printable

COLUMNS = 88  # letters of a line
LETTER, LINE, HEAD, GAP = 7.4, 19.0, 16.0, 14.0  # width of a letter and heights, in pixels
LINES = 8  # of a text; the rest is left out


class Coloured(NamedTuple):
    """A text with a number for each of its letters.

    Args:
        head: a line above it.
        text: the text itself, from anyone.
        value: ``(len(text),)``, positive where it raises a score.
        end: letters behind it have no number.
    """

    head: str
    text: str
    value: NDArray[np.float64]
    end: int


class _Letter(NamedTuple):
    shown: str
    width: int  # in columns
    tint: float  # from -1 to 1
    grey: bool


def draw_texts(texts: list[Coloured]) -> str:
    """One ``<svg>`` of all texts, with everything from them escaped."""
    parts: list[str] = []
    y = 0.0
    for each in texts:
        y += HEAD
        parts.append(_text(0, y - 4, each.head, 'font-size="11" opacity="0.8"'))
        lines = _wrapped(_letters(each))
        for line in lines[:LINES]:
            parts += _line(line, y)
            y += LINE
        if len(lines) > LINES:
            parts.append(_text(0, y + 10, "…", 'font-size="12"'))
            y += LINE
        y += GAP
    width = round(COLUMNS * LETTER) + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y:.0f}" width="{width}" '
        f'height="{y:.0f}" fill="currentColor" font-family="ui-monospace, Menlo, Consolas, '
        f'monospace">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, words: str, more: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(printable(words))}</text>'


def _letters(each: Coloured) -> list[_Letter]:
    top = float(np.abs(each.value).max(initial=0)) or 1.0
    found: list[_Letter] = []
    for place, letter in enumerate(each.text):
        shown = " " if letter.isspace() else printable(letter)
        if unicodedata.combining(letter) and found:  # drawn on the letter before it
            last = found[-1]
            found[-1] = last._replace(shown=last.shown + letter)
            continue
        wide = 2 if unicodedata.east_asian_width(letter) in "WF" else len(shown)
        tint = round(float(each.value[place]) / top, 2)
        found.append(_Letter(shown, wide, tint, place >= each.end))
    return found


def _wrapped(letters: list[_Letter]) -> list[list[_Letter]]:
    """Lines of at most ``COLUMNS`` columns, broken behind spaces where there are any."""
    lines: list[list[_Letter]] = [[]]
    words: list[list[_Letter]] = [[]]
    for letter in letters:
        words[-1].append(letter)
        if letter.shown == " ":
            words.append([])
    for word in words:
        if _width(lines[-1]) + _width(word) > COLUMNS and lines[-1]:
            lines.append([])
        for letter in word:
            if _width(lines[-1]) + letter.width > COLUMNS:
                lines.append([])
            lines[-1].append(letter)
    return [line for line in lines if line]


def _width(letters: list[_Letter]) -> int:
    return sum(letter.width for letter in letters)


def _line(line: list[_Letter], y: float) -> list[str]:
    parts, column = [], 0
    for (tint, grey), run in groupby(line, key=lambda letter: (letter.tint, letter.grey)):
        letters = list(run)
        wide, x = _width(letters) * LETTER, column * LETTER
        if tint:
            r, g, b = BLUE if tint > 0 else VERMILION
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{LINE - 2:.1f}" '
                f'fill="rgb({r},{g},{b})" fill-opacity="{0.75 * abs(tint):.2f}"/>'
            )
        words = "".join(letter.shown for letter in letters).replace(" ", "\u00a0")
        faint = ' opacity="0.45"' if grey else ""
        parts.append(
            f'<text x="{x:.1f}" y="{y + 13:.1f}" font-size="12" textLength="{wide:.1f}" '
            f'lengthAdjust="spacingAndGlyphs"{faint}>{escape(words)}</text>'
        )
        column += _width(letters)
    return parts
