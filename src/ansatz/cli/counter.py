"""How far a command is, on standard error: one line that moves on a terminal, few that stay."""

import sys
import time
from types import TracebackType

from ansatz.cli.terminal import printable, print_note


class Counter:
    """Counts parts of a work; a log gets a line now and then, a terminal one that moves.

    Args:
        what: a part's name: ``"refit"`` shows "refit 3 of 20".
        quiet: show nothing.
        every: seconds between two lines in a log.
    """

    def __init__(self, what: str, *, quiet: bool = False, every: float = 10.0) -> None:
        self.what, self.quiet, self.every = what, quiet, every
        self._next = time.monotonic() + every
        self._width = 0

    def __enter__(self) -> "Counter":
        """Starts the clock."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Clears the moving line, so that what follows starts at the margin."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0

    def show(self, done: int, total: int, more: str = "") -> None:
        """Says how far it is, and what is known so far.

        Args:
            done: parts that are finished.
            total: of how many.
            more: said behind it.
        """
        if self.quiet:
            return
        text = printable(f"{self.what} {done} of {total}{': ' + more if more else ''}")[:110]
        if sys.stderr.isatty():
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
            self._width = len(text)
        elif time.monotonic() >= self._next or done == total:
            self._next = time.monotonic() + self.every
            print_note(text)
