"""Stop when the validation loss has stopped falling."""

import math
from typing import Any, Protocol

from ansatz.errors import UsageError


class Stopping(Protocol):
    """What decides, evaluation by evaluation, when enough has been learned.

    Example:
        >>> from ansatz.training.early_stopping import EarlyStopping, Stopping
        >>> stopping: Stopping = EarlyStopping(patience=3)
    """

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
    """Remembers the lowest loss and how many evaluations ago it was.

    Args:
        patience: evaluations without a new lowest loss that are endured; None for any number.

    Example:
        >>> from ansatz.training.early_stopping import EarlyStopping
        >>> stopping = EarlyStopping(patience=2)
        >>> [stopping.observe(loss) for loss in (3.0, 2.0, 2.5, 2.2)]
        [True, True, False, False]
        >>> stopping.exhausted
        True
    """

    def __init__(self, patience: int | None) -> None:
        if patience is not None and patience < 1:
            raise UsageError(f"patience must be at least 1 evaluation, got {patience}.")
        self.patience = patience
        self.best, self.waited = math.inf, 0

    def observe(self, loss: float) -> bool:
        """True when ``loss`` is the lowest so far."""
        if loss < self.best:
            self.best, self.waited = loss, 0
            return True
        self.waited += 1
        return False

    @property
    def exhausted(self) -> bool:
        """True when patience has run out."""
        return self.patience is not None and self.waited >= self.patience

    def state_dict(self) -> dict[str, Any]:
        """The lowest loss (None before the first) and the evaluations since."""
        return {"best": None if self.best == math.inf else self.best, "waited": self.waited}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        self.best = math.inf if state["best"] is None else float(state["best"])
        self.waited = int(state["waited"])
