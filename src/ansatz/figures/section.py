"""What a report is made of, as plain data; text is escaped when the page is written."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Cell = str | float | int | None


@dataclass(frozen=True)
class Text:
    """A paragraph.

    Args:
        text: as it should read; never markup.
        kind: ``"note"`` sets it smaller, ``"warning"`` marks it, ``"code"`` keeps its lines.

    Example:
        >>> from ansatz.figures import Text
        >>> Text("The spread is too small.").kind
        'plain'
    """

    text: str
    kind: str = "plain"


@dataclass(frozen=True)
class Table:
    """Rows under a head; numbers are given as numbers and formatted when the page is written.

    Args:
        head: names of the columns.
        rows: cells: text, numbers, or None for a dash.
        caption: what the table shows, in a sentence.

    Example:
        >>> from ansatz.figures import Table
        >>> Table(["metric", "model"], [["rmse", 1.25]], "On the test rows.").head
        ['metric', 'model']
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """A drawing with its caption.

    Args:
        svg: what :func:`ansatz.figures.style.to_svg` gave.
        caption: what to see, in a sentence or two.
        alt: the same for who cannot see it.

    Example:
        >>> from ansatz.figures import Figure
        >>> Figure("<svg></svg>", "Nothing.", "An empty drawing.").alt
        'An empty drawing.'
    """

    svg: str
    caption: str
    alt: str


@dataclass(frozen=True)
class Section:
    """One chapter of a report.

    Args:
        title: its heading.
        lead: the answer, in a sentence or two, before the numbers that show it.
        parts: paragraphs, tables and figures in order.

    Example:
        >>> from ansatz.figures import Section, Text
        >>> Section("Coverage", "Intervals hold what they promise.", [Text("...")]).title
        'Coverage'
    """

    title: str
    lead: str
    parts: list[Text | Table | Figure] = field(default_factory=list)


class Chapter(NamedTuple):
    """An entry of a page's table of contents: the section is computed when it is asked for.

    Args:
        place: orders the page.
        words: tell a waiting user what is being computed.
        section: ``"module:function"`` that makes the section, or None where it does not apply.

    Example:
        >>> from ansatz.figures.section import Chapter
        >>> sorted([Chapter(20, "scores", "m:f"), Chapter(10, "pit", "m:g")])[0].words
        'pit'
    """

    place: int
    words: str
    section: str
