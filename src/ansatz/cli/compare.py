"""ansatz compare: does one model beat another?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ansatz.cli.output import number, print_document, print_line, print_table
from ansatz.errors import UsageError

if TYPE_CHECKING:
    from ansatz.report.compare import Comparison
    from ansatz.report.difference import Difference
    from ansatz.report.methods import Methods


def compare(
    models: Annotated[
        list[Path],
        typer.Argument(help="Folders that ansatz fit wrote, two or more.", metavar="A B"),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            help="The table of the fits, if it is no longer where it was.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    refit: Annotated[
        bool, typer.Option("--refit", help="Compare the methods: fit both again to many folds.")
    ] = False,
    folds: Annotated[int, typer.Option(help="Folds of each repetition.", min=2)] = 5,
    repeats: Annotated[int, typer.Option(help="Repetitions of the folds.", min=1)] = 2,
    seed: Annotated[int, typer.Option(help="Of folds and refits.", min=0)] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Test whether one model beats another, on test rows that neither was trained on.

    Compares the scores row by row, reports the difference with its standard error, and lists
    how the recipes differ. Of more than two models, folds of the training rows choose one, which
    the test rows then compare with the first. Where both are linear models and the columns of one
    are among those of the other, it adds the likelihood-ratio test and Wald's; --test 0 fits such
    models to all rows.

    Example:
        ansatz compare houses-mlp houses-glm
        ansatz compare houses-mlp houses-glm --refit --repeats 4
        ansatz compare first second third --json
    """
    from ansatz.cli.opening import open_model

    if len(models) < 2:
        raise UsageError("compare takes two models or more: ansatz compare A B.")
    if len({folder.absolute() for folder in models}) < len(models):
        raise UsageError("compare takes different models, got one of them twice.")
    for folder in models:
        open_model(folder)  # raises what is wrong with one before the other is read
    from ansatz.report.compare import compare as compare_models
    from ansatz.training.phase import Phase

    with Phase("refits", 0 if quiet else "auto", logged=False) as phase:
        found = compare_models(
            *models,
            data=data,
            refit=refit,
            folds=folds,
            repeats=repeats,
            seed=seed,
            progress=phase.show,
        )
    if as_json:
        print_document(found.to_dict())
    else:
        print_comparison(found)


def print_comparison(found: "Comparison") -> None:
    """Prints a comparison: scores, refits, metrics, settings, and the verdict last."""
    if found.methods is not None:
        print_methods(found.methods)
        print_line()
    if found.scores:
        print_scores(found)
        print_line()
        _print_metrics(found)
    if found.differs:
        rows = [[setting.name, _cell(setting.a), _cell(setting.b)] for setting in found.differs]
        print_table(["what differs", found.a, found.b], rows, limit=48)
        print_line()
    if found.nested is not None:
        for line in found.nested.lines():
            print_line(line)
        print_line()
    print_line(found.verdict)
    for caution in found.cautions:
        print_line(f"  {caution}")


def print_scores(found: "Comparison") -> None:
    """Prints the scores of both models and their paired differences."""
    rows = []
    for score in found.scores:
        difference = score.difference
        mean = difference.mean if score.higher else -difference.mean
        rows.append(
            [
                score.name.replace("_", " "),
                number(score.a),
                number(score.b),
                _signed(mean),
                number(difference.error),
                _share(difference),
                "higher" if score.higher else "lower",
            ]
        )
    first = found.scores[0].difference
    worst = "worst row" if first.worst_rows == 1 else f"worst {first.worst_rows} rows"
    header = ["score", found.a, found.b, "difference", "+-", f"from the {worst}", "better is"]
    print_table(header, rows, numbers=range(1, 6))
    how = "" if first.method == "rows" else f"; standard error: {first.method}"
    print_line(f"on {first.rows} test rows{how}")


def print_methods(methods: "Methods") -> None:
    """Prints how methods do out of fold, beside the first."""
    first = methods.table[0]
    rows = [[first.name, number(first.score), "", ""]]
    for method in methods.table[1:]:
        rows.append([method.name, number(method.score), _signed(method.gain), number(method.error)])
    name = methods.score.replace("_", " ")
    header = ["method", name, f"better than {first.name} by", "+-"]
    print_table(header, rows, numbers=range(1, 4))
    times = "" if methods.repeats == 1 else f"{methods.repeats} x "
    print_line(
        f"refitted to {times}{methods.folds} folds of {methods.rows} rows; corrected standard "
        "errors (Nadeau and Bengio)"
    )


def _print_metrics(found: "Comparison") -> None:
    from ansatz.cli.output import print_metrics

    gone = {"nll" if score.name == "log score" else score.name for score in found.scores}
    rest: dict[str, Any] = {
        name: {key: value for key, value in metrics.items() if key not in gone}
        for name, metrics in found.metrics.items()
    }
    if any(value is not None for metrics in rest.values() for value in metrics.values()):
        print_metrics(rest)
        print_line()


def _share(difference: "Difference") -> str:
    """The share of the worst rows; a dash where chance explains the difference."""
    if difference.worst_share is None or not difference.is_clear:
        return "-"
    return f"{100 * difference.worst_share:.0f} %"


def _signed(value: float) -> str:
    return number(value) if value == 0 or value != value else f"{value:+.4g}"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return "x".join(map(str, value)) if isinstance(value, list) and value else str(value)
