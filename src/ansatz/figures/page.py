"""Renders sections as one self-contained page: no scripts, no requests, all text escaped."""

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from ansatz import __version__
from ansatz.figures.number_format import LIMIT, number, printable
from ansatz.figures.section import Cell, Figure, Section, Table, Text
from ansatz.storage import write_file

LONGEST = 1_500  # characters of a paragraph; of a hint over a shortened name
SHORT = 12  # rows of a table that stays on one sheet
_NUMERIC = re.compile(
    r"^[-−–+<>≤≥]?\s*\d[\d.,]*(e[-−+]?\d+)?\s*(±\s*\d[\d.,e−-]*)?\s*%?(\s\([+−]\d+\.\d\))?$|^−?[–∞]$"
)
_ELEMENTS = frozenset(
    "svg g path use defs clipPath rect text tspan line circle image title".split()
)


class ShownText(NamedTuple):
    """A shortened text, with the whole text as a tooltip."""

    shown: str
    hint: Markup
    mark: Markup = Markup("")


def render(
    sections: Sequence[Section],
    *,
    title: str,
    kicker: str = "",
    verdict: Sequence[str] = (),
    footer: str = "",
) -> str:
    """Renders the page as HTML.

    Text from data is escaped, including control characters and bidirectional overrides; long names
    are shortened, with a tooltip. The content security policy forbids scripts, requests and any
    style but the page's own.

    Args:
        sections: in order.
        title: of the page.
        kicker: one line under it.
        verdict: the answer, in two sentences.
        footer: the last line.

    Example:
        >>> from ansatz.figures import Section
        >>> from ansatz.figures.page import render
        >>> page = render([Section("A <b>", "Lead.")], title="Model")
        >>> "A &lt;b&gt;" in page, "<script" in page
        (True, False)
    """
    # Quotes in the style are not markup.
    style = _file("page.css").strip()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = Environment(autoescape=True, undefined=StrictUndefined).from_string(_file("page.html"))
    return page.render(
        style=Markup(style),
        style_hash=f"sha256-{digest}",
        version=__version__,
        title=_name(title, 2 * LIMIT),
        kicker=printable(kicker, LONGEST),
        verdict=[printable(sentence, LONGEST) for sentence in verdict],
        footer=printable(footer, LONGEST),
        sections=[
            {
                "title": printable(section.title, 2 * LIMIT),
                "lead": printable(section.lead, LONGEST),
                "parts": [_part(part) for part in section.parts],
            }
            for section in sections
        ],
    )


def write_page(path: str | Path, page: str, *, overwrite: bool = False) -> Path:
    """Writes the page atomically.

    Args:
        path: the file.
        page: from :func:`render`.
        overwrite: replace an existing file.

    Example:
        >>> import pathlib, tempfile
        >>> from ansatz.figures.page import write_page
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_page(pathlib.Path(folder, "a.html"), "<p>").name
        'a.html'
    """
    target = Path(path)
    write_file(target, page.encode("utf-8"), overwrite=overwrite)
    return target


def _file(name: str) -> str:
    return resources.files("ansatz.figures").joinpath(name).read_text(encoding="utf-8")


def _part(part: Text | Table | Figure) -> dict[str, Any]:
    if isinstance(part, Figure):
        return {"kind": "figure", "svg": _drawing(part), "caption": printable(part.caption)}
    if isinstance(part, Table):
        return _table(part)
    if part.kind == "code":
        lines = part.text.split("\n")
        return {"kind": "code", "text": "\n".join(printable(line, LONGEST) for line in lines)}
    mark = Markup(' class="{}"').format(part.kind) if part.kind != "plain" else Markup("")
    return {"kind": "text", "text": printable(part.text, LONGEST), "mark": mark}


def _table(table: Table) -> dict[str, Any]:
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    right = [
        bool(rows) and all(_NUMERIC.match(row[k].shown) for row in rows if row[k].shown)
        for k in range(len(table.head))
    ]
    head = [_name(name) for name in table.head]
    return {
        "kind": "table",
        "size": " short" if len(rows) <= SHORT else "",
        "caption": printable(table.caption, LONGEST),
        "head": [_aligned(cell, right[k]) for k, cell in enumerate(head)]
        if any(table.head)
        else [],
        "rows": [[_aligned(cell, right[k]) for k, cell in enumerate(row)] for row in rows],
    }


def _cell(cell: Cell) -> ShownText:
    return _name(cell if isinstance(cell, str) else number(cell), 4 * LIMIT)


def _name(text: str, limit: int = LIMIT) -> ShownText:
    shown = printable(text, limit)
    if len(text) <= limit:
        return ShownText(shown, Markup(""))
    return ShownText(shown, Markup(' title="{}"').format(printable(text, LONGEST)))


def _aligned(cell: ShownText, right: bool) -> ShownText:
    if right:
        return cell._replace(mark=Markup(' class="n"'))
    return cell._replace(mark=Markup(' class="long"')) if len(cell.shown) > 24 else cell


def _drawing(figure: Figure) -> Markup:
    """Adds the description to the svg; rejects anything but a drawing."""
    root = ElementTree.fromstring(figure.svg)
    for element in root.iter():
        name = element.tag.rpartition("}")[2]
        links = [v for k, v in element.attrib.items() if k.rpartition("}")[2] == "href"]
        acts = [k for k in element.attrib if k.lower().startswith("on") or k == "style"]
        outside = [v for v in links if not v.startswith(("#", "data:image/png;"))]
        if name not in _ELEMENTS or acts or outside:
            raise ValueError(f"a figure may only draw, got <{name}> with {[*acts, *outside]}.")
    described = f'<svg aria-label="{escape(printable(figure.alt, LONGEST))}" '
    return Markup(figure.svg.replace("<svg ", described, 1))
