"""Defines the parts of a report as plain data; the page escapes their text."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Cell = str | float | int | None


@dataclass(frozen=True)
class Text:
    """A paragraph.

    Args:
        text: plain text, not markup.
        kind: ``"note"`` is small, ``"warning"`` is marked, ``"code"`` keeps its lines.

    Example:
        >>> from ansatz.figures import Text
        >>> Text("The standard deviation is too small.").kind
        'plain'
    """

    text: str
    kind: str = "plain"


@dataclass(frozen=True)
class Table:
    """A table; the page formats its numbers.

    Args:
        head: names of the columns.
        rows: cells: text, numbers, or None for a dash.
        caption: one sentence on what the table shows.

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
        svg: from :func:`ansatz.figures.to_svg`.
        caption: what to see, in a sentence or two.
        alt: a description for screen readers.

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
        lead: the result in a sentence or two.
        parts: paragraphs, tables and figures in order.

    Example:
        >>> from ansatz.figures import Section, Text
        >>> Section("Coverage", "90 % intervals cover 91 %.", [Text("...")]).title
        'Coverage'
    """

    title: str
    lead: str
    parts: list[Text | Table | Figure] = field(default_factory=list)


class Chapter(NamedTuple):
    """An entry of the table of contents, whose section is computed later.

    Args:
        place: its position on the page.
        words: its name for progress messages.
        section: ``"module:function"`` that computes the section, or None if it does not apply.

    Example:
        >>> from ansatz.figures.section import Chapter
        >>> sorted([Chapter(20, "scores", "m:f"), Chapter(10, "pit", "m:g")])[0].words
        'pit'
    """

    place: int
    words: str
    section: str
