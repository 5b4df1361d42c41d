"""Tables read from files."""

import gzip
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.data.csv import Dialect, parse_csv
from ansatz.data.files import LIMIT_BYTES, checked_path, read_bytes, read_npz
from ansatz.data.header import read_header, sniff_delimiter, to_utf8
from ansatz.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

_START = 2**20  # bytes in which the first line ends
_ARCHIVES = {".zip", ".bz2", ".xz", ".zst", ".7z", ".tar", ".tgz"}
_SHEETS = {".xlsx", ".xls", ".ods", ".sav", ".dta", ".rds", ".rdata", ".pkl", ".pickle", ".h5"}


@dataclass(frozen=True)
class Table:
    """Rows and columns, and where they came from.

    Args:
        frame: the rows.
        origin: the file's name, for messages.
        notes: what was assumed in reading, in sentences for the user.
        first_line: the line of the first row, for delimited text; 0 for other formats.

    Example:
        >>> import pandas as pd
        >>> from ansatz.data import Table
        >>> Table(pd.DataFrame({"a": [1, 2]}), "houses.csv").frame.shape
        (2, 1)
    """

    frame: "pd.DataFrame"
    origin: str
    notes: list[str] = field(default_factory=list)
    first_line: int = 0


def read_table(
    path: str | PathLike[str],
    *,
    delimiter: str | None = None,
    header: bool = True,
    names: Sequence[str] | None = None,
    comment: str | None = None,
    missing: Collection[str] = (),
    text: Collection[str] = (),
    strict: Collection[str] | None = None,
    encoding: str | None = None,
    decimal: str = ".",
    allow_empty: bool = False,
    limit_bytes: int = LIMIT_BYTES,
) -> Table:
    r"""Reads CSV and other delimited text (also gzipped), Parquet, Arrow, Feather or ``.npz``.

    In delimited text an empty cell is missing. ``NA NaN nan NULL null None`` are missing in a
    column that otherwise holds numbers, and levels like any other in a column of text; both are
    listed in ``notes``. A row with too few or too many cells is an error, never a shift of columns.

    Args:
        path: a local file.
        delimiter: one character or ``"whitespace"``; None looks at the file.
        header: whether the first row names the columns; otherwise they are x1, x2, ...
        names: names of the columns; they replace those of the header.
        comment: lines that begin with it are skipped.
        missing: further cells that mean "missing", in every column.
        text: columns whose cells stay text even if they look like numbers.
        strict: columns in which a word among numbers is an error; None for all. Others stay text.
        encoding: of text; None looks at its bytes.
        decimal: the decimal mark, ``"."`` or ``","``.
        allow_empty: return a table of no rows where there is only a header.
        limit_bytes: what a packed file may unpack to.

    Example:
        >>> import pathlib, tempfile
        >>> from ansatz.data import read_table
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "houses.csv"
        >>> _ = path.write_text("area,town\n52,Jena\n,NA\n")
        >>> table = read_table(path)
        >>> table.frame["area"].isna().sum(), table.frame["town"].tolist()
        (np.int64(1), ['Jena', 'NA'])
    """
    found = checked_path(path)
    ending = found.suffix.lower()
    _refuse_formats(found, ending)
    origin = str(path)
    if ending in (".parquet", ".pq"):
        frame, notes = read_parquet(found, limit_bytes)
    elif ending in (".arrow", ".feather", ".ipc"):
        frame, notes = read_arrow(found)
    elif ending == ".npz":
        frame, notes = read_npz(found, limit_bytes), []
    else:
        dialect = Dialect(
            delimiter, header, names, comment, missing, text, strict, encoding, decimal, allow_empty
        )
        raw = read_bytes(found, limit_bytes)
        packed = len(raw) != found.stat().st_size or ending == ".gz"
        parsed = parse_csv(raw, origin, dialect, None if packed else found)
        return Table(parsed.frame, origin, parsed.notes, parsed.first_line)
    if len(frame) == 0 and not allow_empty:
        raise DataError(f"{origin} has columns but no rows.")
    return Table(frame, origin, notes)


def read_column_names(
    path: str | PathLike[str],
    *,
    delimiter: str | None = None,
    header: bool = True,
    names: Sequence[str] | None = None,
    encoding: str | None = None,
    **_: Any,
) -> list[str]:
    """Reads the names of the columns from the beginning of a file; none where it has no table.

    Further options of :func:`read_table` have no effect.
    """
    found = checked_path(path)
    ending = found.suffix.lower()
    if ending in (".parquet", ".pq"):
        arrow = _import("parquet", "Parquet files")
        return [str(name) for name in arrow.parquet.read_schema(found).names]
    if ending in (".arrow", ".feather", ".ipc", ".npz") or ending in _ARCHIVES | _SHEETS:
        return []
    with found.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        raw = gzip.open(file).read(_START) if packed else file.read(_START)
    text, _notes = to_utf8(raw[: raw.rfind(b"\n") + 1] or raw, str(path), encoding)
    mark = delimiter or sniff_delimiter(text)
    return read_header(text, str(path), mark, header=header, names=names).names


def _refuse_formats(path: Path, ending: str) -> None:
    if ending in _ARCHIVES:
        raise DataError(f"{path}: {ending} archives are not read. Unpack it first (.gz is read).")
    if ending in _SHEETS:
        raise DataError(f"{path}: {ending} files are not read. Save it as CSV or Parquet.")


def read_parquet(path: Path, limit_bytes: int) -> "tuple[pd.DataFrame, list[str]]":
    """The rows of a Parquet file, refused if its own metadata say it unpacks beyond the limit."""
    arrow = _import("parquet", "Parquet files")
    try:
        with arrow.parquet.ParquetFile(path) as file:
            meta = file.metadata
            size = sum(meta.row_group(k).total_byte_size for k in range(meta.num_row_groups))
            if size > limit_bytes:
                raise DataError(f"{path} unpacks to {size:,} bytes, more than {limit_bytes:,}.")
            table = file.read()
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a readable Parquet file: {_one_line(error)}.") from None
    return _to_frame(table, path)


def read_arrow(path: Path) -> "tuple[pd.DataFrame, list[str]]":
    """The rows of an Arrow IPC file (Feather) or stream."""
    arrow = _import("ipc", "Arrow files")
    try:
        with arrow.memory_map(str(path)) as file:
            try:
                table = arrow.ipc.open_file(file).read_all()
            except arrow.ArrowInvalid:
                file.seek(0)
                table = arrow.ipc.open_stream(file).read_all()
            return _to_frame(table, path)
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a readable Arrow file: {_one_line(error)}.") from None


def _import(part: str, what: str) -> Any:
    import importlib

    try:
        importlib.import_module(f"pyarrow.{part}")
        return importlib.import_module("pyarrow")
    except ImportError:
        raise MissingExtraError(what, "data") from None


def _to_frame(table: Any, path: Path) -> "tuple[pd.DataFrame, list[str]]":
    doubled = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if doubled:
        raise DataError(f"{path}: several columns are called '{doubled[0]}'. Rename them.")
    frame = table.to_pandas()
    notes = [
        f"the index '{name}' of {path.name} was left out." for name in frame.index.names if name
    ]
    return frame.reset_index(drop=True), notes


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")[:200]
