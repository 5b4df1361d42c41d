"""ansatz list: what there is."""

from typing import Annotated, Any

import typer

from ansatz.cli.formula import plain_text
from ansatz.cli.names import KINDS, complete_kind, kind_called, registry_of
from ansatz.cli.output import print_document, print_line, print_table


def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="likelihoods, networks, optimizers, ...; without it, the kinds.",
            autocompletion=complete_kind,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """List the likelihoods, networks, optimizers, data sets ... by name.

    Example:
        ansatz list
        ansatz list likelihoods
        ansatz list losses
        ansatz list networks --json
    """
    if kind is None:
        _print_kinds(as_json)
        return
    of_losses = kind.lower() in ("loss", "losses")
    registry = registry_of("likelihoods" if of_losses else kind_called(kind))
    names = registry.names()
    if of_losses:  # likelihoods without a distribution
        names = [name for name in names if not registry.get(name).has_distribution]
    entries = [registry.describe(name) for name in names]
    if as_json:
        print_document([entry._asdict() for entry in entries])
        return
    print_table(
        ["name", "summary"],
        [(entry.name, plain_text(entry.summary)) for entry in entries],
        limit=120,
    )
    print_line()
    if of_losses:
        print_line("A loss predicts a point, not a distribution: --likelihood NAME takes it.")
    print_line("More about one of them: ansatz show NAME")


def _print_kinds(as_json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {"kind": kind, "count": len(registry_of(kind).names())} for kind in KINDS
    ]
    if as_json:
        print_document(rows)
        return
    print_table(["kind", "names"], [tuple(row.values()) for row in rows], numbers=[1])
    print_line()
    print_line("The names of a kind: ansatz list KIND")
