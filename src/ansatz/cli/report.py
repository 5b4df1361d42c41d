"""ansatz report: the evidence of a saved model as one page."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from ansatz.cli.output import print_document, print_line, print_note, require_free

_COSTS = "Costs"


def report(
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    data: Annotated[
        str | None, typer.Option(help="The table of the fit, if it moved.", metavar="FILE")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The page to write. Default: MODEL.html.", metavar="FILE")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the page.")] = False,
    refits: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Networks fitted again for the bands of effects; by their cost if not given.",
        ),
    ] = None,
    cost_under: Annotated[
        float | None,
        typer.Option(
            help="Cost of each unit that a decision falls short of the outcome.",
            rich_help_panel=_COSTS,
        ),
    ] = None,
    cost_over: Annotated[
        float | None,
        typer.Option(help="Cost of each unit that it exceeds it.", rich_help_panel=_COSTS),
    ] = None,
    cost_miss: Annotated[
        float | None,
        typer.Option(help="Cost of a positive row taken for negative.", rich_help_panel=_COSTS),
    ] = None,
    cost_alarm: Annotated[
        float | None,
        typer.Option(help="Cost of a negative row taken for positive.", rich_help_panel=_COSTS),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show the page in the browser.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write the evidence of a saved model as one page: scores, calibration, effects, decisions.

    The page is a single file without scripts that opens anywhere and prints well. It is computed
    from the test rows of the fit, read again from where they were.

    Example:
        ansatz report houses-model
        ansatz report houses-model --out houses.html --open
        ansatz report demand-model --cost-under 5 --cost-over 1
        ansatz report fraud-model --cost-miss 100 --cost-alarm 2 --json
    """
    page = out or model.absolute().with_name(f"{model.absolute().name}.html")
    advice = "To replace it: --overwrite; to keep it: another --out."
    require_free(page, overwrite=overwrite, advice=advice)
    given = {"under": cost_under, "over": cost_over, "miss": cost_miss, "alarm": cost_alarm}
    costs = {name: cost for name, cost in given.items() if cost is not None}

    from ansatz.cli.opening import open_model
    from ansatz.report import write_report

    open_model(model)  # raises what is wrong with the folder
    made = write_report(
        model,
        page,
        data=data,
        refits=refits,
        costs=costs,
        overwrite=overwrite,
        progress=None if quiet else lambda words: print_note(f"report: {words}"),
    )
    size = page.stat().st_size
    if as_json:
        document = {
            "page": str(page),
            "bytes": size,
            "verdict": made.verdict,
            "sections": [section.title for section in made.sections],
        }
        print_document(document)
    else:
        for sentence in made.verdict:
            print_line(sentence)
        print_line()
        print_line(f"report: {page} ({size / 1e6:.2f} MB)")
        print_line(f"open it in a browser: {page.absolute().as_uri()}")
    if open_:
        webbrowser.open(page.absolute().as_uri())
