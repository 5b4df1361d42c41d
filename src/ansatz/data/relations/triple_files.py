"""Reads triples (head, relation, tail): files without a header, folders of parts, data sets."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ansatz.data.frames import as_frame, is_frame
from ansatz.data.registry import load, names
from ansatz.data.table import read_table
from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("head", "relation", "tail")
PART = "part"
_PARTS = {"train": "train", "valid": "validation", "validation": "validation", "test": "test"}
_HEADERS = ({"head", "subject", "source", "h"}, {"tail", "object", "target", "destination", "t"})
_ENDINGS = (".tsv", ".txt", ".nt")


class TripleTable(NamedTuple):
    """Triples, or pairs of entity and relation, as they were read."""

    origin: str
    frame: "pd.DataFrame"  # head, relation, tail where there is one, part where data have parts
    notes: tuple[str, ...] = ()

    @property
    def has_tails(self) -> bool:
        """Whether the answers are there."""
        return COLUMNS[2] in self.frame


def are_triples(data: Any, options: Mapping[str, Any]) -> bool:
    """Tests whether data are triples by a cheap look: options, names and shapes."""
    if options.get("relation") is not None:
        return True
    if any(options.get(name) is not None for name in ("edges", "nodes", "source", "identifier")):
        return False
    if isinstance(data, str) and data in names() and not Path(data).exists():
        return _is_named(data)
    if isinstance(data, str | PathLike):
        path = Path(data)
        ending = path.name.lower().removesuffix(".gz").endswith(_ENDINGS)
        return bool(_part_files(path)) if path.is_dir() else ending
    if is_frame(data):
        return set(COLUMNS) <= set(as_frame(data).columns)
    return isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] == 3


def _is_named(name: str) -> bool:
    from ansatz.data.registry import describe

    return set(COLUMNS) <= set(describe(name).columns)


def _part_files(folder: Path) -> dict[str, Path]:
    """The files of a folder that are called train, valid or test."""
    files = sorted(folder.iterdir())
    stems = {file: file.name.lower().removesuffix(".gz").partition(".")[0] for file in files}
    return {_PARTS[stem]: file for file, stem in stems.items() if stem in _PARTS}


def read_triples(data: Any, options: Mapping[str, Any]) -> TripleTable:
    """Reads triples; equal ones of one part are kept once, and counted in a note.

    Args:
        data: a file, a folder with train, valid and test, a table, or the name of a data set.
        options: ``source``, ``relation`` and ``destination`` name the columns of a table.
    """
    if isinstance(data, str) and data in names() and not Path(data).exists():
        found = TripleTable(data, load(data).frame)
    elif isinstance(data, str | PathLike) and Path(data).is_dir():
        found = _folder(Path(data), options)
    elif isinstance(data, str | PathLike):
        found = _file(data, options)
    else:
        found = TripleTable("the triples", _named_columns(as_frame(data), "the triples", options))
    frame = found.frame.drop_duplicates([name for name in COLUMNS if name in found.frame])
    gone = len(found.frame) - len(frame)
    if not len(frame):
        raise DataError(f"{found.origin} holds no triples.")
    notes = (f"{gone:,} repeated triples were left out.",) if gone else ()
    return found._replace(frame=frame.reset_index(drop=True), notes=(*found.notes, *notes))


def _folder(folder: Path, options: Mapping[str, Any]) -> TripleTable:
    import pandas as pd

    files = _part_files(folder)
    if not files:
        raise DataError(f"{folder}: no files of triples; they are called train, valid, test.")
    parts = {part: _file(file, options) for part, file in files.items()}
    frames = [parts[p].frame.assign(part=p) for p in ("train", "validation", "test") if p in parts]
    return TripleTable(str(folder), pd.concat(frames, ignore_index=True))


def _file(path: str | PathLike[str], options: Mapping[str, Any]) -> TripleTable:
    """A table with a header that says so, or lines of triples."""
    how: dict[str, Any] = {"delimiter": options.get("delimiter")}
    if options.get("encoding"):
        how["encoding"] = options["encoding"]
    if str(path).lower().removesuffix(".gz").endswith((".parquet", ".pq", ".npz", ".arrow")):
        frame = read_table(path).frame
        return TripleTable(str(path), _named_columns(frame, str(path), options))
    frame = read_table(path, header=False, **how).frame
    first = [str(cell).strip().lower() for cell in frame.iloc[0]]
    asked = any(options.get(name) for name in ("source", "relation", "destination"))
    if asked or (first[0] in _HEADERS[0] and first[-1] in (*_HEADERS[1], "relation")):
        frame = read_table(path, header=True, text=first, **how).frame
    elif frame.shape[1] in (2, 3):
        frame.columns = list(COLUMNS[: frame.shape[1]])
    return TripleTable(str(path), _named_columns(frame, str(path), options))


def _named_columns(
    frame: "pd.DataFrame", origin: str, options: Mapping[str, Any]
) -> "pd.DataFrame":
    """The columns of head, relation and tail as text."""
    asked = (options.get("source"), options.get("relation"), options.get("destination"))
    columns = [str(name) for name in frame.columns]
    for name in asked:
        if name is not None and name not in columns:
            raise DataError(f"{origin}: no column '{name}'. Columns: {', '.join(columns[:20])}.")
    if not any(asked) and not set(COLUMNS[:2]) <= set(columns):
        if len(columns) not in (2, 3):
            raise DataError(
                f"{origin}: triples have three columns, head, relation and tail; these have "
                f"{len(columns)}. Name them with --source, --relation and --destination."
            )
        frame = frame.set_axis(list(COLUMNS[: len(columns)]), axis=1)
        columns = list(frame.columns)
    chosen = [name or default for name, default in zip(asked, COLUMNS, strict=True)]
    there = [(name, new) for name, new in zip(chosen, COLUMNS, strict=True) if name in columns]
    if len(there) < 2 or there[1][1] != "relation":
        raise DataError(
            f"{origin}: no columns head and relation. Name them with --source and --relation."
        )
    names, new = map(list, zip(*there, strict=True))
    found = frame[names].set_axis(new, axis=1)
    empty = found.isna().any(axis=1).to_numpy()
    if empty.any():
        row = int(np.flatnonzero(empty)[0]) + 1
        raise DataError(f"{origin}, row {row}: a triple needs a head, a relation and a tail.")
    found = found.astype(str)
    return found.assign(part=frame[PART]) if PART in columns and not any(asked) else found
