"""The names of a table's columns, read from the beginning of its file."""

import gzip
from collections.abc import Sequence
from os import PathLike
from typing import Any

from ansatz.data.files import checked_path
from ansatz.data.header import read_header, sniff_delimiter, to_utf8
from ansatz.data.table import read_table

_START = 2**20  # bytes in which the first line ends
_TEXT = ("", ".csv", ".tsv", ".txt", ".dat", ".data", ".gz")


def read_column_names(
    path: str | PathLike[str],
    *,
    delimiter: str | None = None,
    header: bool = True,
    names: Sequence[str] | None = None,
    encoding: str | None = None,
    **options: Any,
) -> list[str]:
    """Reads the names of the columns; of text, nothing but the beginning is read.

    The options are those of :func:`ansatz.data.read_table`.
    """
    found = checked_path(path)
    if found.suffix.lower() not in _TEXT:
        return [str(name) for name in read_table(path, **options).frame.columns]
    with found.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        raw = gzip.open(file).read(_START) if packed else file.read(_START)
    text, _ = to_utf8(raw[: raw.rfind(b"\n") + 1] or raw, str(path), encoding)
    mark = delimiter or sniff_delimiter(text)
    return read_header(text, str(path), mark, header=header, names=names).names
