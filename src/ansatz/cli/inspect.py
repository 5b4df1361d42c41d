"""ansatz inspect: what is in a model's folder, after its checksums were verified."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ansatz.cli.document import print_document
from ansatz.cli.evidence import print_metrics
from ansatz.cli.terminal import number, print_table, say


def inspect(
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say what a saved model is, without running anything from it.

    A damaged file is named, with exit status 4.

    Example:
        ansatz inspect houses-model
        ansatz inspect houses-model --json
    """
    from ansatz.cli.model import open_model

    description = open_model(model).describe()
    if as_json:
        print_document(description)
    else:
        _print(description)


def _print(description: Mapping[str, Any]) -> None:
    tables = {key: value for key, value in description.items() if _is_table(value)}
    facts = {key: value for key, value in description.items() if key not in tables}
    rows = [(key, line) for key, value in facts.items() for line in _lines(value)]
    print_table(["", ""], rows, limit=200)
    for key, value in tables.items():
        say()
        say(f"{key}")
        header = list(dict.fromkeys(name for row in value for name in row))
        print_table(header, [[row.get(name, "") for name in header] for row in value])
    evidence = {key: description.get(key) for key in ("metrics", "linear", "constant")}
    if isinstance(evidence["metrics"], Mapping):
        say()
        say("test metrics")
        print_metrics({"model": evidence.pop("metrics"), **evidence})


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)
    )


def _lines(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{key} {number(item)}" for key, item in value.items()]
    return [number(value)]
