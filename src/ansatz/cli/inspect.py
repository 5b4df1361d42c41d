"""ansatz inspect: what is in a model's folder, after its checksums were verified."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ansatz.cli.output import number, print_document, print_line, print_metrics, print_table
from ansatz.errors import ModelError

_EVIDENCE = ("metrics", "linear", "constant")


def inspect(
    model: Annotated[
        Path, typer.Argument(help="The folder that ansatz fit wrote, or a run's checkpoints.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Describe a saved model, without running anything from it.

    Verifies the checksums first; names a damaged file and exits with status 4.

    Example:
        ansatz inspect houses-model
        ansatz inspect houses-model.training
        ansatz inspect houses-model --json
    """
    if model.is_dir() and any(model.glob("step-*")):
        _inspect_checkpoints(model, as_json)
        return
    from ansatz.cli.opening import open_model
    from ansatz.storage import verify_folder

    estimator = open_model(model)
    description = estimator.describe()
    manifest = verify_folder(model, "model")
    description["versions"] = manifest.versions
    description["files"] = [
        {"name": name, "bytes": entry.size, "sha256": entry.sha256}
        for name, entry in manifest.files.items()
    ]
    if as_json:
        print_document(description)
        return
    of_draws = description.pop("summary", None)
    _print(description)
    if of_draws is not None:
        print_line()
        for line in str(estimator.allow_unconverged().summary()).splitlines():
            print_line(line)


def _inspect_checkpoints(folder: Path, as_json: bool) -> None:
    from ansatz.storage import verify_folder

    rows = []
    for path in sorted(folder.glob("step-*"), reverse=True):
        try:
            manifest = verify_folder(path, "checkpoint")
            note = "the best so far" if manifest.header.get("best") else ""
            rows.append({"checkpoint": path.name, "state": "whole", "note": note})
        except ModelError as error:
            rows.append({"checkpoint": path.name, "state": "damaged", "note": str(error)})
    if as_json:
        print_document({"checkpoints": rows})
    else:
        print_table(
            ["checkpoint", "state", "note"], [tuple(row.values()) for row in rows], limit=200
        )
    damaged = [row["note"] for row in rows if row["state"] == "damaged"]
    if damaged:
        raise ModelError(f"{damaged[0]}. --resume takes the newest whole checkpoint.")


def _print(description: Mapping[str, Any]) -> None:
    tables = {key: value for key, value in description.items() if _is_table(value)}
    facts = {
        key: value
        for key, value in description.items()
        if key not in {*tables, *_EVIDENCE} and value not in (None, [], {}, "")
    }
    print_table(["", ""], [(key, _words(value)) for key, value in facts.items()], limit=200)
    for key, value in tables.items():
        print_line()
        print_line(key)
        header = list(value[0])
        print_table(header, [[row.get(name, "") for name in header] for row in value], limit=80)
    if description.get("metrics"):
        print_line()
        print_line("on the test rows")
        linear, constant = description.get("linear"), description.get("constant")
        print_metrics({"model": description["metrics"], "linear": linear, "constant": constant})


def _is_table(value: Any) -> bool:
    rows = isinstance(value, list) and bool(value)
    return rows and all(isinstance(row, Mapping) for row in value)


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return number(value)
