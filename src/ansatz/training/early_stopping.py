"""When a training stops by the losses of its evaluations."""

import math
from typing import Any, Protocol

from ansatz.errors import UsageError


class Stopping(Protocol):
    """The rule that stops a run, evaluation by evaluation."""

    @property
    def exhausted(self) -> bool:
        """True when it is time to stop."""
        ...

    def observe(self, loss: float) -> bool:
        """Takes note of a loss; True when it is the best so far."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that it remembers."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        ...


class EarlyStopping:
    r"""Stops after a number of evaluations without progress.

    A loss l is progress where it is lower than at the last progress by more than

    .. math:: m \cdot \min(1, \; l_1 - \min_t l_t)

    with :math:`m` the ``min_improvement`` and :math:`l_1` the first loss. The measure does not
    change with the unit of the loss while its gain is below 1, and is never more than m nats per
    row. Any new lowest loss is still the best one, whose weights are kept.

    Where losses have a least value (0 for the probabilities of classes), it also stops after a
    tenth of the patience, and at least 3 evaluations in a row, within m of that value: the rest
    of the training can improve the loss by no more than m.
    """

    def __init__(
        self, patience: int | None, min_improvement: float = 0.0, least_loss: float = -math.inf
    ) -> None:
        check_stopping(patience, min_improvement)
        self.patience, self.min_improvement = patience, min_improvement
        self.enough = least_loss + min_improvement
        self.best = self.first = self.progress = math.inf
        self.waited = self.settled = 0

    def observe(self, loss: float) -> bool:
        """True when ``loss`` is the lowest so far."""
        if self.first == math.inf:
            self.first = loss
        is_best = loss < self.best
        self.best = min(loss, self.best)
        margin = self.min_improvement * min(1.0, self.first - self.best)
        if loss < self.progress - margin:
            self.progress, self.waited = loss, 0
        else:
            self.waited += 1
        self.settled = self.settled + 1 if loss < self.enough else 0
        return is_best

    @property
    def exhausted(self) -> bool:
        """True when patience has run out, or nothing is left to gain."""
        if self.patience is None:
            return False
        return self.waited >= self.patience or self.settled >= settling(self.patience)

    def state_dict(self) -> dict[str, Any]:
        """The losses that later ones are compared with (None before the first), and the wait."""
        seen = {"best": self.best, "first": self.first, "progress": self.progress}
        plain = {name: None if value == math.inf else value for name, value in seen.items()}
        return {**plain, "waited": self.waited, "settled": self.settled}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        self.best = math.inf if state["best"] is None else float(state["best"])
        for name in ("first", "progress"):
            value = state.get(name, state["best"])  # runs of before had no such numbers
            setattr(self, name, math.inf if value is None else float(value))
        self.waited, self.settled = int(state["waited"]), int(state.get("settled", 0))


def settling(patience: int) -> int:
    """Counts the evaluations near the least loss after which a training stops."""
    return max(3, patience // 10)


def check_stopping(patience: int | None, min_improvement: float) -> None:
    """Refuses settings of early stopping that are out of range."""
    if patience is not None and patience < 1:
        raise UsageError(f"patience must be at least 1 evaluation, got {patience}.")
    if not 0 <= min_improvement < math.inf:
        raise UsageError(f"min_improvement must be a number from 0 on, got {min_improvement}.")
