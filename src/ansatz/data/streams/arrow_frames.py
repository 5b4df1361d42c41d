"""Parquet and Arrow tables, batch by batch."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.data.table import _import
from ansatz.errors import DataError
from ansatz.storage.decoding import decoding

if TYPE_CHECKING:
    import pandas as pd

BATCH_ROWS = 32_768
PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")


class ArrowParts:
    """The row groups of Parquet files or the record batches of Arrow files, each by its number."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        self.counts: list[int] = []
        self.bytes: list[int] = []
        self._places: list[tuple[int, int]] = []  # file, group
        self._open: tuple[int, Any] | None = None
        self.names: list[str] = []
        for number, path in enumerate(paths):
            self._index(number, path)

    def _index(self, number: int, path: Path) -> None:
        file = self._file(number)
        with _reading(path):
            schema = file.schema_arrow if _is_parquet(path) else file.schema
            self._check_names(path, [str(name) for name in schema.names])
            for group, (rows, size) in enumerate(_groups(file, path)):
                self.counts.append(rows)
                self.bytes.append(size)
                self._places.append((number, group))

    def _check_names(self, path: Path, names: list[str]) -> None:
        names = [name for name in names if not name.startswith("__index_level_")]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise DataError(f"{path}: several columns are called '{doubled[0]}'. Rename them.")
        if not self.names:
            self.names = names
        odd = sorted(set(names) ^ set(self.names))
        if odd:
            where = "lacks" if odd[0] in self.names else "has beyond the others"
            raise DataError(f"{path} {where} the column '{odd[0]}': parts of one table differ.")

    def read(self, number: int) -> "pd.DataFrame":
        """The rows of one group, columns in the order of the first file."""
        place, group = self._places[number]
        path, file = self.paths[place], self._file(place)
        with _reading(path):
            if _is_parquet(path):
                table = file.read_row_group(group, columns=self.names, use_threads=False)
            else:
                arrow = _import("ipc", "Arrow files")
                table = arrow.Table.from_batches([file.get_batch(group)])
            return to_frame(table.select(self.names), path)

    def batches(self) -> "Iterator[pd.DataFrame]":
        """All rows in frames of at most 32,768."""
        for number, path in enumerate(self.paths):
            file = self._file(number)
            with _reading(path):
                if _is_parquet(path):
                    yield from self._parquet_batches(file, path)
                    continue
            for group in [k for k, (place, _) in enumerate(self._places) if place == number]:
                frame = self.read(group)
                for first in range(0, len(frame), BATCH_ROWS):
                    yield frame.iloc[first : first + BATCH_ROWS]

    def _parquet_batches(self, file: Any, path: Path) -> "Iterator[pd.DataFrame]":
        arrow = _import("parquet", "Parquet files")
        for batch in file.iter_batches(BATCH_ROWS, columns=self.names, use_threads=False):
            yield to_frame(arrow.Table.from_batches([batch]).select(self.names), path)

    def _file(self, number: int) -> Any:
        """The file, the last one kept open."""
        if self._open is None or self._open[0] != number:
            self._open = (number, _open(self.paths[number]))
        return self._open[1]


def to_frame(table: Any, path: Path) -> "pd.DataFrame":
    """An Arrow table as pandas; exact decimals become floating point."""
    arrow = _import("types", "Arrow files")
    for place, field in enumerate(table.schema):
        kind = field.type
        if arrow.types.is_dictionary(kind):
            if kind.ordered:
                raise DataError(
                    f"{path}: column '{field.name}' holds ordered categories, whose order a stream "
                    f"cannot know whole: --role '{field.name}=low<middle<high', stored as text."
                )
            table = table.set_column(place, field.name, table.column(place).cast(kind.value_type))
        elif arrow.types.is_decimal(kind):
            table = table.set_column(place, field.name, table.column(place).cast("float64"))
    return table.to_pandas(ignore_metadata=True)


def _open(path: Path) -> Any:
    arrow = _import("parquet" if _is_parquet(path) else "ipc", "Parquet and Arrow files")
    with _reading(path):
        if _is_parquet(path):
            return arrow.parquet.ParquetFile(path)
        # Read, not mapped: mapped pages would count as this process's memory.
        return arrow.ipc.open_file(arrow.OSFile(str(path)))


def _groups(file: Any, path: Path) -> Iterator[tuple[int, int]]:
    """Rows and bytes of each group."""
    if _is_parquet(path):
        meta = file.metadata
        for k in range(meta.num_row_groups):
            group = meta.row_group(k)
            yield group.num_rows, max(group.total_byte_size, 8 * group.num_rows * meta.num_columns)
        return
    arrow = _import("ipc", "Arrow files")
    with arrow.memory_map(str(path)) as mapped:  # the batches' sizes, without their contents
        for k in range(file.num_record_batches):
            batch = arrow.ipc.open_file(mapped).get_batch(k)
            yield batch.num_rows, batch.get_total_buffer_size()


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in PARQUET


def _reading(path: Path) -> AbstractContextManager[None]:
    return decoding(path, "Parquet file" if _is_parquet(path) else "Arrow file")
