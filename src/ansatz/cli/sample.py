"""ansatz sample: new examples from a model of x."""

from pathlib import Path
from typing import Annotated

import typer

from ansatz.cli.examples import check_out, open_synthesizer, read_given, write_examples


def sample(
    model: Annotated[
        Path, typer.Argument(help="The folder that ansatz fit --task generate wrote.")
    ],
    count: Annotated[int, typer.Option("-n", "--count", min=0, help="Examples to draw.")] = 64,
    given: Annotated[
        list[str] | None,
        typer.Option(help="What they are drawn given.", metavar="COL=VALUE"),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Of a diffusion: evaluations of its network.")
    ] = None,
    sampler: Annotated[
        str | None, typer.Option(help="Of a diffusion: normal_exact, ddim, dpm2m, ...")
    ] = None,
    guidance: Annotated[
        float | None, typer.Option(help="Of a diffusion: 1 follows what is given, 2 exaggerates.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="A CSV file; of images a .png, an .npz or a folder.", metavar="PLACE"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace PLACE.")] = False,
) -> None:
    """Draw new examples: rows of a table, images, signals.

    A table has the columns, types, decimals, levels and dates of the fit.

    Example:
        ansatz sample adult-model -n 1000 --out synthetic.csv
        ansatz sample digits-model -n 64 --out grid.png
        ansatz sample digits-model -n 64 --given class=3 --out threes/
    """
    check_out(out, overwrite)
    estimator = open_synthesizer(model)
    options = {"steps": steps, "sampler": sampler, "guidance": guidance}
    found = estimator.sample(count, read_given(given or []), seed=seed, **options)
    write_examples(found, out, overwrite=overwrite)
