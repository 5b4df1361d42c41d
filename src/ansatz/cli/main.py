"""The command ``ansatz``.

This module and the commands it gathers import nothing heavy: a command imports torch when it
runs, so that ``--help``, ``--version`` and a mistyped option answer at once.
"""

import errno
import functools
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple

import typer

from ansatz import __version__
from ansatz.cli.bench import bench
from ansatz.cli.bound import bound
from ansatz.cli.certify import certify
from ansatz.cli.compare import compare
from ansatz.cli.data import app as data_app
from ansatz.cli.demo import app as demo_app
from ansatz.cli.density import density
from ansatz.cli.doctor import doctor
from ansatz.cli.evaluate import evaluate
from ansatz.cli.export import export
from ansatz.cli.fit import fit
from ansatz.cli.forecast import forecast
from ansatz.cli.generate import generate
from ansatz.cli.impute import impute
from ansatz.cli.inspect import inspect
from ansatz.cli.list import list_names
from ansatz.cli.options import ShortHelp
from ansatz.cli.output import forget_notes, print_note, printable
from ansatz.cli.predict import predict
from ansatz.cli.recommend import recommend
from ansatz.cli.reconstruct import reconstruct
from ansatz.cli.report import report
from ansatz.cli.sample import sample
from ansatz.cli.show import show
from ansatz.cli.signals import how, report_once, stoppable
from ansatz.cli.suggest import suggest
from ansatz.cli.tokens import tokens
from ansatz.cli.translate import translate
from ansatz.cli.tune import tune
from ansatz.cli.verify import verify
from ansatz.errors import AnsatzError

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
    ("bound", bound),
    ("export", export),
    ("generate", generate),
    ("inspect", inspect),
    ("list", list_names),
    ("show", show),
    ("tokens", tokens),
    ("translate", translate),
    ("forecast", forecast),
    ("recommend", recommend),
    ("suggest", suggest),
    ("sample", sample),
    ("density", density),
    ("reconstruct", reconstruct),
    ("impute", impute),
    ("verify", verify),
):
    app.command(_name, cls=ShortHelp if hasattr(_function, "rare") else None)(_function)
app.add_typer(data_app, name="data")
app.add_typer(demo_app, name="demo")
app.command("bench")(bench)
app.command("doctor")(doctor)


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit status; every failure becomes one line on stderr."""
    debug, arguments = _take_debug(arguments)
    forget_notes()
    try:
        with _one_line_warnings(), stoppable():
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
        if not getattr(error, "reported_elsewhere", False):  # by the first of several processes
            print_note(failure.line)
        report_once()
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


@functools.cache
def _command() -> Any:
    return typer.main.get_command(app)


def _invoke(arguments: list[str]) -> int:
    # Not command.main(): it would turn an interrupt and a closed pipe into its own exit statuses.
    command = _command()
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
    except (OSError, ValueError):  # stdout is not a file (a test's buffer)
        pass
    return 0


# typer vendors click since 0.26 and depended on it before; this is click's UsageError in both.
UsageException: type[Exception] = typer.BadParameter.__bases__[0]

_NO_ROOM = {  # by name: not every system has every number
    getattr(errno, name, None)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EMFILE", "ENFILE", "EIO", "ENOMEM")
}


class ErrorLine(NamedTuple):
    """A line for standard error and an exit status."""

    line: str
    status: int


def explain(error: BaseException) -> ErrorLine:
    """The line and the status that an exception deserves.

    ==================================  ======
    ``ansatz.errors``                   theirs
    an option or argument               2
    no memory, no space, no permission  5
    interrupted, terminated             130, 143
    anything else                       1
    ==================================  ======
    """
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return _stopped(error)
    if isinstance(error, UsageException):
        return ErrorLine(_usage(error), 2)
    if isinstance(error, AnsatzError):
        return ErrorLine(str(error), error.exit_status)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        advice = "Use fewer rows or columns, a smaller network, or a machine with more memory."
        return ErrorLine(f"out of memory. {advice}", 5)
    if isinstance(error, OSError) and error.errno is not None:
        return _system(error)
    name, text = type(error).__name__, str(error)
    return ErrorLine(f"unexpected error: {name}: {text} To see where: run again with --debug.", 1)


def _stopped(error: BaseException) -> ErrorLine:
    """Reports at which step an interrupted training stopped, and where it saved."""
    number = int(getattr(error, "signal", signal.SIGINT))
    step, saved = getattr(error, "step", None), getattr(error, "checkpoint", None)
    where = "" if step is None else f" after step {step}"
    advice = " To go on: the same command with --resume." if saved else ""
    return ErrorLine(f"{how(number)}{where}.{advice}", 128 + number)


def _usage(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    message = str(error.format_message())  # type: ignore[attr-defined]  # click's own method
    if getattr(error, "option_name", None) and hasattr(error, "possibilities"):
        message = f"no such option: {error.option_name}."  # type: ignore[attr-defined]
        near = _nearest(error, context)
        message += f" Did you mean '{near}'?" if near else ""
    message = message[:1].lower() + message[1:]
    path = context.command_path if context is not None else "ansatz"
    return f"{message.rstrip('.')}{'' if message.endswith('?') else '.'} Help: {path} --help"


def _nearest(error: Exception, context: typer.Context | None) -> str | None:
    import difflib

    known = list(getattr(error, "possibilities", None) or ())
    if context is not None:
        known += [option for each in context.command.params for option in each.opts]
    options = sorted({option for option in known if option.startswith("--")})
    near = difflib.get_close_matches(str(getattr(error, "option_name", "")), options, n=1)
    return near[0] if near else None


def _system(error: OSError) -> ErrorLine:
    reason = os.strerror(error.errno) if error.errno else str(error)
    where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
    if error.errno in _NO_ROOM:
        return ErrorLine(f"{where}{reason}. Make room, or write elsewhere with --out.", 5)
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return ErrorLine(f"{where}{reason}. Choose a place you may use.", 5)
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return ErrorLine(f"{where}{reason}.", 2)
    if error.errno in {errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.EEXIST}:
        return ErrorLine(f"{where}{reason}. Choose another path.", 2)
    return ErrorLine(f"{where}{reason}.", 5)
