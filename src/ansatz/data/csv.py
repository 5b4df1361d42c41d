"""Delimited text as a table, with errors that name the cell."""

import csv
import io
import re
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ansatz.data.categorical import spelled
from ansatz.data.cells import BadCell, settle
from ansatz.data.header import Header, read_header, sniff_delimiter, to_utf8
from ansatz.data.spelling import find_spelling
from ansatz.errors import DataError, UsageError

if TYPE_CHECKING:
    import pandas as pd

_NEWLINE, _QUOTE, _BLANK, _TAB = 10, 34, 32, 9


class UnevenRow(NamedTuple):
    """A row whose number of cells is not the header's."""

    line: int
    cells: int


def first_uneven(
    text: bytes, start: int, first_line: int, width: int, delimiter: str
) -> UnevenRow | None:
    r"""The first row with more or fewer than ``width`` cells, or None."""
    codes = np.frombuffer(text, np.uint8)[start:]
    quoted = text.find(b'"', start) >= 0
    outside = _outside_quotes(codes, delimiter) if quoted else None
    if outside is None and quoted and delimiter != "whitespace":
        return _first_uneven_slowly(text[start:], first_line, width, delimiter)
    ends = codes == _NEWLINE
    if outside is not None:
        ends &= outside
    lines = np.append(np.flatnonzero(ends), len(codes))  # where each record ends
    begins = np.append(0, lines[:-1] + 1)
    if delimiter == "whitespace":
        cells = np.diff(np.searchsorted(_word_starts(codes, outside), lines), prepend=0)
        full = cells > 0
    else:
        marks = codes == ord(delimiter)
        if outside is not None:
            marks &= outside
        cells = np.diff(np.searchsorted(np.flatnonzero(marks), lines), prepend=0) + 1
        full = lines > begins
    for k in np.flatnonzero(full & (cells != width)):
        begin, end = start + int(begins[k]), start + int(lines[k])
        if text[begin:end].strip():  # a line of blanks is a blank line
            return UnevenRow(first_line + text.count(b"\n", start, begin), int(cells[k]))
    return None


def _word_starts(codes: np.ndarray, outside: np.ndarray | None) -> np.ndarray:
    gap = (codes == _BLANK) | (codes == _TAB) | (codes == _NEWLINE)
    if outside is not None:
        gap &= outside
    return np.flatnonzero(~gap & np.append(True, gap[:-1]))


def _outside_quotes(codes: np.ndarray, delimiter: str) -> np.ndarray | None:
    """True where a character is not inside quotes; None where a quote stands within a cell."""
    quotes = codes == _QUOTE
    inside = np.bitwise_xor.accumulate(quotes)  # a doubled quote closes and opens again
    blanks = [_BLANK, _TAB] if delimiter == "whitespace" else [ord(delimiter)]
    edges = np.array([_NEWLINE, _QUOTE, *blanks], np.uint8)
    opening = np.flatnonzero(quotes & inside)
    closing = np.flatnonzero(quotes & ~inside)
    before = codes[opening[opening > 0] - 1]
    after = codes[closing[closing < len(codes) - 1] + 1]
    if not (np.isin(before, edges).all() and np.isin(after, edges).all()):
        return None
    return ~inside


def _first_uneven_slowly(
    body: bytes, first_line: int, width: int, delimiter: str
) -> UnevenRow | None:
    """The same by Python's own reader, for files with quotes in odd places."""
    reader = csv.reader(
        io.StringIO(body.decode(), newline=""), delimiter=delimiter, skipinitialspace=True
    )
    line = 0
    for row in reader:
        if len(row) != width and any(cell.strip() for cell in row):
            return UnevenRow(first_line + line, len(row))
        line = reader.line_num
    return None


@dataclass(frozen=True)
class Dialect:
    """The dialect of a delimited file: options of :func:`ansatz.data.read_table`."""

    delimiter: str | None = None
    header: bool | None = None
    names: Sequence[str] | None = None
    comment: str | None = None
    missing: Collection[str] = ()
    text: Collection[str] = ()
    strict: Collection[str] | None = None
    encoding: str | None = None
    decimal: str = "."
    allow_empty: bool = False

    def __post_init__(self) -> None:
        mark = self.delimiter
        if mark not in (None, "whitespace") and (
            len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0'
        ):
            raise UsageError(f"delimiter must be one character or 'whitespace', got {mark!r}.")
        if self.decimal not in (".", ",") or self.decimal == mark:
            raise UsageError(f"decimal must be . or , and not the delimiter, got {self.decimal!r}.")


