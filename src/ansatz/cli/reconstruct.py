"""ansatz reconstruct: examples encoded and decoded again by a model of x."""

from pathlib import Path
from typing import Annotated

import typer

from ansatz.cli.examples import check_out, open_synthesizer, read_examples, write_examples


def reconstruct(
    model: Annotated[
        Path, typer.Argument(help="The folder that ansatz fit --task generate wrote.")
    ],
    data: Annotated[str, typer.Argument(help="Examples like those of the fit.")],
    out: Annotated[
        Path | None,
        typer.Option(help="A CSV file; of images a .png, an .npz or a folder.", metavar="PLACE"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace PLACE.")] = False,
) -> None:
    """Encode examples as latents and decode these: what the model keeps of them.

    Example:
        ansatz reconstruct digits-model new-digits/ --out reconstructed/
    """
    check_out(out, overwrite)
    estimator = open_synthesizer(model)
    examples, given = read_examples(estimator, data)
    write_examples(estimator.reconstruct(examples, given), out, overwrite=overwrite)
