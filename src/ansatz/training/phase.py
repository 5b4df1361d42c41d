"""Shows which part of a fit is at work, beside the training, which has a display of its own."""

import shutil
import sys
import time
from types import TracebackType
from typing import Self, TextIO

from ansatz.training.callbacks import time_words
from ansatz.training.machine import current_processes


class Phase:
    """One part of a work: a line in a log, or a line of a terminal that goes when it is done.

    Args:
        words: what is done.
        progress: as the trainer takes it; 0 and ``"off"`` show nothing.
        stream: where to write; standard error by default.
        interval: seconds between lines in a log.
        logged: whether a log gets a line when it begins.
    """

    def __init__(
        self,
        words: str,
        progress: int | str = "auto",
        stream: TextIO | None = None,
        interval: float = 10.0,
        logged: bool = True,
    ) -> None:
        processes = current_processes()
        is_first = processes is None or processes.is_first
        self.stream = stream or sys.stderr
        self.shown = progress not in (0, "off") and is_first and self.stream is not None
        self.words, self.interval, self.logged = words, interval, logged
        self._width = 0

    def __enter__(self) -> Self:
        """Shows the words."""
        self._start = time.monotonic()
        self._next = self._start + self.interval
        if self.shown and (self.logged or self.stream.isatty()):
            self._write(f"{self.words} ...")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Clears the line of a terminal."""
        if self._width:
            self.stream.write("\r" + " " * self._width + "\r")
            self.stream.flush()
            self._width = 0

    def show(self, done: int, total: int, more: str = "") -> None:
        """Shows how much is done, how long the rest will take, and what is known so far.

        A log gets a line from time to time, and one when all is done.

        Args:
            done: parts that are done.
            total: all parts.
            more: a few further words.
        """
        now = time.monotonic()
        if not self.shown or not (self.stream.isatty() or now >= self._next or done == total):
            return
        self._next = now + self.interval
        left = (now - self._start) / done * (total - done) if 0 < done < total else None
        rest = "" if left is None else f", about {time_words(left)} left"
        self._write(f"{self.words}: {done} of {total}{rest}{'; ' * bool(more)}{more}")

    def _write(self, text: str) -> None:
        if self.stream.isatty():
            text = text[: min(110, shutil.get_terminal_size().columns - 1)]
            self.stream.write("\r" + text.ljust(self._width))
            self._width = max(len(text), self._width)
        else:
            self.stream.write(text + "\n")
        self.stream.flush()