class Parsed(NamedTuple):
    r"""A table that was read: its rows, what was assumed, and the line of its first row."""

    frame: "pd.DataFrame"
    notes: list[str]
    first_line: int


def parse_csv(
    raw: bytes,
    origin: str,
    dialect: Dialect,
    path: Path | None = None,
    *,
    lines_before: int = 0,
    rows_before: int = 0,
) -> Parsed:
    r"""The rows of a delimited text.

    Blanks after a delimiter are dropped. Cells in double quotes may hold delimiters and line ends.
    """
    text, notes = to_utf8(raw, origin, dialect.encoding)
    if dialect.comment:
        # Emptied, not removed: line numbers stay true.
        text = re.sub(rb"(?m)^" + re.escape(dialect.comment.encode()) + rb"[^\n]*", b"", text)
    if not text.lstrip():
        raise DataError(f"{origin} is empty. Expected a table with one row per line.")
    delimiter = dialect.delimiter or sniff_delimiter(text)
    if delimiter == dialect.decimal:
        raise DataError(f"{origin} seems to be cut by '{delimiter}', which is the decimal mark.")
    header = read_header(text, origin, delimiter, header=dialect.header, names=dialect.names)
    notes += header.notes
    header = header._replace(first_line=header.first_line + lines_before)
    if text is not raw:
        path = None
    reader = _Reader(text, origin, dialect, delimiter, header, path, rows_before)
    if text.find(b"\n", header.start) < 0 and not text[header.start :].strip():
        return Parsed(reader.empty(), notes, header.first_line)
    return Parsed(reader.frame(notes), notes, header.first_line)


