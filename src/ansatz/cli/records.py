"""A table as one JSON document: a list of records."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ansatz.cli.document import plain

if TYPE_CHECKING:
    import pandas as pd

_BLOCK = 10_000  # rows; a reader that closes the pipe is noticed between blocks


def json_blocks(frames: "Iterable[pd.DataFrame]") -> Iterator[bytes]:
    r"""Frames as a JSON list of their rows, a line each, in blocks of UTF-8.

    Args:
        frames: parts of one table; the index is the row's id and becomes ``"row"``.
    """
    before = "[\n  "
    for frame in frames:
        frame = frame.rename_axis(index=frame.index.name or "row").reset_index()
        names = [str(name) for name in frame.columns]
        for start in range(0, len(frame), _BLOCK):
            block = frame.iloc[start : start + _BLOCK]
            rows = zip(*(block[name].tolist() for name in block.columns), strict=True)
            lines = [_line(dict(zip(names, row, strict=True))) for row in rows]
            yield (before + ",\n  ".join(lines)).encode("utf-8", "backslashreplace")
            before = ",\n  "
    yield b"[]\n" if before == "[\n  " else b"\n]\n"


def _line(record: dict[str, object]) -> str:
    return json.dumps(plain(record), allow_nan=False, ensure_ascii=False)
