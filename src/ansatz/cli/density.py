"""ansatz density: how likely examples are under a model of x."""

from pathlib import Path
from typing import Annotated

import typer

from ansatz.cli.examples import check_out, open_synthesizer, read_examples
from ansatz.cli.predict import Output


def density(
    model: Annotated[
        Path, typer.Argument(help="The folder that ansatz fit --task generate wrote.")
    ],
    data: Annotated[str, typer.Argument(help="Examples like those of the fit.")],
    seed: Annotated[int, typer.Option(min=0, help="Of the draws of a bound.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write here instead of standard output.", metavar="FILE")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compute the log density of each example, to find those that are unlike the others.

    Writes CSV: row, log_density in nats (or a lower bound), its standard error se, and p_value,
    the two-sided rank of the density among held-out examples.

    Example:
        ansatz density adult-model new.csv --out density.csv
    """
    output = Output(out, overwrite, False, as_json)
    output.check()
    check_out(out, overwrite)
    estimator = open_synthesizer(model)
    examples, given = read_examples(estimator, data)
    found = estimator.density(examples, given, seed=seed)
    output.write([found.rename_axis("row")], in_chunks=False)
