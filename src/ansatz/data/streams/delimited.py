"""Delimited text, block by block, with the kinds of its columns decided once."""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ansatz.data.csv import Dialect, parse_csv
from ansatz.data.header import read_header, sniff_delimiter
from ansatz.data.streams.chunks import CHUNK_BYTES, chunks
from ansatz.data.streams.kinds import Kinds
from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_COUNTED = re.compile(r"(column '.*': )(\d+)( cells .*)", re.DOTALL)


def delimited_frames(
    path: Path,
    origin: str,
    dialect: Dialect,
    kinds: Kinds,
    *,
    notes: list[str] | None = None,
    block_bytes: int = CHUNK_BYTES,
) -> "Iterator[pd.DataFrame]":
    r"""The rows of a file in frames whose index counts the rows of the whole file.

    Each chunk is read by :func:`~ansatz.data.csv.parse_csv`, so that cells mean what they mean in
    a file that is read at once. What a column is, the first rows with a value in it decide: a word
    that comes later among numbers is an error with its row.

    Args:
        path: the file, gzipped or not.
        origin: its name, for errors.
        dialect: how it is written.
        kinds: what is known about the columns, added to.
        notes: takes what was assumed.
        block_bytes: text per frame, about.
    """
    said: list[str] = []
    row = 0
    names: list[str] | None = None
    mark = dialect.delimiter or _sniff(path, origin, dialect)
    parts = chunks(
        path, origin, encoding=dialect.encoding, delimiter=mark, notes=said, size=block_bytes
    )
    plain = replace(dialect, encoding=None, allow_empty=True, delimiter=mark)
    for text, lines in parts:
        if names is None:
            blank = _without_comments(text, dialect)
            names = read_header(
                blank, origin, mark, header=dialect.header, names=dialect.names
            ).names
            fixed, again = plain, 0
        else:
            # A header of its own: a first row of another width is then an error with its line.
            head = (" " if mark == "whitespace" else mark).join("c" for _ in names)
            text, again = head.encode() + b"\n" + text, 1
            fixed = replace(plain, header=True, names=names)
        if not _without_comments(text, dialect).strip():
            continue
        fixed = replace(fixed, text={*dialect.text, *kinds.text})
        found = parse_csv(text, origin, fixed, lines_before=lines - again, rows_before=row)
        frame = found.frame
        frame.index = range(row, row + len(frame))
        said += found.notes
        kinds.observe(frame, strict=dialect.strict)
        row += len(frame)
        if len(frame):
            yield frame
    if names is None:
        raise DataError(f"{origin} is empty. Expected a table with one row per line.")
    if notes is not None:
        notes += merge_notes(said)


def merge_notes(notes: Collection[str]) -> list[str]:
    """Each sentence once; counts of cells of one column are added up."""
    counts: dict[tuple[str, str], int] = {}
    for note in notes:
        match = _COUNTED.fullmatch(note)
        key = (match[1], match[3]) if match else (note, "")
        counts[key] = counts.get(key, 0) + (int(match[2]) if match else 0)
    return [f"{head}{count}{tail}" if tail else head for (head, tail), count in counts.items()]


def _sniff(path: Path, origin: str, dialect: Dialect) -> str:
    """The delimiter, by the first rows."""
    first = next(chunks(path, origin, encoding=dialect.encoding, size=2**16), None)
    text = b"" if first is None else _without_comments(first.text, dialect)
    if not text.lstrip():
        raise DataError(f"{origin} is empty. Expected a table with one row per line.")
    mark = sniff_delimiter(text)
    if mark == dialect.decimal:
        raise DataError(f"{origin} seems to be cut by '{mark}', which is the decimal mark.")
    return mark


def _without_comments(text: bytes, dialect: Dialect) -> bytes:
    if not dialect.comment:
        return text
    return re.sub(rb"(?m)^" + re.escape(dialect.comment.encode()) + rb"[^\n]*", b"", text)
