"""What a terminal may be shown: text from a file is data, never a control sequence."""

import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

# Controls, invisible formatters (bidirectional overrides among them), lone surrogates, separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: object, limit: int | None = None) -> str:
    r"""``text`` on one line, with each character that could steer a terminal spelled out.

    Args:
        text: anything; its ``str`` is taken.
        limit: characters to keep, when given; the cut is marked.
    """
    safe = "".join(_spelled(character) for character in str(text))
    if limit is not None and len(safe) > limit:
        return safe[: max(limit - 1, 0)] + "…"
    return safe


def _spelled(character: str) -> str:
    if unicodedata.category(character) not in _UNSAFE:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def print_line(text: str = "", *, file: TextIO | None = None) -> None:
    """Prints one line of a result, safely."""
    print(printable(text), file=file or sys.stdout)


def print_note(text: str) -> None:
    """Prints one line beside the results: a note, a warning, an error."""
    print(f"ansatz: {printable(' '.join(text.split()))}", file=sys.stderr)


def console() -> "Console":
    """Standard output as rich sees it: no markup, and no cutting when it is not a terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 10_000  # a pipe has no right margin
    return Console(
        file=sys.stdout, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False
    )


def print_table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Sequence[int] = (),
    limit: int | None = 60,
) -> None:
    """Prints aligned columns; each cell is text from who knows where, and is made safe.

    Args:
        header: the columns' names.
        rows: one sequence of cells per row.
        numbers: the columns that are aligned to the right.
        limit: characters per cell.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="bold",
        show_header=any(header),
    )
    for position, name in enumerate(header):
        table.add_column(
            Text(printable(name, limit)),
            justify="right" if position in numbers else "left",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(printable(cell, limit)) for cell in row))
    paper = console()
    with paper.capture() as captured:
        paper.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())  # the last column's padding helps nobody


def number(value: object) -> str:
    """A metric for a table: four significant digits, a dash where it is undefined."""
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    if not isinstance(value, int | float):
        return str(value)
    if isinstance(value, float) and 1000 <= abs(value) < 1e9:
        return f"{value:.0f}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
