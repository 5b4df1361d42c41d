"""Hooks into the loop, for what the trainer does not know about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ansatz.training.history import History, Record
    from ansatz.training.step import Step


class Run:
    """What a callback can see of a fit in progress, and how it can end it.

    Args:
        step: the step that is being trained: its network, objective and optimizer.
        total: steps that the budget allows.
        period: steps in an epoch.
        history: the evaluations so far.

    Example:
        >>> from ansatz.training import History
        >>> from ansatz.training.callbacks import Run
        >>> run = Run(step=None, total=10, period=5, history=History())
        >>> run.stop("good enough")
        >>> run.stop_reason
        'good enough'
    """

    def __init__(self, step: Step | None, total: int, period: int, history: History) -> None:
        self.step, self.total, self.period, self.history = step, total, period, history
        self.number = 0  # steps done
        self.stop_reason: str | None = None

    def stop(self, reason: str) -> None:
        """Ends training after this step; ``reason`` becomes the history's stop reason."""
        self.stop_reason = reason


class Callback:
    """Does nothing at every occasion; override the ones that matter.

    A callback that remembers something offers ``state_dict`` and ``load_state_dict``; the
    checkpoint then holds it.

    Example:
        >>> from ansatz.training import Callback
        >>> class Patient(Callback):
        ...     def on_evaluation(self, run, record):
        ...         if record["valid_loss"] < 0.1:
        ...             run.stop("good enough")
    """

    def on_start(self, run: Run) -> None:
        """Before the first step."""

    def on_step(self, run: Run, logs: dict[str, float]) -> None:
        """After each step, with what the step logged."""

    def on_evaluation(self, run: Run, record: Record) -> None:
        """After each evaluation."""

    def on_end(self, run: Run, history: History) -> None:
        """When training has ended, for whatever reason, and the best weights are back."""


class Callbacks(NamedTuple):
    """All callbacks, and those that want to hear of every step: the others cost a step nothing.

    Example:
        >>> from ansatz.training import Callback
        >>> from ansatz.training.callbacks import Callbacks
        >>> Callbacks.of([Callback()]).each_step
        ()
    """

    all: tuple[Callback, ...]
    each_step: tuple[Callback, ...]

    @classmethod
    def of(cls, callbacks: Sequence[Callback]) -> Callbacks:
        """Sorts out who overrides ``on_step``."""
        stepping = (c for c in callbacks if type(c).on_step is not Callback.on_step)
        return cls(tuple(callbacks), tuple(stepping))

    def state_dict(self) -> dict[str, Any]:
        """The states of those callbacks that have one, by position."""
        return {str(n): c.state_dict() for n, c in enumerate(self.all) if hasattr(c, "state_dict")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        for n, callback in enumerate(self.all):
            if str(n) in state and hasattr(callback, "load_state_dict"):
                callback.load_state_dict(state[str(n)])
