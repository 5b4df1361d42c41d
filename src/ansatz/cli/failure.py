"""How a command ends badly: one line, and an exit status that a script can read."""

import errno
import os
import signal
from typing import NamedTuple

import typer

from ansatz.errors import AnsatzError

# typer vendors click since 0.26 and depended on it before; this is click's UsageError in both.
UsageException: type[Exception] = typer.BadParameter.__bases__[0]

_NO_ROOM = {  # by name: not every system has every number
    getattr(errno, name, None)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EMFILE", "ENFILE", "EIO", "ENOMEM")
}


class Failure(NamedTuple):
    """A line for standard error and an exit status."""

    line: str
    status: int


def explain(error: BaseException) -> Failure:
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
        return Failure(_usage(error), 2)
    if isinstance(error, AnsatzError):
        return Failure(str(error), error.exit_status)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        advice = "Use fewer rows or columns, a smaller network, or a machine with more memory."
        return Failure(f"out of memory. {advice}", 5)
    if isinstance(error, OSError) and error.errno is not None:
        return _system(error)
    name, text = type(error).__name__, str(error)
    return Failure(f"unexpected error: {name}: {text} To see where: run again with --debug.", 1)


def _stopped(error: BaseException) -> Failure:
    """The trainer's interrupt says at which step it stopped, and where it saved."""
    number = int(getattr(error, "signal", signal.SIGINT))
    how = "terminated" if number == signal.SIGTERM else "interrupted"
    step, saved = getattr(error, "step", None), getattr(error, "checkpoint", None)
    where = "" if step is None else f" after step {step}"
    advice = " To go on: the same command with --resume." if saved else ""
    return Failure(f"{how}{where}.{advice}", 128 + number)


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


def _system(error: OSError) -> Failure:
    reason = os.strerror(error.errno) if error.errno else str(error)
    where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
    if error.errno in _NO_ROOM:
        return Failure(f"{where}{reason}. Make room, or write elsewhere with --out.", 5)
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return Failure(f"{where}{reason}. Choose a place you may use.", 5)
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return Failure(f"{where}{reason}.", 2)
    if error.errno in {errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.EEXIST}:
        return Failure(f"{where}{reason}. Choose another path.", 2)
    return Failure(f"{where}{reason}.", 5)
