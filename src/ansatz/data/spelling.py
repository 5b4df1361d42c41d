"""Text that spells numbers or dates: ``64.5%``, ``$1,234.50``, ``31.12.2021``."""

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from ansatz.data.cells import MARKERS, MOSTLY
from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

ISO = "ISO8601"
_DAYS = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d/%b/%Y"),
    *("%d. %B %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%d%b%Y"),
)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_FIELDS = {
    **{"%d": r"\d\d?", "%m": r"\d\d?", "%Y": r"\d{4}", "%y": r"\d\d", "%H": r"\d\d?"},
    **{"%M": r"\d\d", "%S": r"\d\d", "%I": r"\d\d?", "%p": "[AaPp][Mm]"},
    **{"%b": "[A-Za-z]{3}", "%B": "[A-Za-z]{3,9}"},
}
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|KRW|TRY"
_SYMBOLS = "".join(c for c in map(chr, range(0x20D0)) if unicodedata.category(c) == "Sc")
_UNIT = rf"(?:(?:US|A|C|NZ|R|HK)?[{re.escape(_SYMBOLS)}]|{_CODES}|Fr\.|kr\.?|zł|Kč)"
_CELL = re.compile(
    rf"(?P<open>\()?(?P<sign>[+\-\u2212])?\s*(?P<before>{_UNIT})?\s*(?P<second>[+\-\u2212])?"
    rf"(?P<digits>\d[\d.,'\u2019 \u00a0\u202f]*|[.,]\d+)\s*(?P<after>{_UNIT}|%)?(?P<close>\))?"
)
_BLANKS = str.maketrans({"\u2019": "'", "\u00a0": " ", "\u202f": " "})
_COMMA_GROUPS = "$£¥₹"  # currencies whose countries write 1,234.50
_ENOUGH = 20  # spellings from which a few odd ones are errors, not levels


