"""Parquet and Arrow files, by pyarrow."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    import pandas as pd


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