@dataclass(frozen=True)
class _Reader:
    """Reads by pandas' parser, and raises errors where pandas would repair silently."""

    text: bytes
    origin: str
    dialect: Dialect
    delimiter: str
    header: Header
    path: Path | None
    rows_before: int = 0

    def empty(self) -> "pd.DataFrame":
        import pandas as pd

        if not self.dialect.allow_empty:
            raise DataError(f"{self.origin} has a header but no rows.")
        return pd.DataFrame({name: pd.Series([], dtype=float) for name in self.header.names})

    def frame(self, notes: list[str]) -> "pd.DataFrame":
        """The table: numbers where all cells are numbers, text elsewhere."""
        import pandas as pd

        self._check_first_row()
        frame = self._read()
        if frame.empty:
            return self.empty()
        if not self._is_rectangular(frame):
            self._check_widths()
        again = [k for k, dtype in enumerate(frame.dtypes) if _is_unsettled(frame, k, dtype)]
        if again:  # True/False, integers beyond 64 bits, kinds that differ between chunks
            frame = self._replace(frame, self._read(columns=again))
        return self._replace(frame, pd.DataFrame(self._settle(frame, notes)))

    def _settle(self, frame: "pd.DataFrame", notes: list[str]) -> dict[str, Any]:
        import pandas as pd

        settled: dict[str, Any] = {}
        for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
            if dtype.kind == "u":
                settled[name] = frame[name].astype(float)
                notes.append(f"column '{name}': integers beyond 2^63 read as floating point.")
            elif not pd.api.types.is_numeric_dtype(dtype) and name not in self.dialect.text:
                try:
                    column, note = settle(frame[name], self.dialect.decimal)
                except BadCell as cell:
                    if self.dialect.strict is not None and name not in self.dialect.strict:
                        continue
                    if _is_spelled(frame[name]):
                        continue
                    raise DataError(self._explain(name, cell)) from None
                if pd.api.types.is_numeric_dtype(column.dtype):
                    settled[name] = column
                elif note and _is_spelled(frame[name]):
                    continue
                if note:
                    notes.append(f"column '{name}': {note}.")
        return settled

    def _explain(self, name: str, cell: BadCell) -> str:
        where = f"{self.origin}, row {self.rows_before + cell.row + 1}, column '{name}'"
        shown = cell.value if len(cell.value) <= 40 else cell.value[:37] + "..."
        if cell.comma:
            advice = "If the comma is the decimal mark: --decimal ,"
        else:
            advice = f"To read it as missing: --missing {shown}"
        return f"{where}: expected a number, got '{shown}'. {advice}"

    def _replace(self, frame: "pd.DataFrame", columns: "pd.DataFrame") -> "pd.DataFrame":
        """Whole-column replacement by one concatenation: thousands of columns stay quick."""
        import pandas as pd

        if columns.shape[1] == 0:
            return frame
        kept = frame.drop(columns=list(columns.columns))
        return pd.concat([kept, columns], axis=1)[list(frame.columns)]

    def _read(self, columns: list[int] | None = None) -> "pd.DataFrame":
        import pandas as pd

        names = self.header.names
        simple = self.path is not None and self.text.count(b"\n", 0, self.header.start) <= 1
        as_text = names if columns is not None else [n for n in names if n in self.dialect.text]
        try:
            with warnings.catch_warnings():
                # Kinds that differ between chunks: such columns are read again, as text.
                warnings.simplefilter("ignore", pd.errors.DtypeWarning)
                return pd.read_csv(
                    self.path if simple else io.BytesIO(self.text[self.header.start :]),
                    sep=r"\s+" if self.delimiter == "whitespace" else self.delimiter,
                    header=None,
                    names=names,
                    index_col=False,  # else a wide row silently shifts its cells
                    usecols=columns,
                    skiprows=int(simple and self.header.start > 0),
                    dtype=dict.fromkeys(as_text, str),
                    keep_default_na=False,
                    na_values=["", *self.dialect.missing],
                    skipinitialspace=True,
                    decimal=self.dialect.decimal,
                    **_exact(pd.__version__),
                    engine="c",
                )
        except pd.errors.EmptyDataError:
            return pd.DataFrame(columns=names)
        except pd.errors.ParserError as error:
            self._check_widths()
            said = " ".join(str(error).replace("Error tokenizing data. C error:", "").split())
            raise DataError(f"{self.origin}: cannot be read as a table: {said}.") from None

    def _is_rectangular(self, frame: "pd.DataFrame") -> bool:
        """A quick proof that no row is too short or too long; where it fails, rows are counted.

        pandas pads a short row with missing values, so without one in the last column none is
        short; then rows are as long as the header if all delimiters are accounted for.
        """
        if self.delimiter == "whitespace" or frame.iloc[:, -1].isna().any():
            return False
        found, mark = self.text.count(self.delimiter.encode(), self.header.start), self.delimiter
        expected = len(frame) * (len(self.header.names) - 1)
        if found > expected and self.text.find(b'"', self.header.start) >= 0:
            quoted = re.findall(rb'"[^"]*"', self.text[self.header.start :])
            found -= b"".join(quoted).count(mark.encode())
        return found == expected

    def _check_first_row(self) -> None:
        """pandas takes any width for the first row, and cuts it to the names."""
        end = self.header.start
        while self.text.startswith(b"\n", end):
            end += 1
        end = self.text.find(b"\n", end)
        row = self.text if end < 0 else self.text[:end]
        if row.count(b'"', self.header.start) % 2:  # its cells go on in the next line
            self._check_widths()
        else:
            self._check_widths(row)

    def _check_widths(self, text: bytes | None = None) -> None:
        width = len(self.header.names)
        bad = first_uneven(
            self.text if text is None else text,
            self.header.start,
            self.header.first_line,
            width,
            self.delimiter,
        )
        if bad is None:
            return
        said = (
            f"{self.origin}, line {bad.line}: {bad.cells} {'cell' if bad.cells == 1 else 'cells'}, "
            f"expected {width} (delimiter {_spell(self.delimiter)})."
        )
        if text is None and self.text.count(b'"') % 2:
            raise DataError(f"{said} A double quote is opened and never closed.")
        raise DataError(
            f"{said} A cell that holds the delimiter needs double quotes; "
            "row names need a name in the header."
        )


def _is_unsettled(frame: "pd.DataFrame", place: int, dtype: Any) -> bool:
    import pandas as pd

    if not pd.api.types.is_object_dtype(dtype):
        return dtype.kind == "b"
    return pd.api.types.infer_dtype(frame.iloc[:, place], skipna=True) not in ("string", "empty")


def _is_spelled(column: "pd.Series") -> bool:
    """Whether the text spells numbers or dates in a way of its own, which its role shows later.

    Decimal commas alone are an option of the whole file.
    """
    levels = spelled(column)[1]
    try:
        found = find_spelling(str(column.name), levels)
    except DataError:  # several ways: an error only where the column is used
        return True
    if found is None or found.unit or found.decimal == ".":
        return found is not None
    return any("," in level and found.thousands in level for level in levels)


def _spell(delimiter: str) -> str:
    return {"\t": "tab", "whitespace": "whitespace"}.get(delimiter, f"'{delimiter}'")


def _exact(version: str) -> dict[str, str]:
    """Options for pandas below 3.0 to read numbers to the last bit."""
    return {"float_precision": "round_trip"} if int(version.split(".")[0]) < 3 else {}
