"""ansatz evaluate: how good a saved model is on a table with the target."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ansatz.cli.options import AGAIN, takes
from ansatz.cli.output import print_document, print_note
from ansatz.errors import UsageError
from ansatz.fitting.options.commands import ReadingOutcomes


@takes(ReadingOutcomes, AGAIN)
def evaluate(
    given: dict[str, Any],
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    data: Annotated[str, typer.Argument(help="A table, folder or file with the target.")],
    allow_unconverged: Annotated[
        bool,
        typer.Option("--allow-unconverged", help="Answer although draws have failed to converge."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Evaluate a saved model on rows it has not seen.

    Example:
        ansatz evaluate houses-model later.csv
        ansatz evaluate houses-model later.csv --json
        ansatz evaluate flowers-model more-flowers/
        ansatz evaluate cells-model second-volume.tif --masks second-labels.tif
    """
    from ansatz.cli.opening import naming, open_data, open_model
    from ansatz.cli.output import print_metrics

    estimator = open_model(model, allow_unconverged=allow_unconverged)
    if estimator.model_.column_roles is None:
        raise UsageError(
            "this model was made in Python and knows no target column: use its evaluate(X, y)."
        )
    with naming(data):
        metrics, warnings = open_data(estimator, data, given, outcomes=True).evaluate(estimator)
    for warning in warnings:
        print_note(f"warning: {warning}")
    if as_json:
        print_document(metrics)
    else:
        print_metrics({"model": metrics})
