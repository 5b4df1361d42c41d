"""The command ``ansatz``.

This module and the commands it gathers import nothing heavy: a command imports torch when it
runs, so that ``--help``, ``--version`` and a mistyped option answer at once.
"""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from ansatz import __version__
from ansatz.cli.bench import bench
from ansatz.cli.certify import certify
from ansatz.cli.compare import compare
from ansatz.cli.data import app as data_app
from ansatz.cli.demo import app as demo_app
from ansatz.cli.doctor import doctor
from ansatz.cli.evaluate import evaluate
from ansatz.cli.export import export
from ansatz.cli.failure import explain
from ansatz.cli.fit import fit
from ansatz.cli.inspect import inspect
from ansatz.cli.list import list_names
from ansatz.cli.predict import predict
from ansatz.cli.report import report
from ansatz.cli.show import show
from ansatz.cli.terminal import printable, print_note
from ansatz.cli.tune import tune
from ansatz.cli.verify import verify

app = typer.Typer(
    name="ansatz",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ansatz {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of a failure. Works anywhere.")
    ] = False,
) -> None:
    """Deep learning as statistics: say what x is, what y is, and how sure you need to be.

    Example:
        ansatz fit houses.csv --target price
        ansatz predict houses-model new.csv --interval 0.9
        ansatz list likelihoods
        ansatz show gamma
    """
    if context.invoked_subcommand is None:
        print(context.get_help(), end="")


for _name, _function in (
    ("fit", fit),
    ("predict", predict),
    ("evaluate", evaluate),
    ("compare", compare),
    ("tune", tune),
    ("report", report),
    ("certify", certify),
    ("export", export),
    ("inspect", inspect),
    ("list", list_names),
    ("show", show),
    ("verify", verify),
):
    app.command(_name)(_function)
app.add_typer(data_app, name="data")
app.add_typer(demo_app, name="demo")
app.command("bench")(bench)
app.command("doctor")(doctor)


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit status; every failure becomes one line on stderr."""
    debug, arguments = _take_debug(arguments)
    try:
        with _one_line_warnings(), _sigterm():
            status = _invoke(list(arguments))
            sys.stdout.flush()
        return status
    except SystemExit as leave:
        if isinstance(leave.__context__, BrokenPipeError):  # rich makes it an exit of its own
            return _abandon_stdout()
        return leave.code if isinstance(leave.code, int) else 0
    except BrokenPipeError:
        return _abandon_stdout()
    except BaseException as error:
        failure = explain(error)
        if debug:
            traceback.print_exception(error)
        if not getattr(error, "told_elsewhere", False):  # by the first of several processes
            print_note(failure.line)
        return failure.status


def main() -> None:
    """The entry point of the command: ``run`` on the process's own arguments, then exit."""
    for stream in (sys.stdout, sys.stderr):
        # An ASCII terminal shows an escape instead of failing on a name it cannot spell.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if "_ANSATZ_COMPLETE" in os.environ:  # the shell asks for completions
        app(prog_name="ansatz")
    sys.exit(run(sys.argv[1:]))


def _invoke(arguments: list[str]) -> int:
    # Not command.main(): it would turn an interrupt and a closed pipe into its own exit statuses.
    command = typer.main.get_command(app)
    try:
        with command.make_context("ansatz", arguments) as context:
            command.invoke(context)
    except typer.Exit as leave:
        return leave.exit_code
    return 0


def _take_debug(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """--debug is for everyone, before or after the command's name."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    before, after = list(arguments[:end]), list(arguments[end:])
    return "--debug" in before, [word for word in before if word != "--debug"] + after


class _Terminated(KeyboardInterrupt):
    signal = signal.SIGTERM


def _terminate(number: int, frame: Any) -> None:
    raise _Terminated


@contextmanager
def _sigterm() -> Iterator[None]:
    """SIGTERM unwinds the stack, so that temporary files go; the trainer takes over while it runs.

    Only the main thread of a program may set a handler.
    """
    try:
        before = signal.signal(signal.SIGTERM, _terminate)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """A warning is a sentence for the user; where in our code it was raised is not."""
    before: Callable[..., Any] = warnings.showwarning

    def show_warning(message: Any, *_: Any, **__: Any) -> None:
        print_note(f"warning: {printable(message)}")

    warnings.showwarning = show_warning
    try:
        yield
    finally:
        warnings.showwarning = before


def _abandon_stdout() -> int:
    """Python flushes stdout once more at exit, into the closed pipe: give it somewhere to go."""
    try:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)
    except (OSError, ValueError):  # stdout is no file (a test's buffer)
        pass
    return 0
