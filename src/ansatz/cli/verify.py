"""ansatz verify: the textbook's claims, measured here and now."""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ansatz.cli.claims import print_coverage, print_errata, print_finding, print_summary
from ansatz.cli.names import complete_claim
from ansatz.cli.output import print_document, print_note, require_free
from ansatz.errors import UsageError
from ansatz.fitting.options.option import read_settings

if TYPE_CHECKING:
    from ansatz.claims import Outcome

_FORMATS = (".png", ".svg", ".pdf")
_ADVICE = "To replace it: --overwrite."


def verify(
    chosen: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names, areas, patterns like 'hopfield-*', rows of the catalog; all by default.",
            metavar="CLAIM",
            autocompletion=complete_claim,
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="More repetitions, larger sizes: up to a minute each.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A parameter of the claim; the value is JSON. May be repeated.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw one claim: .png, .svg or .pdf.", metavar="FILE")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Draw every claim into this folder.", metavar="DIR")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace figures.")] = False,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes; by default as many as there are processors."),
    ] = None,
    slowest: Annotated[bool, typer.Option("--slowest", help="The slowest claims first.")] = False,
    errata: Annotated[
        bool,
        typer.Option("--errata", help="Common slips: as printed, corrected, measured."),
    ] = False,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="Statements of the catalog without a claim.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure theorems, identities and experiments, and compare them with their predictions.

    Each claim is compared with its prediction, within a tolerance that is derived, and with a
    wrong prediction that must fail. Exit status 1 when a claim does not hold.

    Example:
        ansatz verify
        ansatz verify xor --figure xor.png
        ansatz verify connectionism --workers 2
        ansatz verify --errata
    """
    _refuse_what_contradicts(chosen, set_, figure, figures, errata=errata, coverage=coverage)
    if figure is not None:
        require_free(figure, overwrite=overwrite, advice=_ADVICE)
    parameters = read_settings(set_ or [])

    from ansatz import claims
    from ansatz.claims import catalog
    from ansatz.claims import errata as slips
    from ansatz.claims.registry import select

    if coverage:
        print_coverage(catalog.coverage(), as_json)
        return
    names = select(chosen or [])
    if errata:
        names = [name for name in names if claims.get(name).errata]
    files = _files(names, figure, figures, overwrite=overwrite)
    start = time.perf_counter()
    with _Progress(len(names)) as progress:
        outcomes = claims.verify(
            *names,
            scale="full" if full else "quick",
            seed=seed,
            parameters=parameters,
            figures=next((path.suffix[1:].lower() for path in files.values()), None),
            workers=workers or _processors(),
            on_outcome=progress.advance,
        ) if names else []  # fmt: skip
    seconds = time.perf_counter() - start
    for outcome in outcomes:
        _save(outcome, files, overwrite=overwrite)
    if errata:
        found = slips.errata(outcomes)
        print_errata([each for each in found if not chosen or each.claim in names], as_json)
    elif as_json:
        print_document([outcome.to_dict() for outcome in outcomes])
    elif len(outcomes) == 1:
        print_finding(outcomes[0], "full" if full else "quick", seed, parameters)
    else:
        print_summary(outcomes, seconds, slowest=slowest)
    _tell_what_broke(outcomes)
    if not all(outcome.holds for outcome in outcomes):
        raise typer.Exit(1)


def _refuse_what_contradicts(
    chosen: list[str] | None,
    set_: list[str] | None,
    figure: Path | None,
    figures: Path | None,
    *,
    errata: bool,
    coverage: bool,
) -> None:
    if errata and coverage:
        raise UsageError("--errata and --coverage are two questions: ask one at a time.")
    for flag, given in (("--errata", errata), ("--coverage", coverage)):
        if given and (figure or figures or set_ or (coverage and chosen)):
            what = (
                "takes no claims, figures or parameters" if coverage else "draws and sets nothing"
            )
            raise UsageError(f"{flag} {what}.")
    if set_ and not chosen:
        raise UsageError("--set is for the claims that you name: ansatz verify CLAIM --set ...")
    if figure is not None and figures is not None:
        raise UsageError("--figure draws one claim, --figures all: give one of them.")
    if figure is not None and figure.suffix.lower() not in _FORMATS:
        raise UsageError(f"--figure writes .png, .svg or .pdf, got '{figure.name}'.")


def _files(
    names: list[str], figure: Path | None, figures: Path | None, *, overwrite: bool
) -> dict[str, Path]:
    """Finds the file of each figure, and rejects those that exist before any work."""
    from ansatz import claims

    if figure is not None:
        if len(names) != 1:
            raise UsageError(
                f"--figure draws one claim, {len(names)} are chosen. For all: --figures DIR"
            )
        if claims.get(names[0]).draw is None:
            raise UsageError(f"claim '{names[0]}' has no figure.")
        return {names[0]: figure}
    if figures is None:
        return {}
    files = {name: figures / f"{name}.png" for name in names if claims.get(name).draw is not None}
    for path in files.values():
        require_free(path, overwrite=overwrite, advice=_ADVICE)
    return files


def _save(outcome: "Outcome", files: dict[str, Path], *, overwrite: bool) -> None:
    if outcome.figure is None:
        return
    from ansatz.storage import write_file

    path = files[outcome.id]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, outcome.figure, overwrite=overwrite)
    print_note(f"figure: {path}")


def _tell_what_broke(outcomes: "list[Outcome]") -> None:
    for outcome in outcomes:
        if outcome.error:
            if "--debug" in sys.argv:
                print(outcome.trace, file=sys.stderr)
            print_note(f"claim '{outcome.id}' broke: {outcome.error}")


def _processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Progress:
    """A bar on a terminal, and nothing elsewhere."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._bar: Any = None

    def __enter__(self) -> "_Progress":
        if sys.stderr.isatty() and self.total > 1:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
            from rich.progress import TimeElapsedColumn as Elapsed

            columns = (
                BarColumn(),
                MofNCompleteColumn(),
                Elapsed(),
                TextColumn("{task.fields[id]}"),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=self.total, id="")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, outcome: "Outcome") -> None:
        """Counts one more claim."""
        if self._bar is not None:
            self._bar.update(self._task, advance=1, id=outcome.id)
