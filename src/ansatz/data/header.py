"""The head of a delimited file: its delimiter and the names of its columns."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ansatz.errors import DataError

_CANDIDATES = [",", ";", "\t", "|"]
_SAMPLE_BYTES, _SAMPLE_ROWS = 2**16, 100
MAX_COLUMNS = 200_000  # pandas needs some 20 microseconds for each
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class Header(NamedTuple):
    """The names of the columns and where the rows begin."""

    names: list[str]
    start: int
    first_line: int
    notes: list[str]


def sniff_delimiter(text: bytes) -> str:
    r"""The delimiter that cuts the first rows most evenly, among ``, ; tab |`` and whitespace.

    Whitespace is considered only where none of the others occurs in most rows; a file without
    any has one column.
    """
    sample = text[:_SAMPLE_BYTES]
    if len(text) > _SAMPLE_BYTES and b"\n" in sample:
        sample = sample[: sample.rindex(b"\n")]
    lines = [line for line in sample.decode(errors="replace").split("\n") if line.strip()]
    lines = lines[:_SAMPLE_ROWS]
    scored = [(*_evenness(lines, mark), mark) for mark in _CANDIDATES]
    even, cells, mark = max(scored, key=lambda score: score[:2])
    if cells > 1 and even >= 0.5:
        return mark
    words = [len(line.split()) for line in lines]
    common = Counter(words).most_common(1)[0][0]
    # A column of names has blanks too, but not in its header.
    return "whitespace" if common > 1 and words[0] == common else ","


def _evenness(lines: list[str], mark: str) -> tuple[float, int]:
    """The share of rows that have the most common number of cells, and that number."""
    try:
        rows = [row for row in csv.reader(lines, delimiter=mark, skipinitialspace=True) if row]
    except csv.Error:  # a cell of more than 131,072 characters
        return 0.0, 1
    cells, times = Counter(len(row) for row in rows).most_common(1)[0]
    return (times / len(rows), cells) if cells > 1 else (0.0, 1)


def read_header(
    text: bytes, origin: str, delimiter: str, *, header: bool, names: Sequence[str] | None
) -> Header:
    r"""Reads the first record; a doubled name is an error, an empty one is replaced and noted.

    Args:
        text: UTF-8 with ``\n`` at the line ends.
        origin: the file's name, for errors.
        delimiter: one character, or ``"whitespace"``.
        header: whether that record holds names; otherwise columns are called x1, x2, ...
        names: names to use instead.
    """
    cells, begin, end, line, next_line = _first_record(text, origin, delimiter)
    if len(cells) > MAX_COLUMNS:
        raise DataError(
            f"{origin}, line {line}: {len(cells):,} columns; at most {MAX_COLUMNS:,} can be read."
        )
    notes: list[str] = []
    if names is not None:
        found = _given(list(names), len(cells), origin, line)
    elif header:
        found = _named([cell.strip() for cell in cells], origin, notes)
    else:
        found = [f"x{k}" for k in range(1, len(cells) + 1)]
    _refuse_doubles(found, origin)
    return Header(found, *((end, next_line) if header else (begin, line)), notes)


def _first_record(text: bytes, origin: str, delimiter: str) -> tuple[list[str], int, int, int, int]:
    """Its cells, the offsets of its begin and end, its line, and the line after it."""
    begin = len(text) - len(text.lstrip(b"\n \t")) if delimiter == "whitespace" else 0
    while text.startswith(b"\n", begin):
        begin += 1
    begin = text.rfind(b"\n", 0, begin) + 1
    line = text.count(b"\n", 0, begin) + 1
    offset = begin

    def lines() -> Iterator[str]:
        nonlocal offset
        while offset < len(text):
            end = text.find(b"\n", offset) + 1 or len(text)
            chunk, offset = text[offset:end].decode(), end
            yield " ".join(chunk.split()) if delimiter == "whitespace" else chunk

    mark = " " if delimiter == "whitespace" else delimiter
    try:
        cells = next(csv.reader(lines(), delimiter=mark, skipinitialspace=True))
    except csv.Error as error:
        raise DataError(f"{origin}, line {line}: not a row of a table ({error}).") from None
    return cells, begin, offset, line, line + text.count(b"\n", begin, offset)


def _given(names: list[str], width: int, origin: str, line: int) -> list[str]:
    if len(names) != width:
        raise DataError(
            f"{origin}, line {line}: {len(names)} names were given for {width} columns."
        )
    return [str(name) for name in names]


def _named(cells: list[str], origin: str, notes: list[str]) -> list[str]:
    if len(cells) > 0 and all(_NUMBER.fullmatch(cell) for cell in cells):
        notes.append(f"{origin}: the header is all numbers; if it is a row of data: --no-header.")
    taken = set(cells)
    for k, cell in enumerate(cells):
        if not cell:
            name = f"column_{k + 1}"
            while name in taken:
                name += "_"
            cells[k] = name
            taken.add(name)
            notes.append(f"{origin}: column {k + 1} has no name in the header, called '{name}'.")
    return cells


def _refuse_doubles(names: list[str], origin: str) -> None:
    if len(set(names)) < len(names):
        name, times = Counter(names).most_common(1)[0]
        places = [str(k + 1) for k, other in enumerate(names) if other == name][:5]
        raise DataError(
            f"{origin}: {times} columns are called '{name}' (columns {', '.join(places)}). "
            "Rename them, or give names: --names a,b,..."
        )
