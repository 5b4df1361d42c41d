"""ansatz show: one name explained: formula, parameters, shapes, reference, example."""

import difflib
import inspect
import re
import textwrap
from typing import Annotated, Any

import typer

from ansatz.cli.claims import claim_document, claim_page, titled, wrapped
from ansatz.cli.dataset_page import dataset_document, dataset_page
from ansatz.cli.docstring import FORMULA, Docstring
from ansatz.cli.formula import plain_formula, plain_text
from ansatz.cli.names import KINDS, complete, complete_kind, factory_of, kind_called, registry_of
from ansatz.cli.output import print_document, print_note, printable
from ansatz.cli.settings import inference_settings, print_settings
from ansatz.errors import UsageError


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
    options: Annotated[
        bool,
        typer.Option(
            "--options",
            help="Of a network, likelihood or inference: what --set accepts, in a table.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Explain one likelihood, network, optimizer, ...: formula, parameters, reference, example.

    Example:
        ansatz show gamma
        ansatz show linear --kind networks
        ansatz show mlp --options
    """
    found = _find(name, None if kind is None else kind_called(kind))
    if options:
        print_settings(name, found, as_json)
    elif as_json:
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
    if entry.reference.startswith("https://pytorch.org"):  # torch's pages are long: a link does
        parts += [_formula(formula) for formula in parsed.formulas]
    else:
        for piece in re.split(rf"\n*({FORMULA}\d+)\n*", parsed.body):
            marked = piece.startswith(FORMULA)
            parts.append(_formula(parsed.formulas[int(piece[1:])]) if marked else _prose(piece))
    args = parsed.sections.get("args", "")
    if kind == "inferences":
        args = "\n".join(f"{row.name}: {row.meaning}" for row in inference_settings(name))
    parts.append(
        titled("Options, by --set" if kind == "inferences" else "Parameters", _prose(args))
    )
    parts.append(titled("Call", _call(name, kind, member)))
    parts.append(titled("Shapes", _prose(parsed.sections.get("shapes", ""))))
    parts.append(titled("Example", parsed.sections.get("example", "")))
    parts.append(titled("Reference", _wrapped(entry.reference)))
    text = "\n\n".join(part for part in parts if part.strip())
    return "\n".join(printable(line) for line in text.splitlines())


def _formula(latex: str) -> str:
    """A formula, indented. torch draws whole algorithms, with rules; its page shows them better."""
    return "" if r"\rule" in latex else textwrap.indent(plain_formula(latex), "    ")


def _call(name: str, kind: str, member: Any) -> str:
    """The call in Python."""
    if kind in ("metrics", "functions"):
        home = factory_of(kind) if kind == "metrics" else member.__module__.rpartition(".")[0]
        call = f"{home}.{name}({', '.join(_signature(member))})"
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
