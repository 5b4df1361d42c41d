"""ansatz tune: search for a better recipe, and test whether it is one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ansatz.cli.names import complete
from ansatz.cli.options import takes
from ansatz.cli.output import (
    number,
    print_document,
    print_line,
    print_note,
    print_table,
    printable,
    require_free,
    stem,
)
from ansatz.fitting.options import TuneOptions
from ansatz.fitting.options.option import RUN

if TYPE_CHECKING:
    from ansatz.tuning import Trial, Tuning


def _option(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=RUN, show_default=False)


@takes(TuneOptions, rare=("quiet", "as_json"))
def tune(
    given: dict[str, Any],
    data: Annotated[
        str,
        typer.Argument(
            help="A file (CSV, gz, Parquet, Arrow, npz), a folder of images, or a data set's name.",
            autocompletion=complete("datasets"),
        ),
    ],
    quiet: Annotated[bool, _option("No progress.", "--quiet", "-q")] = False,
    as_json: Annotated[bool, _option("Print one JSON document.", "--json")] = False,
) -> None:
    """Search for a better recipe than the default, and test it on held-out rows.

    Evaluates each trial on folds of the training rows, fits the best to all of them, and
    compares it with the default recipe on the test rows, once. --resume continues a stopped
    search.

    Example:
        ansatz tune houses.csv --target price
        ansatz tune houses.csv --target price --searches 50 --space depth=1..3
        ansatz tune houses.csv --target price --resume
        ansatz tune flowers/ --space network=lenet5,small_resnet
    """
    from ansatz.cli.options import require_target
    from ansatz.fitting.request import validated

    asked = validated(given, TuneOptions, "ansatz tune")
    require_target(asked, data, "ansatz tune")
    folder = Path(asked.get("out") or f"{stem(data)}-tuned")
    advice = "To replace it: --overwrite; to keep it: another --out."
    free = asked.get("overwrite", False) or asked.get("resume", False)
    require_free(folder, overwrite=free, advice=advice)
    from ansatz.training.phase import Phase
    from ansatz.tuning import tune as search

    with Phase("trials", 0 if quiet else "auto", logged=False) as phase:

        def show(done: int, total: int, so_far: str) -> None:
            phase.show(done, total, printable(so_far))

        found = search(data, **{**given, "out": folder, "progress": show})
    if as_json:
        print_document(found.to_dict())
    else:
        print_tuning(found)


def print_tuning(found: "Tuning") -> None:
    """Prints the best trials, the test beside the default recipe, and the verdict."""
    import shlex

    for note in found.notes:
        print_note(f"note: {note}")
    shown = found.leaders()
    if found.trials[0] not in shown:
        shown.append(found.trials[0])
    print_trials(found, shown)
    print_line(
        f"score: mean of {found.folds} inner folds; better than the default by, +- corrected error"
    )
    print_line()
    if found.comparison is not None:
        from ansatz.cli.compare import print_scores

        print_scores(found.comparison)
        print_line()
    print_line(found.verdict)
    for caution in () if found.comparison is None else found.comparison.cautions:
        print_line(f"  {caution}")
    if found.fit.folder is not None:
        folder = shlex.quote(str(found.fit.folder))
        print_line()
        print_line(f"model: {folder}")
        print_line(f"next:  ansatz report {folder}")


def print_trials(found: "Tuning", shown: "list[Trial]") -> None:
    """Prints trials as columns: a recipe is read downwards."""
    gains = [found.gain(trial) for trial in shown]
    header = ["trial", *("default" if t.number == 0 else str(t.number) for t in shown)]
    rows = [
        ["score", *(number(trial.score) for trial in shown)],
        ["better by", *("" if gain is None else f"{gain[0]:+.3g}" for gain in gains)],
        ["+-", *("" if gain is None else number(gain[1]) for gain in gains)],
    ]
    for name in found.space:
        rows.append([name, *(number(trial.parameters.get(name)) for trial in shown)])
    print_table(header, rows, numbers=range(1, len(header)))
