"""ansatz recommend: the best partners of one thing that it does not have yet."""

from pathlib import Path
from typing import Annotated

import typer

from ansatz.cli.predict import Output


def recommend(
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    source: Annotated[
        str, typer.Option(help="The user, node or entity to recommend for.", metavar="ID")
    ],
    relation: Annotated[
        str | None,
        typer.Option(help="Of triples: the relation; ^NAME reads it backwards.", metavar="NAME"),
    ] = None,
    top: Annotated[int, typer.Option(help="Partners at most.", min=1)] = 10,
    out: Annotated[
        Path | None, typer.Option(help="Write here instead of standard output.", metavar="FILE")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Recommend films to a user, partners to a node, entities to complete a triple.

    Writes CSV, the best first: the partner, and what the model predicts of the pair. What the
    data of the fit hold already is left out.

    Example:
        ansatz recommend ratings-model --source 17 --top 10
        ansatz recommend umls-model --source virus --relation causes
    """
    from ansatz.cli.opening import naming, open_model

    output = Output(out, overwrite, False, as_json)
    output.check()
    estimator = open_model(model)
    with naming(str(model)):
        found = estimator.recommend(source, relation=relation, top=top)
    output.write([found.set_axis(range(1, len(found) + 1)).rename_axis("rank")], in_chunks=False)
