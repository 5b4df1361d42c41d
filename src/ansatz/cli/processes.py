"""ansatz fit --processes N: the same command in N processes of this machine."""

import json
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ansatz.cli.output import print_note
from ansatz.errors import UsageError

if TYPE_CHECKING:
    from ansatz.cli.options import FitConfig
    from ansatz.training.processes.launch import Ending

_CHILD = "ANSATZ_LAUNCHED"  # set for the processes that --processes starts
LAUNCHED = ("RANK", _CHILD)  # set for one of several processes
_LOST = 75  # the exit status of one that does not know why another one left


@contextmanager
def one_of_several() -> Iterator[None]:
    """Shows warnings and errors of the first process alone.

    A process that ``--processes`` started ends with the command that started it, and leaves it to
    that command to report a process that was lost.
    """
    launched = os.environ.get(_CHILD)
    if launched:
        from ansatz.training.processes.launch import follow_parent

        follow_parent()
        del os.environ[_CHILD]
    with warnings.catch_warnings():
        if os.environ.get("RANK", "0") != "0":
            warnings.simplefilter("ignore")
        try:
            yield
        except BaseException as error:
            if launched and type(error).__name__ == "LostProcess":
                error.reported_elsewhere, error.exit_status = True, _LOST  # type: ignore[attr-defined]
            raise


def fit_in_processes(chosen: "FitConfig", folder: Path, as_json: bool) -> None:
    """Runs the fit in ``chosen.processes`` processes, whose first one prints the result."""
    if "WORLD_SIZE" in os.environ and "RANK" in os.environ:
        raise UsageError(
            "--processes starts processes itself; under torchrun leave it out and use torchrun's "
            "--nproc-per-node."
        )
    from ansatz.training.processes.launch import launch

    request = chosen.request.but(out=str(folder))
    with tempfile.TemporaryDirectory(prefix="ansatz-") as place:
        file = Path(place) / "fit.json"
        shown = {"progress": request.options["progress"]}  # "off" is not a command's default
        content = json.dumps({"data": request.data, **request.given, **shown})
        file.write_text(content, encoding="utf-8")
        command = [sys.executable, "-m", "ansatz", "fit", "--config", str(file)]
        command += ["--json"] * as_json + ["--debug"] * ("--debug" in sys.argv)
        os.environ[_CHILD] = "1"
        try:
            ending = launch(command, chosen.processes)
        finally:
            del os.environ[_CHILD]
    _report(ending)


def _report(ending: "Ending") -> None:
    """Prints one line for a process that ended without one, and exits with its status."""
    if ending.status == 0:
        return
    if ending.killed is not None:
        rank, number = ending.killed
        name = signal.Signals(number).name
        advice = "If memory ran out, use fewer processes. To go on: the same command with --resume."
        print_note(f"process {rank} was killed ({name}), and the others stopped. {advice}")
        raise typer.Exit(5)
    if ending.words and (ending.status == _LOST or not ending.first_failed):
        print(ending.words, end="", file=sys.stderr)
    elif ending.status == _LOST:
        print_note(
            "the processes lost each other: one hangs. To go on: the same command with --resume."
        )
    raise typer.Exit(5 if ending.status == _LOST else ending.status)
