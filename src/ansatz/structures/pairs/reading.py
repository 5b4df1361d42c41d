"""Reads pairs: two columns of a table, two files line by line, a named data set."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ansatz.data.files import checked_path, read_bytes
from ansatz.data.grids import Grids, read_grids
from ansatz.data.grids.listing import family
from ansatz.data.registry import names as names_of_sets
from ansatz.data.sequences.pairs import Pairs
from ansatz.data.sequences.reading import decode, read_texts
from ansatz.data.sequences.sequences import Texts
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles, near_columns
from ansatz.fitting.tensor_structure import Read

SOURCE, TARGET, PART = "source", "target", "part"  # columns of data without names of their own
_TABLES = (".csv", ".tsv", ".parquet", ".pq", ".arrow", ".feather", ".jsonl", ".ndjson", ".xlsx")


def read_pairs(data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
    """Reads pairs, or sources alone where they are to be translated."""
    reader = dict(reader)
    translation, text = reader.pop("translation", None), reader.pop("text_column", None)
    target = column_roles.target[0] if column_roles.target else None
    if translation is not None or _is_lines(data):
        origin, frame, notes = str(data), _lines(data, translation, target, reader), list[str]()
    else:
        if isinstance(data, str | PathLike) and ".tsv" in Path(data).suffixes:
            reader.setdefault("delimiter", "\t")
        origin, frame, notes = read_texts(data, text, **reader)
    if not len(frame):
        raise DataError(f"{origin} holds no pairs.")
    rows_beside = [PART] if PART in frame.columns else []
    words = [str(name) for name in frame.columns if name not in rows_beside]
    if target is None or (target not in words and column_roles.target == [TARGET]):
        target = words[-1] if len(words) > 1 else None
    source = text or next((name for name in words if name != target), None)
    if source is None or source not in words:
        raise DataError(f"{origin}: no column '{source or SOURCE}' to translate from.")
    rows = Pairs(_source(frame[source], data, origin))
    beside = frame.drop(columns=source)
    if target is None:
        return Read(origin, rows, beside, None, tuple(notes))
    if target not in words:
        if not column_roles.target:
            raise UsageError(f"{origin}: no column '{target}'. {near_columns(target, frame)}")
        return Read(origin, rows, beside, target, tuple(notes))
    written = frame[target].map(lambda text: text if isinstance(text, str) else "")
    rows.targets = Texts(written)
    empty = _blank(written)
    if isinstance(rows.source, Texts):
        empty |= _blank(pd.Series(rows.source.texts))
    if empty.any():
        notes.append(f"pairs with an empty side: {int(empty.sum())} of {len(frame)}.")
    beside = beside.assign(**{target: written.mask(empty, None)})
    return Read(origin, rows, beside, target, tuple(notes))


def require_target(read: Read) -> None:
    """Refuses data of one column where pairs are needed."""
    if read.target is None or read.rows.targets is None:
        raise DataError(
            f"{read.origin} has one column: a translation needs two, the text and its translation "
            "(or a second file: --translation FILE)."
        )


def _is_lines(data: Any) -> bool:
    """Tests whether data are a file of lines and no table."""
    if not isinstance(data, str | PathLike) or (data in names_of_sets()):
        return False
    name = Path(data).name.lower().removesuffix(".gz")
    return not name.endswith(_TABLES) and Path(data).is_file()


def _lines(
    data: Any, translation: Any, target: str | None, reader: Mapping[str, Any]
) -> pd.DataFrame:
    """A text in each line, and its translation in the same line of another file."""
    encoding = reader.get("encoding")
    texts = read_lines(data, encoding)
    if translation is None:
        return pd.DataFrame({SOURCE: texts})
    others = read_lines(translation, encoding)
    if len(texts) != len(others):
        raise DataError(
            f"{data} has {len(texts):,} lines and {translation} {len(others):,}: line k of one is "
            "the translation of line k of the other."
        )
    return pd.DataFrame({SOURCE: texts, target or TARGET: others})


def read_lines(data: Any, encoding: str | None = None) -> list[str]:
    """The lines of a text file, also a gzipped one."""
    text = decode(read_bytes(checked_path(data)), data, encoding)
    return text.removesuffix("\n").replace("\r\n", "\n").split("\n") if text else []


def _source(column: pd.Series, data: Any, origin: str) -> Texts | Grids:
    """Texts, or the images that a column names; their paths begin at the table's folder."""
    first = next((text for text in column if isinstance(text, str)), "")
    if len(first) > 300 or family(Path(first)) is None:
        try:
            return Texts(column)
        except DataError as error:
            raise DataError(f"{origin}, column '{column.name}': {error}") from None
    folder = Path(data).parent if isinstance(data, str | PathLike) else Path()
    found: Grids = read_grids([folder / str(name) for name in column]).grids
    return found


def _blank(texts: pd.Series) -> np.ndarray:
    found: np.ndarray = (texts.str.strip() == "").to_numpy(dtype=bool, copy=True)
    return found
