"""ansatz fit: from data to a saved model and its evidence."""

import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ansatz.cli.names import complete
from ansatz.cli.opening import naming
from ansatz.cli.options import make_config, merged, read_config, takes
from ansatz.cli.output import (
    print_columns,
    print_document,
    print_fit,
    print_line,
    print_note,
    printable,
    require_free,
    stem,
)
from ansatz.cli.processes import LAUNCHED, fit_in_processes, one_of_several
from ansatz.fitting.options import FitCommand
from ansatz.fitting.options.option import RUN

if TYPE_CHECKING:
    from ansatz.fitting import Request


def _option(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=RUN, show_default=False)


@takes(FitCommand, rare=("config", "print_config", "dry_run", "as_json"))
def fit(
    given: dict[str, Any],
    data: Annotated[
        str | None,
        typer.Argument(
            help="A file (CSV, gz, Parquet, Arrow, npz), a folder of images, or a data set's name.",
            autocompletion=complete("datasets"),
        ),
    ] = None,
    config: Annotated[
        Path | None, _option("Read options from a TOML or JSON file; the command line wins.")
    ] = None,
    print_config: Annotated[
        bool, _option("Print all options as JSON for --config, and stop.", "--print-config")
    ] = False,
    dry_run: Annotated[
        bool, _option("Read the data, print what would be done, and stop.", "--dry-run")
    ] = False,
    as_json: Annotated[bool, _option("Print one JSON document.", "--json")] = False,
) -> None:
    """Fit a network to data, beside a linear and a constant model.

    Reports the role of each column, trains, evaluates on held-out test rows, and saves the
    model in a folder.

    Example:
        ansatz fit boston
        ansatz fit houses.csv --target price
        ansatz fit claims.csv --target count --likelihood poisson --exposure years
        ansatz fit patients.csv --target weeks --event died --likelihood cox
        ansatz fit visits.csv --target cost --group patient --set widths=[64,64]
        ansatz fit houses.csv --target price --network linear --json
        ansatz fit flowers/ --network resnet18 --pretrained resnet18.pth --freeze backbone
        ansatz fit cells/ --masks labels/ --likelihood dice
        ansatz fit train-volume.tif --masks train-labels.tif
        ansatz fit scene/ --masks labels/ --tiles 5
        ansatz fit beats.csv --x grid --target rhythm
        ansatz fit papers.csv --edges cites.csv --target field
        ansatz fit people.csv --task generate
    """
    content = merged({} if config is None else read_config(config), {"data": data, **given})
    chosen = make_config(content, "ansatz fit" if config is None else f"--config {config}")
    if print_config:
        print_document(chosen.to_dict())
        return
    request, out = chosen.request, chosen.request.options["out"]
    folder = Path(out) if out else Path(f"{stem(request.data)}-model")
    advice = "To replace it: --overwrite; to keep it: another --out."
    free = request.options["overwrite"] or request.options["resume"] or dry_run
    require_free(folder, overwrite=free, advice=advice)
    with naming(request.data):
        if dry_run:
            print_plan(request, folder, as_json)
        elif chosen.processes > 1:
            fit_in_processes(chosen, folder, as_json)
        else:
            _run(request.but(out=str(folder)), as_json)


def _run(request: "Request", as_json: bool) -> None:
    from ansatz.fitting.fit import fit_request  # after the checks that need no torch

    is_one_of_several = not os.environ.keys().isdisjoint(LAUNCHED)
    with one_of_several() if is_one_of_several else nullcontext():
        result = fit_request(request)
    if os.environ.get("RANK", "0") != "0":  # of several processes, the first prints the result
        return
    if as_json:
        print_document(result.to_dict())
    else:
        print_fit(result)
    if result.fitted.has_failed:  # the model is there, but its draws are not to be believed
        raise typer.Exit(1)


def print_plan(request: "Request", folder: Path, as_json: bool) -> None:
    r"""Prints what ``ansatz fit`` would do with these options."""
    from ansatz.fitting.problem import read_job, reading, with_structure
    from ansatz.fitting.task import task_of

    asked = with_structure(request)
    with reading(asked) as problem:
        task = task_of(asked, problem)
        task.check_settings(read_job(problem, task))  # raises what the fit would before training
    plan: dict[str, Any] = {
        "rows": problem.size,
        "likelihood": problem.likelihood if len(problem.candidates) == 1 else None,
        "candidates": problem.candidates,
        "network": str(task.settings.network),
        "target": problem.column_roles.outcome_name,
        "columns": [{"name": c.name, "role": c.role} for c in problem.columns],
        "out": folder,
    }
    why = [] if problem.on_disk is None else [problem.on_disk.why]
    for note in (*why, *problem.notes):
        print_note(f"note: {note}")
    if as_json:
        print_document(plan)
        return
    if problem.columns:
        print_columns(problem.columns)
        print_line()
    likelihood = f"likelihood {problem.likelihood}"
    if len(problem.candidates) > 1:
        likelihood = f"likelihood chosen among {', '.join(problem.candidates)}"
    would = "would write"
    if folder.exists():
        replaces = request.options["overwrite"] or request.options["resume"]
        would = "would replace" if replaces else "needs --overwrite to replace"
    spec = problem.rows.spec
    what = f"{problem.size:,} rows"
    if spec is not None:
        shape = " x ".join(map(str, (spec.features, *spec.size)))
        what = f"{problem.size:,} examples of {shape} numbers"
    of = f"{printable(plan['target'], 80)}: " if plan["target"] else ""
    print_line(f"{of}{what}, {likelihood}, network {plan['network']}; {would} {folder}")
