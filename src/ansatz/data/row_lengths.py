"""Rows with too few or too many cells: the first one, by its line."""

import csv
import io
from typing import NamedTuple

import numpy as np

_NEWLINE, _QUOTE, _BLANK, _TAB = 10, 34, 32, 9


class UnevenRow(NamedTuple):
    """A row whose number of cells is not the header's."""

    line: int
    cells: int


def first_uneven(
    text: bytes, start: int, first_line: int, width: int, delimiter: str
) -> UnevenRow | None:
    r"""The first row with more or fewer than ``width`` cells, or None.

    Args:
        text: UTF-8 with ``\n`` at the line ends.
        start: where the rows begin in ``text``.
        first_line: the number of the line that begins there.
        width: cells that each row must have; blank lines are no rows.
        delimiter: one character, or ``"whitespace"``.
    """
    codes = np.frombuffer(text, np.uint8)[start:]
    quoted = text.find(b'"', start) >= 0
    outside = _outside_quotes(codes, delimiter) if quoted else None
    if outside is None and quoted and delimiter != "whitespace":
        return _first_uneven_slowly(text[start:], first_line, width, delimiter)
    ends = codes == _NEWLINE
    if outside is not None:
        ends &= outside
    lines = np.append(np.flatnonzero(ends), len(codes))  # where each record ends
    begins = np.append(0, lines[:-1] + 1)
    if delimiter == "whitespace":
        cells = np.diff(np.searchsorted(_word_starts(codes, outside), lines), prepend=0)
        full = cells > 0
    else:
        marks = codes == ord(delimiter)
        if outside is not None:
            marks &= outside
        cells = np.diff(np.searchsorted(np.flatnonzero(marks), lines), prepend=0) + 1
        full = lines > begins
    for k in np.flatnonzero(full & (cells != width)):
        begin, end = start + int(begins[k]), start + int(lines[k])
        if text[begin:end].strip():  # a line of blanks is a blank line
            return UnevenRow(first_line + text.count(b"\n", start, begin), int(cells[k]))
    return None


def _word_starts(codes: np.ndarray, outside: np.ndarray | None) -> np.ndarray:
    gap = (codes == _BLANK) | (codes == _TAB) | (codes == _NEWLINE)
    if outside is not None:
        gap &= outside
    return np.flatnonzero(~gap & np.append(True, gap[:-1]))


def _outside_quotes(codes: np.ndarray, delimiter: str) -> np.ndarray | None:
    """True where a character is not inside quotes; None where a quote stands within a cell."""
    quotes = codes == _QUOTE
    inside = np.bitwise_xor.accumulate(quotes)  # a doubled quote closes and opens again
    blanks = [_BLANK, _TAB] if delimiter == "whitespace" else [ord(delimiter)]
    edges = np.array([_NEWLINE, _QUOTE, *blanks], np.uint8)
    opening = np.flatnonzero(quotes & inside)
    closing = np.flatnonzero(quotes & ~inside)
    before = codes[opening[opening > 0] - 1]
    after = codes[closing[closing < len(codes) - 1] + 1]
    if not (np.isin(before, edges).all() and np.isin(after, edges).all()):
        return None
    return ~inside


def _first_uneven_slowly(
    body: bytes, first_line: int, width: int, delimiter: str
) -> UnevenRow | None:
    """The same by Python's own reader, for files with quotes in odd places."""
    reader = csv.reader(
        io.StringIO(body.decode(), newline=""), delimiter=delimiter, skipinitialspace=True
    )
    line = 0
    for row in reader:
        if len(row) != width and any(cell.strip() for cell in row):
            return UnevenRow(first_line + line, len(row))
        line = reader.line_num
    return None
