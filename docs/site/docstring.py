"""A docstring as Markdown: its formulas, arguments, shapes, example and references."""

import inspect
import re
from collections.abc import Callable
from typing import NamedTuple

_HEADING = re.compile(r"^(Args|Attributes|Shapes|Example|References|Returns|Raises|Yields):$")
_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`~?([\w.]+)`")
_MATH = re.compile(r":math:`([^`]+)`", re.DOTALL)
_CODE = re.compile(r"``(.+?)``", re.DOTALL)
_URL = re.compile(r"(?<![<(\[])(https?://[^\s<>]+?)(?=[.,;)]*(?:\s|$))")
_NAME = re.compile(r"^(\*{0,2}[\w, ]+):\s+(.*)$", re.DOTALL)


class Writer(NamedTuple):
    """What turns parts of a docstring into Markdown: formulas, and names into links."""

    display: Callable[[str], str]
    inline: Callable[[str], str]
    link: Callable[[str], str]


class Section(NamedTuple):
    """A part of a docstring under its heading; the first has none."""

    heading: str
    lines: list[str]


def markdown(docstring: str, writer: Writer) -> str:
    """The docstring as Markdown.

    The sections keep their order, apart from the example, which is code.
    """
    parts = [_section(section, writer) for section in sections(docstring)]
    return "\n\n".join(part for part in parts if part)


def sections(docstring: str) -> list[Section]:
    """The docstring taken apart at its headings, each part's own indentation removed."""
    found = [Section("", [])]
    for line in inspect.cleandoc(docstring).splitlines():
        heading = _HEADING.match(line)
        if heading:
            found.append(Section(heading[1], []))
        else:
            found[-1].lines.append(line)
    return [Section(s.heading, inspect.cleandoc("\n" + "\n".join(s.lines)).splitlines())
            for s in found]  # fmt: skip


def first_sentence(docstring: str, writer: Writer) -> str:
    """What a name is, in one line."""
    text = " ".join(inspect.cleandoc(docstring).split("\n\n")[0].split())
    return _words(text, writer)


def _section(section: Section, writer: Writer) -> str:
    text = "\n".join(section.lines).strip("\n")
    if not text:
        return ""
    if section.heading == "Example":
        return _example(text)
    if section.heading in ("Args", "Attributes"):
        return f"**{section.heading}**\n\n" + _arguments(section.lines, writer)
    body = "\n\n".join(_block(block, writer) for block in _blocks(text))
    return f"**{section.heading}**\n\n{body}" if section.heading else body


def _blocks(text: str) -> list[str]:
    """Paragraphs, formulas and lists, which empty lines or indentation part."""
    found: list[str] = []
    for paragraph in re.split(r"\n[ \t]*\n", text):
        before, mark, after = paragraph.partition(".. math::")
        if before.strip():
            found.append(before.rstrip())
        if not mark:
            continue
        lines = after.splitlines() or [""]
        formula = [lines[0]]
        rest = lines[1:]
        while rest and rest[0].startswith(" "):
            formula.append(rest.pop(0))
        found.append(".. math::" + " ".join(formula))
        if any(line.strip() for line in rest):
            found.append("\n".join(rest))
    return found


def _block(block: str, writer: Writer) -> str:
    if block.startswith(".. math::"):
        return writer.display(block.removeprefix(".. math::"))
    if ">>>" in block:
        return _example(block)
    return _words(block, writer)


def _arguments(lines: list[str], writer: Writer) -> str:
    """A list entry for each argument; its further lines are indented."""
    entries: list[str] = []
    for line in lines:
        if line and not line.startswith(" "):
            entries.append(line)
        elif entries:
            entries[-1] += "\n" + line.strip()
    found = []
    for entry in entries:
        named = _NAME.match(entry)
        text = entry if named is None else named[2]
        body = _words(text, writer).replace("\n", "\n    ")
        found.append(f"- {body}" if named is None else f"- `{named[1]}`: {body}")
    return "\n".join(found)


def _example(text: str) -> str:
    kind = "pycon" if ">>>" in text else "text"
    return f"**Example**\n\n```{kind}\n{inspect.cleandoc(text)}\n```"


def _words(text: str, writer: Writer) -> str:
    """Roles and literals of reStructuredText as Markdown."""
    code: list[str] = []

    def keep(markup: str) -> str:
        code.append(markup)
        return f"zzCODE{len(code) - 1}zz"

    text = _MATH.sub(lambda m: keep(writer.inline(m[1])), text)
    text = _CODE.sub(lambda m: keep(f"`{m[1]}`"), text)
    text = _ROLE.sub(lambda m: keep(writer.link(m[1])), text)
    text = _URL.sub(lambda m: keep(f"<{m[1]}>"), text)
    text = re.sub(r"([*_<\[\]|])", r"\\\1", text)
    for k, markup in enumerate(code):
        text = text.replace(f"zzCODE{k}zz", markup)
    return text
