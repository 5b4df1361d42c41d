"""Tables in blocks of rows, whatever their format and size."""

import glob
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Protocol

from ansatz.data.csv import Dialect
from ansatz.data.files import checked_path
from ansatz.data.package_files import PACKAGE_FILES
from ansatz.data.streams.arrow_frames import ARROW, PARQUET, ArrowParts
from ansatz.data.streams.block_source import BlockFile
from ansatz.data.streams.chunks import CHUNK_BYTES, delimited_frames
from ansatz.data.streams.kinds import Kinds
from ansatz.data.table import _refuse_formats
from ansatz.errors import DataError, UsageError
from ansatz.storage.disk import explain, forget, new_name, remove, remove_orphans

if TYPE_CHECKING:
    import pandas as pd

LARGEST_GROUP = 32 * 2**20  # bytes of a row group that is still read whole


class _Parts(Protocol):
    counts: list[int]

    def read(self, number: int) -> "pd.DataFrame": ...


class Blocks:
    """Blocks of one table; the index of each counts the rows of the whole table from 0."""

    def __init__(self, origin: str, parts: _Parts, kinds: Kinds, notes: list[str]) -> None:
        self.origin, self.kinds, self.notes = origin, kinds, notes
        self._parts = parts
        self._used = [k for k, count in enumerate(parts.counts) if count]  # no empty ones
        self.counts = [parts.counts[k] for k in self._used]
        self.starts = [0]
        for count in self.counts:
            self.starts.append(self.starts[-1] + count)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def rows(self) -> int:
        """All rows."""
        return self.starts[-1]

    def read(self, number: int) -> "pd.DataFrame":
        """The rows of one block."""
        return self.kinds.settle(self._unsettled(number))

    def _unsettled(self, number: int) -> "pd.DataFrame":
        frame = self._parts.read(self._used[number])
        frame.index = range(self.starts[number], self.starts[number + 1])
        return frame

    def frames(self) -> "Iterator[pd.DataFrame]":
        """All blocks in their order."""
        for number in range(len(self)):
            yield self.read(number)


def open_blocks(
    data: str | Path,
    folder: Path,
    reader: Mapping[str, Any] | None = None,
    *,
    watch: "Callable[[pd.DataFrame], None] | None" = None,
    block_bytes: int = CHUNK_BYTES,
    largest_group: int = LARGEST_GROUP,
) -> Blocks:
    r"""A table of any size, ready to be read block by block in any order.

    Parquet and Arrow files are read where they are; text, and files whose row groups are too large
    to be read at once, are first written to ``folder`` as blocks of numbers and words, which later
    passes read many times as fast.

    Args:
        data: a file (CSV, gz, Parquet, Arrow), a folder of Parquet parts, or a pattern of names.
        folder: where blocks may be written; the caller removes it.
        reader: options of :func:`ansatz.data.read_table`.
        watch: is shown all rows once, in their order.
        block_bytes: text per block, about.
        largest_group: bytes of a row group beyond which the table is written anew.
    """
    paths, kind = find_parts(data)
    origin, kinds = str(data), Kinds(str(data))
    notes: list[str] = []
    show = watch or (lambda frame: None)
    if kind == "arrow":
        parts = ArrowParts(paths)
        if all(size <= largest_group for size in parts.bytes):
            blocks = Blocks(origin, parts, kinds, notes)
            for number in range(len(blocks)):
                frame = blocks._unsettled(number)
                kinds.observe(frame)
                show(kinds.settle(frame))
            return _not_empty(blocks)
    file = BlockFile(folder / "blocks", kinds)
    for frame in _frames(paths, kind, origin, reader or {}, kinds, notes, block_bytes):
        file.append(frame)
        show(frame)
    return _not_empty(Blocks(origin, file, kinds, notes))


def read_blocks(
    data: str | Path,
    reader: Mapping[str, Any] | None = None,
    *,
    notes: list[str] | None = None,
    block_bytes: int = CHUNK_BYTES,
) -> "Iterator[pd.DataFrame]":
    r"""All rows of a table in their order, in frames; nothing is written."""
    paths, kind = find_parts(data)
    kinds = Kinds(str(data))
    said = notes if notes is not None else []
    for frame in _frames(paths, kind, str(data), reader or {}, kinds, said, block_bytes):
        yield kinds.settle(frame)


def find_parts(data: str | Path) -> tuple[list[Path], str]:
    """The files of a table, and whether they are ``"arrow"`` (or Parquet) or ``"text"``."""
    place = Path(data)
    if place.is_dir():
        paths = sorted(p for p in place.iterdir() if p.suffix.lower() in (*PARQUET, *ARROW))
        if not paths:
            there = sorted(p.name for p in place.iterdir() if p.is_file() and p.name[0] != ".")
            held = f" It holds {', '.join(there[:3])}: name a file." if there else ""
            raise DataError(f"{data} is a folder without images, Parquet or Arrow files.{held}")
    elif "*" in str(data) and not place.exists():
        paths = sorted(Path(name) for name in glob.glob(str(data)))
        if not paths:
            raise DataError(f"{data}: no file has such a name.")
    else:
        paths = [place]
    paths = [checked_path(path) for path in paths]
    endings = {path.suffix.lower() for path in paths}
    if endings <= set(PARQUET) or endings <= set(ARROW):
        return paths, "arrow"
    if len(paths) > 1:
        raise DataError(f"{data}: several files are read as one only if all are Parquet or Arrow.")
    _refuse_formats(paths[0], paths[0].suffix.lower())
    if paths[0].suffix.lower() in (".npz", ".zip", *PACKAGE_FILES):
        ending = paths[0].suffix.lower()
        raise UsageError(f"{data}: {ending} files are read at once: --no-stream")
    return paths, "text"


def _frames(
    paths: list[Path],
    kind: str,
    origin: str,
    reader: Mapping[str, Any],
    kinds: Kinds,
    notes: list[str],
    block_bytes: int,
) -> "Iterator[pd.DataFrame]":
    if kind == "text":
        dialect = Dialect(**{k: v for k, v in reader.items() if k != "limit_bytes"})
        yield from delimited_frames(
            paths[0], origin, dialect, kinds, notes=notes, block_bytes=block_bytes
        )
        return
    row = 0
    for frame in ArrowParts(paths).batches():
        frame.index = range(row, row + len(frame))
        kinds.observe(frame)
        row += len(frame)
        yield frame


def _not_empty(blocks: Blocks) -> Blocks:
    if blocks.rows == 0:
        raise DataError(f"{blocks.origin} has columns but no rows.")
    return blocks


@contextmanager
def stream_folder(beside: str | Path | None = None) -> Iterator[Path]:
    """A temporary folder beside ``beside``, or where the system keeps such; removed at the end.

    What a killed process left under such a name, the next one removes.
    """
    parent = Path(gettempdir()) if beside is None else Path(beside).absolute().parent
    folder = parent / new_name()
    try:
        remove_orphans(parent)
        folder.mkdir()
    except OSError as error:
        forget(folder.name)
        raise explain(error, folder) from error
    try:
        yield folder
    finally:
        remove(folder)
        forget(folder.name)
