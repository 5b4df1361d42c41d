"""Reads texts with the columns beside them: tables, JSON lines, folders of text files."""

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.data.files import checked_path, read_bytes
from ansatz.data.frames import as_frame
from ansatz.data.table import read_table
from ansatz.data.validation_table import append_validation
from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

CLASS, TEXT = "class", "text"  # columns of a folder of text files


def read_texts(
    data: Any, text: str | Sequence[str] | None = None, validation_data: Any = None, **options: Any
) -> "tuple[str, pd.DataFrame, list[str]]":
    """What errors call the data, a table with a column of texts, and notes.

    The rows of ``validation_data`` follow those of ``data``, marked in the column
    :data:`~ansatz.data.validation_table.PART`.

    Args:
        data: a table's file, JSON lines, a folder of ``.txt`` by class, a data set's name or a
            frame.
        text: the columns of texts, which are read as text whatever they look like.
        validation_data: rows that stop the training, in any of these forms; None for none.
        options: of :func:`~ansatz.data.read_table`.
    """
    from ansatz.data.registry import load, names

    if validation_data is not None:
        origin, frame, notes = read_texts(data, text, **options)
        place, more, new = read_texts(validation_data, text, **options)
        place = place if isinstance(validation_data, str | PathLike) else "validation_data"
        stop = f"{len(more)} rows of {place} stop the training."
        return origin, append_validation(frame, place, more), [*notes, *new, stop]
    if not isinstance(data, str | PathLike):
        frame = as_frame(data)
        return "the table", frame.rename(columns=str), []
    path = Path(data)
    if isinstance(data, str) and data in names() and not path.exists():
        return data, load(data).frame, []
    if path.is_dir():
        return str(data), _folder(path, options.get("encoding")), []
    if path.name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        return str(data), _json_lines(path, options.get("encoding")), []
    columns = [text] if isinstance(text, str) else list(text or ())
    table = read_table(data, **{"text": columns, **options})
    return table.origin, table.frame, list(table.notes)


def decode(raw: bytes, origin: object, encoding: str | None = None) -> str:
    """Text from bytes; an invalid byte is named by its place."""
    try:
        return raw.decode(encoding or "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{origin} is not {encoding or 'utf-8'}: byte {raw[error.start]:#04x} at offset "
            f"{error.start}. Name its encoding: --encoding latin-1"
        ) from None
    except LookupError:
        raise DataError(f"no encoding is called '{encoding}'.") from None


def _folder(folder: Path, encoding: str | None) -> "pd.DataFrame":
    """A text for each file, its class being the folder that holds it."""
    import pandas as pd

    files = sorted(folder.glob("*/*.txt")) or sorted(folder.glob("*.txt"))
    rows = [(decode(read_bytes(f), f, encoding), f.parent.name, f.name) for f in files]
    frame = pd.DataFrame(rows, columns=[TEXT, CLASS, "file"])
    keep = [TEXT, CLASS] if files and files[0].parent != folder else [TEXT]
    return frame[keep]


def _json_lines(path: Path, encoding: str | None) -> "pd.DataFrame":
    import pandas as pd

    lines = decode(read_bytes(checked_path(path)), path, encoding).splitlines()
    records: list[Mapping[str, Any]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: not JSON: {error}.") from None
        if not isinstance(record, dict):
            raise DataError(f"{path}, line {number}: expected an object like {{...}}.")
        records.append(record)
    if not records:
        raise DataError(f"{path} is empty.")
    return pd.DataFrame(records)
