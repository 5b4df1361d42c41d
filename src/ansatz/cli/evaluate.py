"""ansatz evaluate: how good a saved model is on a table with the target."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ansatz.cli.document import print_document
from ansatz.cli.reading import (
    Comment,
    Decimal,
    Delimiter,
    Encoding,
    Missing,
    Names,
    NoHeader,
    reader_options,
)
from ansatz.cli.terminal import remark
from ansatz.errors import DataError, UsageError

if TYPE_CHECKING:
    from ansatz.cli.model import Opened


def evaluate(
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    data: Annotated[str, typer.Argument(help="A table with the target.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    delimiter: Delimiter = None,
    no_header: NoHeader = None,
    names: Names = None,
    comment: Comment = None,
    missing: Missing = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
) -> None:
    """Judge a saved model on rows it has not seen.

    Example:
        ansatz evaluate houses-model later.csv
        ansatz evaluate houses-model later.csv --json
    """
    from ansatz.cli.evidence import print_metrics
    from ansatz.cli.model import open_model, open_table

    estimator = open_model(model)
    reading = reader_options(delimiter, no_header, names, comment, missing, decimal, encoding)
    table = open_table(data, reading, estimator)
    metrics = _judge(estimator, table)
    if as_json:
        print_document(metrics)
    else:
        print_metrics({"model": metrics})


def _judge(estimator: Any, table: "Opened") -> dict[str, float | None]:
    from ansatz.cli.model import Opened, prepare
    from ansatz.estimators.copies import warn_of_copies

    uses = getattr(estimator, "uses_", None)
    if uses is None:
        raise UsageError(
            "this model was made in Python and knows no target column: use its evaluate(X, y)."
        )
    known = _has_outcome(uses.outcomes(table.frame))
    if not known.any():
        raise DataError(f"{table.origin}: no row has a value of '{', '.join(uses.target)}'.")
    if not known.all():
        remark(f"note: {int((~known).sum())} rows without the target were left out.")
    frame = prepare(estimator, Opened(table.frame[known], table.origin))
    metrics: dict[str, float | None] = estimator.evaluate(frame)
    mask = estimator.copies(frame)
    honest = estimator.evaluate(frame[~mask]) if mask.any() and not mask.all() else None
    for warning in warn_of_copies(mask, honest):
        remark(f"warning: {warning}")
    return metrics


def _has_outcome(outcomes: Any) -> Any:
    present = outcomes.notna()
    return present if present.ndim == 1 else present.all(axis=1)
