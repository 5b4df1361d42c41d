"""ansatz evaluate: how good a saved model is on a table with the target."""

from pathlib import Path
from typing import Annotated

import typer

from ansatz.cli.document import print_document
from ansatz.cli.reading import Comment, Delimiter, Missing, Names, NoHeader, reader_options


def evaluate(
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    data: Annotated[str, typer.Argument(help="A table with the target.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    delimiter: Delimiter = None,
    no_header: NoHeader = None,
    names: Names = None,
    comment: Comment = None,
    missing: Missing = None,
) -> None:
    """Judge a saved model on rows it has not seen.

    Example:
        ansatz evaluate houses-model later.csv
        ansatz evaluate houses-model later.csv --json
    """
    from ansatz.cli.evidence import print_metrics
    from ansatz.cli.model import open_model, open_table

    estimator = open_model(model)
    frame = open_table(data, reader_options(delimiter, no_header, names, comment, missing))
    metrics = estimator.evaluate(frame)
    if as_json:
        print_document(metrics)
    else:
        print_metrics({"model": metrics})
