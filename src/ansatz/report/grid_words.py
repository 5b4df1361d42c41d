"""Sections about images in the words of signals and volumes."""

import re
from collections.abc import Sequence
from typing import Any

from ansatz.figures.section import Cell, Figure, Section, Table, Text

_IMAGE = re.compile(r"\b([Ii])mage(s?)\b")
_AN_IMAGE = re.compile(r"\b([Aa])n(?= image\b)")  # a signal, a volume


def in_words(section: Section, unit: str) -> Section:
    """The section with ``unit`` in the place of images; names that data gave stay as they are.

    Args:
        section: written about images.
        unit: ``"images"``, ``"signals"`` or ``"volumes"``.

    Example:
        >>> from ansatz.figures import Section
        >>> from ansatz.report.grid_words import in_words
        >>> in_words(Section("What the images look like", "Images of 3 cells."), "signals").lead
        'Signals of 3 cells.'
        >>> in_words(Section("Moving an image", ""), "volumes").title
        'Moving a volume'
    """
    if unit == "images":
        return section

    def said(text: str) -> str:
        def word(match: re.Match[str]) -> str:
            found = unit if match[2] else unit.removesuffix("s")
            return found.capitalize() if match[1] == "I" else found

        return _IMAGE.sub(word, _AN_IMAGE.sub(r"\1", text))

    parts: list[Text | Table | Figure] = [_part(part, said) for part in section.parts]
    return Section(said(section.title), said(section.lead), parts)


def _part(part: Text | Table | Figure, said: Any) -> Text | Table | Figure:
    if isinstance(part, Figure):
        return Figure(part.svg, said(part.caption), part.alt)
    if isinstance(part, Table):
        head: Sequence[str] = [said(name) for name in part.head]
        rows: Sequence[Sequence[Cell]] = part.rows
        return Table(head, rows, said(part.caption))
    return part
