"""Tables read from files."""

import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.data.categorical import level_name
from ansatz.data.csv import Dialect, parse_csv
from ansatz.data.files import (
    LIMIT_BYTES,
    checked_path,
    read_bytes,
    read_member,
    read_npz,
    split_member,
)
from ansatz.data.frames import as_frame
from ansatz.data.package_files import PACKAGE_FILES, read_package_file
from ansatz.errors import DataError, MissingExtraError
from ansatz.storage.decoding import decoding

if TYPE_CHECKING:
    import pandas as pd

_ARCHIVES = {".bz2", ".xz", ".zst", ".7z", ".tar", ".tgz"}
_SHEETS = {".ods", ".por", ".pkl", ".pickle", ".h5", ".mat"}


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
    header: bool | None = None,
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

    Workbooks of Excel, files of Stata, SPSS, SAS and R need the extra ``tables``; their value
    labels become levels. A zip archive is read if it holds one table.

    In delimited text an empty cell is missing. ``NA NaN nan NULL null None`` are missing in a
    column that otherwise holds numbers, and levels like any other in a column of text; both are
    listed in ``notes``. A row with too few or too many cells is an error, never a shift of columns.

    Args:
        path: a local file; ``archive.zip!table.csv`` or ``book.xlsx!Sheet2`` name a part of it.
        delimiter: one character or ``"whitespace"``; None looks at the file.
        header: whether the first row names the columns; otherwise they are x1, x2, ... None: it
            does, but with ``names`` only if it holds words above numbers.
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
    dialect = Dialect(
        delimiter, header, names, comment, missing, text, strict, encoding, decimal, allow_empty
    )
    file, member = split_member(path)
    return _read(checked_path(file), member, str(path), dialect, limit_bytes)


def _read(path: Path, member: str | None, origin: str, dialect: Dialect, limit_bytes: int) -> Table:
    ending = path.suffix.lower()
    _refuse_formats(path, ending)
    if ending in (".parquet", ".pq"):
        frame, notes = read_parquet(path, limit_bytes)
    elif ending in (".arrow", ".feather", ".ipc"):
        frame, notes = read_arrow(path)
    elif ending == ".npz":
        frame, notes = read_npz(path, limit_bytes), []
    elif ending == ".zip":
        return _read_zip(path, member, origin, dialect, limit_bytes)
    elif ending in PACKAGE_FILES:
        frame, notes = read_package_file(path, member, limit_bytes)
        frame = _with_words(as_frame(frame), dialect)
    else:
        raw = read_bytes(path, limit_bytes)
        packed = len(raw) != path.stat().st_size or ending == ".gz"
        parsed = parse_csv(raw, origin, dialect, None if packed else path)
        return Table(parsed.frame, origin, parsed.notes, parsed.first_line)
    if len(frame) == 0 and not dialect.allow_empty:
        raise DataError(f"{origin} has columns but no rows.")
    return Table(frame, origin, notes)


def _read_zip(
    path: Path, member: str | None, origin: str, dialect: Dialect, limit_bytes: int
) -> Table:
    """One file of an archive; other formats than text are unpacked under a name of our own."""
    name, raw = read_member(path, member, limit_bytes)
    ending = Path(name).suffix.lower()
    if ending == ".zip":
        raise DataError(f"{path}: '{name}' is an archive itself. Unpack it first.")
    if ending in ("", ".csv", ".tsv", ".txt", ".dat", ".data"):
        parsed = parse_csv(raw, f"{path}!{name}", dialect)
        return Table(parsed.frame, origin, parsed.notes, parsed.first_line)
    with tempfile.TemporaryDirectory(prefix="ansatz-") as folder:
        place = Path(folder, f"table{ending if ending.isascii() else ''}")
        place.write_bytes(raw)
        try:
            table = _read(place, None, f"{path}!{name}", dialect, limit_bytes)
        except DataError as error:
            raise DataError(str(error).replace(str(place), f"{path}!{name}")) from None
    return replace(table, origin=origin)


def _with_words(frame: "pd.DataFrame", dialect: Dialect) -> "pd.DataFrame":
    """Cells that mean "missing", and columns that stay text, as asked."""
    import pandas as pd

    names = [name for name in dialect.text if name in frame.columns]
    cells = {
        name: frame[name].map(level_name, na_action="ignore").astype(object)
        for name in names
        if pd.api.types.is_numeric_dtype(frame[name].dtype)
    }
    gone = set(dialect.missing)
    if gone:
        for name in frame.columns:
            absent = frame[name].astype(str).isin(gone)
            if absent.any():
                cells[name] = frame[name].where(~absent).infer_objects()
    return frame.assign(**cells) if cells else frame


def _refuse_formats(path: Path, ending: str) -> None:
    if ending in _ARCHIVES:
        raise DataError(
            f"{path}: {ending} archives are not read. Unpack it first (.gz and .zip are read)."
        )
    if ending in _SHEETS:
        raise DataError(f"{path}: {ending} files are not read. Save it as CSV or Parquet.")


def read_parquet(path: Path, limit_bytes: int) -> "tuple[pd.DataFrame, list[str]]":
    """The rows of a Parquet file, refused if its own metadata say it unpacks beyond the limit."""
    arrow = _import("parquet", "Parquet files")
    with decoding(path, "Parquet file"):
        with arrow.parquet.ParquetFile(path) as file:
            meta = file.metadata
            size = sum(meta.row_group(k).total_byte_size for k in range(meta.num_row_groups))
            if size > limit_bytes:
                raise DataError(f"{path} unpacks to {size:,} bytes, more than {limit_bytes:,}.")
            table = file.read()
        return _to_frame(table, path)


def read_arrow(path: Path) -> "tuple[pd.DataFrame, list[str]]":
    """The rows of an Arrow IPC file (Feather) or stream."""
    arrow = _import("ipc", "Arrow files")
    with decoding(path, "Arrow file"), arrow.memory_map(str(path)) as file:
        try:
            table = arrow.ipc.open_file(file).read_all()
        except arrow.ArrowInvalid:
            file.seek(0)
            table = arrow.ipc.open_stream(file).read_all()
        return _to_frame(table, path)


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
