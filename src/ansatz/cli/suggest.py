"""ansatz suggest: which rows of a pool to label next."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ansatz.cli.options import AGAIN, takes
from ansatz.cli.output import print_document, print_table
from ansatz.errors import UsageError
from ansatz.fitting.options.commands import ReadingAgain

WAYS = ("bald", "variance", "ei")


@takes(ReadingAgain, AGAIN)
def suggest(
    given: dict[str, Any],
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    pool: Annotated[str, typer.Argument(help="Rows without outcomes, as for ansatz predict.")],
    count: Annotated[int, typer.Option(help="Rows to suggest.")] = 10,
    by: Annotated[
        str | None,
        typer.Option(
            help="Information about the label, the posterior's variance, or the expected "
            "improvement on the largest prediction. Default: bald for classes, else variance.",
            metavar="bald|variance|ei",
        ),
    ] = None,
    allow_unconverged: Annotated[
        bool,
        typer.Option("--allow-unconverged", help="Answer although draws have failed to converge."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Suggest which rows to label next, the most informative first.

    Rows are ranked one by one, so that neighbours may be suggested together.

    Example:
        ansatz suggest yield-model candidates.csv --count 5
        ansatz suggest yield-model candidates.csv --by ei
    """
    if by is not None and by not in WAYS:
        raise UsageError(f"--by must be one of {', '.join(WAYS)}, got {by}.")
    if count < 1:
        raise UsageError(f"--count must be 1 or more, got {count}.")
    from ansatz.cli.opening import naming, open_data, open_model
    from ansatz.fitting.components import suggestions

    estimator = open_model(model, allow_unconverged=allow_unconverged)
    estimator.model_.require_converged()
    with naming(pool):
        read = open_data(estimator, pool, given)
        frames = read.frames(estimator, interval=None, components=True)
        found = suggestions(list(frames), count, by)
    rows = [{"row": int(place), **found.loc[place].to_dict()} for place in found.index]
    if as_json:
        print_document(rows)
        return
    head = ["row", *found.columns]
    print_table(head, [[row[name] for name in head] for row in rows], numbers=range(2, len(head)))
