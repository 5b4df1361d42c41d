"""CSV that a spreadsheet may open: text is kept from becoming a formula."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # OWASP, CSV injection (CWE-1236)
_BLOCK = 10_000  # rows; a reader that closes the pipe is noticed between blocks


def escaped(value: Any) -> Any:
    """A string that a spreadsheet would run gets a leading quote; a number stays what it is."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def csv_blocks(frame: "pd.DataFrame", *, raw: bool = False, header: bool = True) -> Iterator[bytes]:
    r"""The frame as CSV, header first, in blocks of UTF-8.

    Args:
        frame: its index is the row's id and becomes the first column.
        raw: True leaves strings as they are.
        header: False leaves out the names of the columns.
    """
    frame = frame.rename_axis(index=frame.index.name or "row")
    if not raw:
        frame = frame.rename(columns=escaped)
        frame.index = frame.index.map(escaped)
    for start in range(0, max(len(frame), 1), _BLOCK):
        block = frame.iloc[start : start + _BLOCK]
        if not raw:
            block = block.apply(lambda column: column.map(escaped) if _is_text(column) else column)
        text = block.to_csv(header=header and start == 0, lineterminator="\n")
        yield text.encode("utf-8", "backslashreplace")


def _is_text(column: "pd.Series") -> bool:
    return column.dtype.kind not in "biufcmM"
