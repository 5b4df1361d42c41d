"""ansatz impute: missing values filled by a model of x."""

from pathlib import Path
from typing import Annotated

import typer

from ansatz.cli.examples import check_out, open_synthesizer, read_examples, write_examples


def impute(
    model: Annotated[
        Path, typer.Argument(help="The folder that ansatz fit --task generate wrote.")
    ],
    data: Annotated[str, typer.Argument(help="A table with missing values.")],
    draws: Annotated[int, typer.Option(min=1, help="Draws of each missing value.")] = 20,
    mean: Annotated[
        bool, typer.Option("--mean", help="Write one table: means, most frequent levels.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write here instead of standard output.", metavar="FILE")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.")] = False,
) -> None:
    """Fill the missing values of a table by draws of their distribution given the other values.

    Writes the tables one below the other, with a column ``draw``; with --mean one table.

    Example:
        ansatz impute adult-model new.csv --out filled.csv
        ansatz impute adult-model new.csv --mean
    """
    import pandas as pd

    from ansatz.errors import UsageError

    check_out(out, overwrite)
    estimator = open_synthesizer(model)
    examples, given = read_examples(estimator, data)
    found = estimator.impute(examples, draws, given=given, seed=seed)
    if not hasattr(found.tables[0], "columns"):
        raise UsageError("impute is for tables.")
    if mean:
        write_examples(found.mean(), out, overwrite=overwrite)
        return
    tables = [each.assign(draw=number + 1) for number, each in enumerate(found.tables)]
    whole = pd.concat(tables, ignore_index=True)
    write_examples(whole[["draw", *found.tables[0].columns]], out, overwrite=overwrite)
