"""ansatz forecast: the future of each series, as CSV or JSON."""

from pathlib import Path
from typing import Annotated

import typer

from ansatz.cli.predict import Output
from ansatz.errors import UsageError


def forecast(
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit --horizon wrote.")],
    history: Annotated[
        str | None,
        typer.Argument(help="A table of series up to now. Default: those of the fit."),
    ] = None,
    levels: Annotated[str, typer.Option(help="Of the intervals: 0.5,0.9.", metavar="P,P")] = "0.9",
    paths: Annotated[
        int, typer.Option(help="Joint paths in further columns.", metavar="N", min=0, max=10_000)
    ] = 0,
    seed: Annotated[int, typer.Option(help="Of the paths.", min=0)] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write here instead of standard output.", metavar="FILE")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Forecast the next steps of each series with a saved model.

    Writes CSV: series, time, step, prediction, lower, upper; of several levels lower_50, upper_50
    and so on, and path_1, ... with --paths. Columns that are known ahead stand in the rows of the
    history whose target is empty.

    Example:
        ansatz forecast ETTh1-model
        ansatz forecast ETTh1-model history.csv --levels 0.5,0.9 --paths 100 --out forecast.csv
    """
    from ansatz.cli.opening import naming, open_model

    output = Output(out, overwrite, False, as_json)
    output.check()
    wanted = _levels(levels)
    estimator = open_model(model)
    if not hasattr(estimator, "forecast"):
        raise UsageError(f"{model} is not a model of forecasts: fit one with --horizon.")
    with naming(history or str(model)):
        found = estimator.forecast(history, wanted, paths=paths, random_state=seed)
    output.write([found], in_chunks=False)


def _levels(text: str) -> list[float]:
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < level < 1 for level in found):
        raise UsageError(f"--levels takes numbers in (0, 1) like 0.5,0.9, got '{text}'.")
    return found
