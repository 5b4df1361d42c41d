"""Ctrl-C and SIGTERM: finish the step, save, and say so; twice means now."""

import signal
import threading
from types import FrameType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Training ended by a signal, after a whole step; the best weights so far are in the network.

    A KeyboardInterrupt, so that ``except Exception`` does not swallow it. ``exit_status`` is 130
    for an interrupt and 143 for a termination, as shells expect.

    Args:
        number: the signal.
        step: steps done.
        checkpoint: where the run can be resumed from; None without one.

    Example:
        >>> import signal
        >>> from ansatz.training import Interrupted
        >>> Interrupted(signal.SIGTERM, step=40).exit_status
        143
    """

    def __init__(self, number: int, step: int, checkpoint: str | None = None) -> None:
        self.signal, self.step, self.checkpoint = int(number), step, checkpoint
        how = "interrupted" if number == signal.SIGINT else "terminated"
        saved = f"; saved in {checkpoint}, resume=True continues" if checkpoint else ""
        super().__init__(f"{how} after step {step}{saved}.")

    @property
    def exit_status(self) -> int:
        """128 + the signal's number."""
        return 128 + self.signal


class Signals:
    """Notes the first SIGINT or SIGTERM; a second one stops at once.

    Handlers are installed in the main thread only (Python allows no other), and put back after. A
    signal that is being ignored, as under nohup, stays ignored.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.step = 0  # for the message of a second signal
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Signals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            # None stands for a handler that was not set from Python and cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before.clear()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            raise Interrupted(number, self.step)
        self.received = number
