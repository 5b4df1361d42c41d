"""Numbers and names in columns, as R prints them."""

import math
from collections.abc import Sequence

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))
LEGEND = "Signif. codes:  0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1"


def stars(p: float) -> str:
    """R's mark for a p-value."""
    return next((mark for limit, mark in STARS if p <= limit), "")


def format_p(p: float) -> str:
    """A p-value as R prints it."""
    if math.isnan(p):
        return "NA"
    return "<2e-16" if p < 2e-16 else f"{p:.3g}"


def format_column(values: Sequence[float], digits: int = 5) -> list[str]:
    """One column with a common number of decimals, at least three digits for the smallest."""
    finite = [abs(v) for v in values if math.isfinite(v) and v != 0]
    if finite and (max(finite) >= 1e7 or min(finite) < 1e-5):
        return ["NA" if math.isnan(v) else f"{v:.{digits - 1}e}" for v in values]
    decimals = 0
    if finite:
        # Enough for three digits of the smallest and `digits` of the largest.
        decimals = max(2 - math.floor(math.log10(min(finite))), digits - 1 - _order(finite))
    decimals = min(max(decimals, 1), 7)
    return ["NA" if math.isnan(v) else f"{v:.{decimals}f}" for v in values]


def _order(values: Sequence[float]) -> int:
    return math.floor(math.log10(max(values)))


def align(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: names and columns without a header to the left, numbers to the right."""
    lines = [header, *rows]
    widths = [max(len(line[j]) for line in lines) for j in range(len(header))]
    return [
        " ".join(
            cell.rjust(width) if header[j] else cell.ljust(width)
            for j, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def plain(name: object) -> str:
    r"""A name that cannot move a terminal's cursor: control characters are spelled out."""
    text = str(name)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
