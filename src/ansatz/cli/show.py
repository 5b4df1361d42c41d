"""ansatz show: one name explained: formula, parameters, shapes, reference, example."""

import difflib
import inspect
import re
import textwrap
from typing import Annotated, Any, NamedTuple

import typer

from ansatz.cli.claims import claim_document, claim_page, titled, wrapped
from ansatz.cli.dataset_page import dataset_document, dataset_page
from ansatz.cli.formula import plain_formula, plain_text
from ansatz.cli.names import KINDS, complete, complete_kind, factory_of, kind_called, registry_of
from ansatz.cli.output import print_document, print_note, printable
from ansatz.errors import UsageError

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
    """The parts of a docstring; those it lacks are empty."""

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
    """The prose without its ``.. math::`` blocks, and the blocks."""
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
        formulas.append(" ".join(part for part in block if part))
    return "\n".join(kept), formulas


def show(
    name: Annotated[
        str, typer.Argument(help="A name that ansatz list shows.", autocompletion=complete(*KINDS))
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            help="Where to look, when a name means several things.",
            metavar="KIND",
            autocompletion=complete_kind,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Explain one likelihood, network, optimizer, ...: formula, parameters, reference, example.

    Example:
        ansatz show gamma
        ansatz show linear --kind networks
    """
    found = _find(name, None if kind is None else kind_called(kind))
    if as_json:
        print_document(_document(name, found))
    else:
        print(_page(name, found))


def _find(name: str, kind: str | None) -> str:
    """The kind that has ``name``."""
    kinds = [kind] if kind else list(KINDS)
    found = [each for each in kinds if name in registry_of(each)]
    for other in found[1:]:
        print_note(f"'{name}' is also among the {other}: ansatz show {name} --kind {other}")
    if found:
        return found[0]
    if kind:
        registry_of(kind).get(name)  # raises, and suggests
    known = [known for each in kinds for known in registry_of(each).names()]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise UsageError(f"nothing is called '{name[:80]}'.{hint} To see the names: ansatz list KIND")


def _document(name: str, kind: str) -> dict[str, Any]:
    registry = registry_of(kind)
    if kind == "claims":
        return claim_document(registry.get(name))
    if kind == "datasets":
        return dataset_document(name)
    entry, parsed = registry.describe(name), Docstring.of(registry.get(name))
    return {
        "name": name,
        "kind": registry.kind,
        "summary": entry.summary,
        "formulas": list(parsed.formulas),
        "parameters": _signature(registry.get(name)),
        "reference": entry.reference,
        "example": parsed.sections.get("example", ""),
    }


def _page(name: str, kind: str) -> str:
    registry = registry_of(kind)
    if kind == "claims":
        return claim_page(registry.get(name))
    if kind == "datasets":
        return dataset_page(name)
    member, entry = registry.get(name), registry.describe(name)
    parsed = Docstring.of(member)
    title = f"{name} ({registry.kind})"
    parts = [title, _wrapped(plain_text(parsed.summary or entry.summary))]
    # torch draws whole algorithms, with rules; its page, which is linked, shows them better.
    formulas = [formula for formula in parsed.formulas if r"\rule" not in formula]
    parts += [textwrap.indent(plain_formula(formula), "    ") for formula in formulas]
    if not entry.reference.startswith("https://pytorch.org"):  # torch's pages are long: a link does
        parts.append(_prose(parsed.body))
    parts.append(titled("Parameters", _prose(parsed.sections.get("args", ""))))
    parts.append(titled("Call", _call(name, kind, member)))
    parts.append(titled("Shapes", _prose(parsed.sections.get("shapes", ""))))
    parts.append(titled("Example", parsed.sections.get("example", "")))
    parts.append(titled("Reference", _wrapped(entry.reference)))
    text = "\n\n".join(part for part in parts if part.strip())
    return "\n".join(printable(line) for line in text.splitlines())


def _call(name: str, kind: str, member: Any) -> str:
    """The call in Python."""
    if kind == "metrics":
        call = f"{factory_of(kind)}.{name}({', '.join(_signature(member))})"
    else:
        arguments = [f'"{name}"', *(_signature(member) if kind != "datasets" else [])]
        call = f"{factory_of(kind)}({', '.join(arguments)})"
    return textwrap.fill(call, 88, subsequent_indent="    ", break_long_words=False)


def _signature(member: Any) -> list[str]:
    """Names and defaults; annotations are for the editor."""
    try:
        parameters = inspect.signature(member).parameters.values()
    except (TypeError, ValueError):
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    shown = []
    for each in parameters:
        if each.kind in stars:
            continue
        default = "" if each.default is each.empty else f"={each.default!r}"
        shown.append(f"{each.name}{default}")
    return shown


def _prose(text: str) -> str:
    """Each paragraph and each item on lines of its own, wrapped."""
    paragraphs = re.split(r"\n\s*\n|\n(?=[ \t]*(?:- |\w+(?: \([^)]*\))?: ))", plain_text(text))
    lines = [_wrapped(paragraph) for paragraph in paragraphs if paragraph.strip()]
    separator = "\n" if re.match(r"[ \t]*(?:- |\w+(?: \([^)]*\))?: )", text) else "\n\n"
    return separator.join(lines)


def _wrapped(text: str) -> str:
    return wrapped(text, indent="  " if re.match(r"\s*(?:- |\w+: )", text) else "")
