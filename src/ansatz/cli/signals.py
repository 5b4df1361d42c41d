"""SIGINT and SIGTERM end the command with one line and status 130 or 143, whenever they come.

The entry point calls :func:`enter` before anything heavy is imported, so this file imports next to
nothing. While a command runs, a signal raises :class:`Stopped`, so that temporary files go; the
trainer has handlers of its own that finish a step first. Before and after, and inside of an import
(where C code turns exceptions into others), there is nothing to unwind: the process ends at once.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """The command got a signal while it ran."""

    def __init__(self, number: int) -> None:
        self.signal = number
        super().__init__(how(number))


def how(number: int) -> str:
    """What a signal does to a command, in a word."""
    return "terminated" if number == signal.SIGTERM else "interrupted"


class _State:
    entered = False  # whether this process is the command, and nothing but the command
    running = False  # whether there may be something to unwind
    received: int | None = None
    reported = False  # whether a line says how the command ended


def enter() -> None:
    """Handles both signals from now on until the process has ended.

    A signal that is being ignored, as SIGINT is under nohup, stays ignored.
    """
    import atexit

    _State.entered = True
    for number in NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _receive)
    sys.unraisablehook = _end_instead(sys.unraisablehook)
    # First in is last out. Python then puts back the system's handlers, which would end a command
    # whose work is done with a signal's status; it leaves ignored signals alone.
    atexit.register(_ignore)


@contextmanager
def stoppable() -> Iterator[None]:
    """Raises :class:`Stopped` inside where a signal comes; at the latest at the end."""
    before = None if _State.entered else _handle_sigterm()
    _State.running, _State.received, _State.reported = True, None, False
    try:
        yield
        _raise_swallowed()
    except Exception:
        _raise_swallowed()  # whatever an interrupted decoder or extension made of it
        raise
    finally:
        _State.running = False
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def report_once() -> None:
    """Notes that a line says how the command ended: a later signal adds none."""
    _State.reported = True


def _handle_sigterm() -> "Any":
    """Takes SIGTERM for a command inside of another program; Python itself raises for SIGINT."""
    try:
        return signal.signal(signal.SIGTERM, _receive)
    except ValueError:  # only the main thread may
        return None


def _raise_swallowed() -> None:
    if _State.received is not None:
        raise Stopped(_State.received)


def _receive(number: int, frame: "FrameType | None") -> None:
    _State.received = number
    if _State.entered and (not _State.running or _is_import(frame)):
        _end(number)
    raise Stopped(number)


def _is_import(frame: "FrameType | None") -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _end(number: int) -> None:
    """Ends the process at once, with the line and the status of a signal."""
    if not _State.reported:
        os.write(2, f"ansatz: {how(number)}.\n".encode())
    os._exit(128 + number)


def _end_instead(before: "Any") -> "Any":
    """An exception that Python can only print, as in a finaliser, must not cost us a signal."""

    def hook(unraisable: "Any") -> None:
        if isinstance(unraisable.exc_value, Stopped):
            _end(unraisable.exc_value.signal)
        before(unraisable)

    return hook


def _ignore() -> None:
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)