class Spelling(BaseModel):
    """How the cells of a column spell numbers or dates.

    Args:
        format: of dates, as ``strptime`` takes it, or ``"ISO8601"``; empty for numbers.
        decimal: the decimal mark of numbers.
        thousands: the mark between groups of three digits, if any.
        unit: what stands before or behind the numbers: a currency or ``%``.
        example: a cell.

    Example:
        >>> import pandas as pd
        >>> from ansatz.data import Spelling
        >>> Spelling(decimal=",", thousands=".", unit="€").read(pd.Series(["1.234,50 €"])).tolist()
        [1234.5]
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: str = ""
    decimal: Literal[".", ","] = "."
    thousands: Literal["", ".", ",", "'", " "] = ""
    unit: str = ""
    example: str = ""

    @property
    def role(self) -> str:
        """The role of such a column."""
        return "date" if self.format else "numeric"

    @property
    def cells(self) -> str:
        """What a cell holds, for messages."""
        if self.format:
            return f"dates written as {self.format} (like '{self.example}')"
        return f"numbers written like '{self.example}'"

    @property
    def note(self) -> str:
        """What was assumed, for the user."""
        return self.cells + (f", the unit {self.unit} left out" if self.unit else "")

    def read(self, column: "pd.Series") -> "pd.Series":
        """The numbers or dates of a column, missing where it is; one that has them is kept.

        A cell of another spelling is an error that names its row.
        """
        import pandas as pd

        kind = getattr(column.dtype, "kind", "O")
        if kind == "M" or isinstance(column.dtype, pd.DatetimeTZDtype):
            return column
        if kind in "fiub" and not (self.format and kind in "iu"):
            return column
        codes, values = pd.factorize(column)
        if kind not in "iu" and not any(isinstance(value, str) for value in values):
            return column.infer_objects()  # read before
        texts = [str(value).strip() for value in values]
        read: Any = self.dates(texts) if self.format else self.numbers(texts)
        marked = np.array([text in MARKERS or not text for text in texts], dtype=bool)
        wrong = np.append(pd.isna(read) & ~marked, False)
        if wrong.any():
            row = int(np.flatnonzero(wrong[codes])[0])
            label = column.index[row]
            number = int(label) + 1 if isinstance(label, int | np.integer) else row + 1
            raise DataError(
                f"row {number}, column '{column.name}': expected {self.cells}, "
                f"got '{texts[codes[row]][:40]}'."
            )
        gap = np.array([np.datetime64("NaT") if self.format else np.nan])
        cells = np.concatenate([read, gap.astype(read.dtype)])[codes]
        return pd.Series(cells, index=column.index, name=column.name)

    def dates(self, texts: Sequence[str]) -> np.ndarray:
        """The moments that texts spell in UTC, NaT for those that spell none."""
        import pandas as pd

        try:
            found = pd.to_datetime(list(texts), format=self.format, errors="coerce", utc=True)
        except ValueError as error:  # a directive that strptime does not know
            raise DataError(f"'{self.format}' is not a format of dates: {error}.") from None
        return found.tz_localize(None).to_numpy()

    def numbers(self, texts: Sequence[str]) -> np.ndarray:
        """The numbers that texts spell, nan for those that spell none."""
        pattern, values = _digits(self.decimal, self.thousands), np.full(len(texts), np.nan)
        for k, text in enumerate(texts):
            cell = _cell(text)
            if cell is not None and pattern.fullmatch(cell.digits) and cell.unit in ("", self.unit):
                if self.unit == "%" and not cell.unit and cell.digits.strip("0.,"):
                    continue  # 0.5 beside 64.5% may be 50 %
                plain = cell.digits.replace(self.thousands, "") if self.thousands else cell.digits
                values[k] = cell.sign * float(plain.replace(self.decimal, "."))
        return values


class _Cell(NamedTuple):
    sign: float
    digits: str
    unit: str


def _cell(text: str) -> _Cell | None:
    found = _CELL.fullmatch(text.strip().translate(_BLANKS))
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    signs = [sign for sign in (found["sign"], found["second"]) if sign]
    if len(signs) + bool(found["open"]) > 1 or (found["before"] and found["after"]):
        return None
    negative = bool(found["open"]) or signs not in ([], ["+"])
    return _Cell(
        -1.0 if negative else 1.0,
        found["digits"].strip(),
        found["before"] or found["after"] or "",
    )


def _digits(decimal: str, thousands: str) -> re.Pattern[str]:
    mark = re.escape(decimal)
    plain = rf"\d+(?:{mark}\d*)?|{mark}\d+"
    if not thousands:
        return re.compile(plain)
    return re.compile(rf"{plain}|[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{3}})+(?:{mark}\d+)?")


def find_spelling(name: str, levels: Sequence[str], codes: Any = None) -> Spelling | None:
    """Finds the one spelling that all levels of a column of text have; None if there is none.

    Levels that fit several spellings with different values are an error that names the option;
    so are a few odd ones among many that fit.

    Args:
        name: the column.
        levels: its distinct cells.
        codes: ``(N,)``, the level of each row, for the row number in errors.
    """
    texts = [text for text in map(str.strip, levels) if text and text not in MARKERS]
    if not texts or not any(c.isdigit() for c in texts[0][:40] + texts[-1][:40]):
        return None
    for find in (_find_dates, _find_numbers):
        tried = find(name, texts)
        if tried is None:
            continue
        spelling, fits = tried
        if fits.all():
            return spelling
        if len(texts) >= _ENOUGH and fits.mean() >= (0.5 if spelling.format else MOSTLY):
            odd = texts[int(np.flatnonzero(~fits)[0])]
            place = [level.strip() for level in levels].index(odd)
            row = "" if codes is None else f"row {int(np.flatnonzero(codes == place)[0]) + 1}, "
            raise DataError(
                f"{row}column '{name}': expected {spelling.cells}, got "
                f"'{odd[:40]}'. To read it as missing: --missing {odd[:40]}; to read all as "
                f"words: --role {name}=categorical"
            )
    return None


def _find_dates(name: str, texts: list[str]) -> tuple[Spelling, np.ndarray] | None:
    import pandas as pd

    first = texts[len(texts) // 2]  # an odd cell is seldom in the middle
    if re.match(r"\d{4}-\d\d?-\d\d?\b", first):
        formats = [ISO]
    else:
        formats = [day + clock for day in _DAYS for clock in _CLOCKS if _shape(day + clock, first)]
    fitting = []
    for format in formats:
        spelling = Spelling(format=format, example=first)
        moments = spelling.dates(texts)
        fitting.append((spelling, ~pd.isna(moments), moments))
    fitting.sort(key=lambda found: -int(found[1].sum()))
    if not fitting or not fitting[0][1].any():
        return None
    whole = [(spelling, moments) for spelling, fits, moments in fitting if fits.all()]
    if len(whole) > 1 and (whole[0][1] != whole[1][1]).any():
        ways = " or ".join(f'--role "{name}={spelling.format}"' for spelling, _ in whole)
        raise DataError(
            f"column '{name}': dates like '{first}' fit {' and '.join(s.format for s, _ in whole)}."
            f" Choose: {ways}; or leave it out: --drop {name}"
        )
    return fitting[0][0], fitting[0][1]


def _shape(format: str, text: str) -> bool:
    pattern = re.sub("%[A-Za-z]", lambda field: _FIELDS[field[0]], format.replace(".", r"\."))
    return re.fullmatch(pattern, text) is not None


def _find_numbers(name: str, texts: list[str]) -> tuple[Spelling, np.ndarray] | None:
    first = [_cell(text) for text in texts[:_ENOUGH]]
    if sum(cell is not None for cell in first) < MOSTLY * len(first):
        return None
    cells = [_cell(text) for text in texts]
    known = [cell for cell in cells if cell is not None]
    units = sorted({cell.unit for cell in known} - {""})
    if not units and all(re.fullmatch(r"\d+\.?\d*|\.\d+", cell.digits) for cell in known):
        return None  # plain numbers beside words
    if len(units) > 1:
        raise DataError(
            f"column '{name}' holds amounts in {' and '.join(units)}. Convert them to one unit, or "
            f"leave it out: --drop {name}"
        )
    unit = units[0] if units else ""
    example = max(texts[:100], key=lambda text: (bool(re.search(r"[^\d.\s]", text)), len(text)))
    tried = []
    for marks in (".", ".,", ".'", ". ", ",", ",.", ",'", ", "):  # decimal mark, thousands mark
        known_marks = {"decimal": marks[0], "thousands": marks[1:]}
        spelling = Spelling.model_validate({**known_marks, "unit": unit, "example": example})
        values = spelling.numbers(texts)
        tried.append((spelling, ~np.isnan(values), values))
    best = max(int(fits.sum()) for _, fits, _ in tried)
    if best == 0:
        return None
    tried = [found for found in tried if found[1].sum() == best]
    spelling = _decide(name, tried, known)
    fits = next(fits for each, fits, _ in tried if each is spelling)
    if not spelling.thousands:  # larger numbers of new rows may have it
        partner = "," if spelling.decimal == "." else "."
        spelling = spelling.model_copy(update={"thousands": partner})
    return spelling, fits


def _decide(name: str, tried: list[Any], known: list[_Cell]) -> Spelling:
    """The reading of ``1,234``, where several are possible."""
    readings = [(spelling, values) for spelling, _, values in tried]
    first: Spelling = readings[0][0]
    others = [s for s, values in readings[1:] if not np.array_equal(values, readings[0][1], True)]
    if not others:
        return first
    grouped: Spelling = next(s for s in (first, *others) if s.thousands)
    plain: Spelling = next(s for s in (first, *others) if not s.thousands)
    if plain.unit == "%":
        return plain
    unmarked = [cell for cell in known if cell.digits.isdigit()]
    if unmarked and all(len(cell.digits) <= 3 for cell in unmarked):
        return grouped  # 850 beside 1,234: decimals would be written in all rows or in none
    if grouped.thousands == "," and grouped.unit[-1:] and grouped.unit[-1] in _COMMA_GROUPS:
        return grouped
    sample = grouped.example
    one, other = (f"{s.numbers([sample])[0]:g}" for s in (grouped, plain))
    groups = f"1{grouped.thousands}234{grouped.decimal}5"
    raise DataError(
        f"column '{name}': '{sample}' may be {one} or {other}. Choose: --role "
        f'"{name}={groups}" or --role "{name}=1234{plain.decimal}5"'
    )


def declared_spelling(role: str, levels: Sequence[str]) -> Spelling | None:
    """The spelling that a role shows: a format of dates, or a number written as the cells are."""
    texts = [text for text in map(str.strip, levels) if text and text not in MARKERS]
    example = texts[0] if texts else role
    if "%" in role and re.search("%[A-Za-z]", role):
        return Spelling(format=role, example=example)
    shown = re.fullmatch(r"\d{1,3}(?P<thousands>[., ']?)\d{3}(?P<decimal>[.,])\d+", role)
    if shown is None or shown["thousands"] == shown["decimal"]:
        return None
    units = {cell.unit for cell in map(_cell, texts) if cell is not None} - {""}
    marks = {"decimal": shown["decimal"], "thousands": shown["thousands"]}
    return Spelling.model_validate({**marks, "unit": min(units, default=""), "example": example})
