"""The parts of a docstring: summary, formulas, arguments, shapes, example."""

import inspect
import re
import textwrap
from typing import Any, NamedTuple

FORMULA = "\0"
_SECTIONS = {
    "args": "args",
    "arguments": "args",
    "parameters": "args",
    "keyword args": "args",
    "shape": "shapes",
    "shapes": "shapes",
    "example": "example",
    "examples": "example",
    "references": "references",
    "returns": "returns",
}
_HEADING = re.compile(r"^([A-Z][A-Za-z ]*?)::?[ \t]*$")


class Docstring(NamedTuple):
    """The parts of a docstring; those it lacks are empty.

    In ``body`` a paragraph of ``FORMULA`` and its number marks the place of a formula.
    """

    summary: str
    body: str
    formulas: tuple[str, ...]
    sections: dict[str, str]

    @classmethod
    def of(cls, member: Any) -> "Docstring":
        """Reads ``member``'s docstring: ours (Google style), or torch's."""
        text = inspect.getdoc(member) or ""
        prose, sections = _split(text)
        prose, formulas = _take_formulas(prose)
        paragraphs = [part for part in re.split(r"\n\s*\n", prose.strip()) if part.strip()]
        summary = " ".join(paragraphs[0].split()) if paragraphs else ""
        return cls(summary, "\n\n".join(paragraphs[1:]), tuple(formulas), sections)


def _split(text: str) -> tuple[str, dict[str, str]]:
    """The prose above the first section, and the sections by name."""
    prose: list[str] = []
    sections: dict[str, list[str]] = {}
    current = prose
    for line in text.splitlines():
        heading = _HEADING.match(line)
        name = _SECTIONS.get(heading[1].lower()) if heading else None
        if name is not None:
            current = sections.setdefault(name, [])
        elif line and not line[0].isspace() and current is not prose:
            current = sections.setdefault("more", [])
            current.append(line)
        else:
            current.append(line)
    joined = {name: textwrap.dedent("\n".join(part)).strip("\n") for name, part in sections.items()}
    return "\n".join(prose), {name: part for name, part in joined.items() if part.strip()}


def _take_formulas(prose: str) -> tuple[str, list[str]]:
    """The prose with a mark in the place of each ``.. math::`` block, and the blocks."""
    kept: list[str] = []
    formulas: list[str] = []
    lines = prose.splitlines()
    position = 0
    while position < len(lines):
        start = re.match(r"^(\s*)\.\. math::\s*(.*)$", lines[position])
        position += 1
        if start is None:
            kept.append(lines[position - 1])
            continue
        block = [start[2]] if start[2] else []
        indent = len(start[1])
        while position < len(lines) and (
            not lines[position].strip()
            or len(lines[position]) - len(lines[position].lstrip()) > indent
        ):
            if not lines[position].strip() and block:
                break
            block.append(lines[position].strip())
            position += 1
        kept += ["", f"{FORMULA}{len(formulas)}", ""]
        formulas.append(" ".join(part for part in block if part))
    return "\n".join(kept), formulas
