"""ansatz translate: the texts that a model writes after a file's lines."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ansatz.errors import UsageError


def translate(
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    file: Annotated[
        str, typer.Argument(help="A text in each line; or a table with a column of sources.")
    ],
    beams: Annotated[
        int, typer.Option(help="Texts that the search follows; 1 is greedy.", min=1, max=100)
    ] = 5,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON document for each line.")
    ] = False,
) -> None:
    """Translate each line of a file, or write a caption for each image of a table.

    Each translation is a line of its own, printed as soon as it is known. An empty line stays
    empty.

    Example:
        ansatz translate en-de-model new.en
        ansatz translate en-de-model new.en --beams 1 --json
    """
    from ansatz.cli.opening import naming, open_data, open_model
    from ansatz.outcomes.translation.search import stream

    estimator = open_model(model)
    if not hasattr(estimator, "stream") or not hasattr(estimator, "log_prob"):
        raise UsageError(
            f"{model} is not a model that translates: ansatz predict shows what it is."
        )
    with naming(file):
        rows = estimator.rows(open_data(estimator, file, {}).table)
    for each in stream(estimator.model_.posterior, rows, beams=beams):
        found = {"translation": each.text, "log_prob": each.log_prob}
        line = json.dumps(found, ensure_ascii=False) if as_json else each.text
        sys.stdout.write(line.replace("\n", " ") + "\n")
        sys.stdout.flush()
