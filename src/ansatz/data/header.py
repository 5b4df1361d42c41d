"""The start of a text table: its encoding, delimiter and column names."""

import codecs
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
    text: bytes, origin: str, delimiter: str, *, header: bool | None, names: Sequence[str] | None
) -> Header:
    r"""Reads the first record; a doubled name is an error, an empty one is replaced and noted.

    Where names are given and ``header`` is None, the first record is a header if it holds words
    above numbers, and data otherwise.
    """
    cells, begin, end, line, next_line = _first_record(text, origin, delimiter)
    if len(cells) > MAX_COLUMNS:
        raise DataError(
            f"{origin}, line {line}: {len(cells):,} columns; at most {MAX_COLUMNS:,} can be read."
        )
    notes: list[str] = []
    if header is None:
        below = text[end : end + _SAMPLE_BYTES]
        header = names is None or _is_above_numbers(cells, below, origin, delimiter)
        if names is not None:
            what = "the first row held names" if header else "the first row is data"
            notes.append(f"{origin}: --names: {what} ({', '.join(cells[:3])[:60]}).")
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


def _is_above_numbers(cells: list[str], rest: bytes, origin: str, delimiter: str) -> bool:
    """Whether no cell is a number and one below is."""
    if not rest.strip() or any(_NUMBER.fullmatch(cell.strip()) for cell in cells):
        return False
    below = _first_record(rest, origin, delimiter)[0]
    return any(_NUMBER.fullmatch(cell.strip()) for cell in below)


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


_MARKS = [  # the longer mark first: UTF-32's begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
]


def to_utf8(raw: bytes, origin: str, encoding: str | None = None) -> tuple[bytes, list[str]]:
    r"""The text in UTF-8 with ``\n`` at the line ends, and notes on what was assumed.

    Without ``encoding``: the byte-order mark decides; else UTF-8; else Latin-1 in the form that
    Windows writes (cp1252), which is a guess and is noted.
    """
    notes: list[str] = []
    if encoding is not None:
        text = _recode(raw, origin, encoding)
    else:
        text = _detect(raw, origin, notes)
    if b"\0" in text:
        at = text.index(b"\0")
        line = text.count(b"\n", 0, at) + 1
        raise DataError(
            f"{origin}, line {line}: contains a NUL byte, so it is not a text table, or it is "
            "UTF-16 without a mark (then: --encoding utf-16-le)."
        )
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text, notes


def _detect(raw: bytes, origin: str, notes: list[str]) -> bytes:
    for mark, codec in _MARKS:
        if raw.startswith(mark):
            if codec != "utf-8":
                notes.append(f"{origin} is encoded in {codec}.")
            return _recode(raw[len(mark) :], origin, codec)
    if raw.isascii():
        return raw
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        notes.append(
            f"{origin}, line {line}: not UTF-8, read as Latin-1 (cp1252). "
            "If letters look wrong: --encoding NAME."
        )
        return _latin(raw)
    return raw


def _latin(raw: bytes) -> bytes:
    try:
        return raw.decode("cp1252").encode()
    except UnicodeDecodeError:  # cp1252 leaves five bytes undefined, Latin-1 none
        return raw.decode("latin-1").encode()


def _recode(raw: bytes, origin: str, encoding: str) -> bytes:
    try:
        text = raw.decode(encoding)
    except LookupError:
        raise DataError(f"{origin}: unknown encoding '{encoding}'.") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{origin}, line {line}: byte {raw[error.start]:#04x} is not {encoding}. "
            "Give its true encoding: --encoding NAME."
        ) from None
    except UnicodeError as error:  # utf-16 without a byte-order mark
        raise DataError(f"{origin}: not {encoding}: {error}.") from None
    # A single half of a surrogate pair can be decoded but not written.
    return text.removeprefix("\ufeff").encode("utf-8", errors="replace")
