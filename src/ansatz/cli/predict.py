"""ansatz predict: a saved model's answers, as CSV."""

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ansatz.cli.destination import require_free
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
from ansatz.cli.terminal import remark, say
from ansatz.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

_NOT_CSV = {".parquet", ".arrow", ".feather", ".npz", ".json", ".xlsx", ".xls", ".gz", ".zip"}


def predict(
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    data: Annotated[str, typer.Argument(help="A table with the columns of the training table.")],
    interval: Annotated[
        float | None,
        typer.Option(
            help="Add the bounds that hold this share of the probability.", metavar="LEVEL"
        ),
    ] = None,
    times: Annotated[
        str | None,
        typer.Option(help="Survival models: add the chance to get past each time.", metavar="T,T"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write here instead of standard output.", metavar="FILE")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Leave text that looks like a formula as it is.")
    ] = False,
    delimiter: Delimiter = None,
    no_header: NoHeader = None,
    names: Names = None,
    comment: Comment = None,
    missing: Missing = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
) -> None:
    """Predict each row of a table with a saved model.

    Writes CSV: row (0 for the first), prediction, lower and upper with --interval, and
    p_CLASS for each class. A survival model predicts the median, and with --times survival_T
    for each time.

    Example:
        ansatz predict houses-model new.csv
        ansatz predict houses-model new.csv --interval 0.9 --out predictions.csv
        ansatz predict patients-model new.csv --times 12,24
    """
    if interval is not None and not 0 < interval < 1:
        raise UsageError(f"--interval must be in (0, 1), got {interval}. For 90 percent: 0.9.")
    options = {} if times is None else {"times": _numbers(times)}
    if out is not None:
        if out.suffix.lower() in _NOT_CSV:
            raise UsageError(f"--out {out}: predictions are CSV; name the file something.csv.")
        require_free(out, overwrite=overwrite, advice="To replace it: --overwrite.")
    from ansatz.cli.model import open_model, open_table, prepare

    estimator = open_model(model)
    if options and not hasattr(estimator, "predict_survival"):
        raise UsageError("--times is for survival models; this one has no survival curve.")
    reading = reader_options(delimiter, no_header, names, comment, missing, decimal, encoding)
    table = open_table(data, reading, estimator)
    predictions = estimator.predict_frame(prepare(estimator, table), interval=interval, **options)
    if interval is not None and not any(name.startswith("lower") for name in predictions.columns):
        remark(f"note: {_no_interval(estimator)}")
    if out is None:
        _print(predictions, raw)
    else:
        _write(predictions, out, raw, overwrite)


def _no_interval(estimator: Any) -> str:
    """Why bounds were asked for in vain."""
    if hasattr(estimator, "predict_survival"):
        return "several causes have no interval; --times adds chances by each time."
    return "classes have no interval; p_CLASS says how sure the model is."


def _numbers(text: str) -> list[float]:
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(map(math.isfinite, found)):
        raise UsageError(f"--times takes numbers like 12,24, got '{text}'.")
    return found


def _write(predictions: "pd.DataFrame", out: Path, raw: bool, overwrite: bool) -> None:
    from ansatz.cli.spreadsheet import csv_blocks
    from ansatz.storage import write_file

    write_file(out, b"".join(csv_blocks(predictions, raw=raw)), overwrite=overwrite)
    say(f"{len(predictions)} predictions: {out}")


def _print(predictions: "pd.DataFrame", raw: bool) -> None:
    from ansatz.cli.spreadsheet import csv_blocks

    binary = getattr(sys.stdout, "buffer", None)
    for block in csv_blocks(predictions, raw=raw):
        if binary is None:
            sys.stdout.write(block.decode())
        else:  # bytes: no newline translation, and UTF-8 whatever the terminal's locale
            binary.write(block)
            binary.flush()
