"""ansatz evaluate: how good a saved model is on a table with the target."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ansatz.cli.document import print_document
from ansatz.cli.options import AGAIN, takes
from ansatz.cli.terminal import remark
from ansatz.errors import DataError, UsageError
from ansatz.fitting.options.tables import ReadingOutcomes

if TYPE_CHECKING:
    import pandas as pd

    from ansatz.cli.model import Opened


@takes(ReadingOutcomes, AGAIN)
def evaluate(
    given: dict[str, Any],
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    data: Annotated[str, typer.Argument(help="A table, folder or file with the target.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Judge a saved model on rows it has not seen.

    Example:
        ansatz evaluate houses-model later.csv
        ansatz evaluate houses-model later.csv --json
        ansatz evaluate flowers-model more-flowers/
        ansatz evaluate cells-model second-volume.tif --masks second-labels.tif
    """
    from ansatz.cli.evidence import print_metrics
    from ansatz.cli.grids import judge_grids, open_grids
    from ansatz.cli.model import open_model, open_table, reading_for

    estimator = open_model(model)
    reading = reading_for(estimator, given)
    if reading.structure == "grid":
        table = open_grids(estimator, data, reading.options, outcomes=True)
        metrics = judge_grids(estimator, table)
    elif why := reading.why_a_stream(data):
        metrics = _judge_stream(estimator, data, reading.options, why)
    else:
        metrics = _judge(estimator, open_table(data, reading.options, estimator))
    if as_json:
        print_document(metrics)
    else:
        print_metrics({"model": metrics})


def _judge(estimator: Any, table: "Opened") -> dict[str, float | None]:
    from ansatz.cli.model import Opened, prepare
    from ansatz.fitting.duplicates import warn_of_copies

    uses = _uses_of(estimator)
    known = _has_outcome(estimator, table)
    if not known.any():
        raise DataError(f"{table.origin}: no row has a value of '{uses.outcome_name}'.")
    if not known.all():
        remark(f"note: rows without the target, which were left out: {int((~known).sum())}.")
    frame = prepare(estimator, Opened(table.frame[known], table.origin))
    _check_outcomes(estimator, frame, table.origin)
    metrics: dict[str, float | None] = estimator.evaluate(frame)
    mask = estimator.copies(frame)
    honest = estimator.evaluate(frame[~mask]) if mask.any() and not mask.all() else None
    for warning in warn_of_copies(mask, honest):
        remark(f"warning: {warning}")
    return metrics


def _judge_stream(
    estimator: Any, data: str, reading: dict[str, Any], why: str
) -> dict[str, float | None]:
    """Judges on a table that is larger than memory."""
    from ansatz.cli.streaming import frames_of
    from ansatz.structures.vector.streamed_evaluation import evaluate_stream

    uses = _uses_of(estimator)
    left_out = 0

    def known() -> "Iterator[pd.DataFrame]":
        nonlocal left_out
        for frame in frames_of(estimator, data, reading, why):
            mask = _has_outcome(estimator, Opened(frame, data))
            left_out += int((~mask).sum())
            if mask.any():
                _check_outcomes(estimator, frame[mask], data)
                yield frame[mask]

    from ansatz.cli.model import Opened

    found = evaluate_stream(estimator, known())
    if left_out:
        remark(f"note: rows without '{uses.outcome_name}', which were left out: {left_out}.")
    if found.sampled:
        names = ", ".join(found.sampled)
        remark(f"note: {names}: on a sample of {found.sample_rows:,} of {found.rows:,} rows.")
    return found.metrics


def _uses_of(estimator: Any) -> Any:
    uses = getattr(estimator, "uses_", None)
    if uses is None:
        raise UsageError(
            "this model was made in Python and knows no target column: use its evaluate(X, y)."
        )
    return uses


def _has_outcome(estimator: Any, table: "Opened") -> Any:
    """An interval may be open on one side, and a ranking may leave out items."""
    uses, frame = estimator.uses_, table.frame
    uses.outcomes(frame)  # all its columns are there
    if hasattr(estimator, "items_"):
        return frame[uses.target].notna().any(axis=1).to_numpy()
    return uses.known(frame)


def _check_outcomes(estimator: Any, frame: "pd.DataFrame", origin: str) -> None:
    """Refuses outcomes that the model's law cannot produce: they have no score."""
    import torch

    from ansatz.fitting.outcome_checks import locate

    uses = estimator.uses_
    try:
        outcomes, _ = estimator._encode(uses.outcomes(frame), reset=False)
        if not hasattr(estimator, "classes_"):
            estimator.model_.objective.likelihood.check(torch.from_numpy(outcomes.copy()))
    except DataError as error:
        raise locate(error, origin, frame, uses) from None
