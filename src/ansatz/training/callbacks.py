"""Callbacks, early stopping and the history of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from torch import nn

from ansatz.errors import UsageError
from ansatz.networks.transfer import freeze, layer_groups

if TYPE_CHECKING:
    from ansatz.training.objectives import Step


Record = dict[str, float | int | bool | None]


@dataclass
class History:
    """The evaluations of a run, its stop reason and notes.

    A record has ``step``, ``epoch`` (a fraction), ``seconds``, ``running_loss`` (the mean over the
    period since the last record, in training mode, while the weights moved), ``valid_loss`` (whole
    validation source, evaluation mode), ``train_loss`` (the same for the training source, on
    request), ``rate`` where the step has one, and ``best`` when it is the best so far.

    Args:
        records: one per evaluation.
        best_step: after how many steps the restored weights were reached.
        best_loss: their validation loss; None without validation data.
        stop_reason: ``"epochs"``, ``"steps"``, ``"patience"``, ``"time limit"``, ``"interrupted"``,
            ``"numerical failure"``, ``"error"``, or the reason of a callback.
        steps: updates in all.
        epochs: full passes over the training source.
        seconds: time spent, over all parts of a resumed run.
        notes: surprises in words: memory, forced resumes, failed checkpoints, fallbacks.

    Example:
        >>> from ansatz.training import History
        >>> History(records=[{"step": 5, "valid_loss": 1.0}]).losses("valid_loss")
        [1.0]
    """

    records: list[Record] = field(default_factory=list)
    best_step: int | None = None
    best_loss: float | None = None
    stop_reason: str | None = None
    steps: int = 0
    epochs: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def losses(self, name: str) -> list[float | int | bool | None]:
        """Gives one column of the records."""
        return [record.get(name) for record in self.records]

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers and strings."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> History:
        """The history that ``state_dict`` described."""
        return cls(**state)


class Run:
    """A fit in progress, as callbacks see it; they may stop it."""

    def __init__(self, step: Step | None, total: int, period: int, history: History) -> None:
        self.step, self.total, self.period, self.history = step, total, period, history
        self.number = 0  # steps done
        self.stop_reason: str | None = None

    def stop(self, reason: str) -> None:
        """Ends training after this step; ``reason`` becomes the history's stop reason."""
        self.stop_reason = reason


class Callback:
    """A listener to a fit; override the methods that matter.

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
        """Runs before the first step."""

    def on_step(self, run: Run, logs: dict[str, float]) -> None:
        """Runs after each step, with what the step logged."""

    def on_evaluation(self, run: Run, record: Record) -> None:
        """Runs after each evaluation."""

    def on_end(self, run: Run, history: History) -> None:
        """Runs when training has ended, and the best weights are back."""


class Callbacks(NamedTuple):
    """All callbacks, and those that listen to every step."""

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
    """Stops after a number of evaluations without a new lowest loss."""

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


class Unfreezing(Callback):
    r"""Unfreezes one more group of layers, from the head towards x, at given epochs.

    With G groups and the given epochs :math:`e_1 \le e_2 \le \dots`, the number of frozen ones is

    .. math:: \max(0,\; G - 1 - \#\{i : e_i \le e\})

    in epoch e, counted from 0. It depends on nothing but e, so that a run that was interrupted and
    resumed freezes as one that was not. The network is frozen at once, when this is made: make it
    before the optimizer, which must hold all groups, as ``discriminative_groups`` gives them.

    Args:
        network: one with groups, see ``ansatz.networks.layer_groups``; frozen but for its head.
        epochs: when the groups wake, one each; fewer than groups leave the first ones frozen.

    Example:
        >>> from ansatz.networks import ResNet18
        >>> from ansatz.training import Unfreezing
        >>> schedule = Unfreezing(ResNet18(3, 10, width=4), epochs=(2, 4))
        >>> [schedule.frozen(epoch) for epoch in range(6)]
        [5, 5, 4, 4, 3, 3]

    References:
        Howard & Ruder (2018), Universal language model fine-tuning for text classification,
        section 3.3. https://arxiv.org/abs/1801.06146
    """

    def __init__(self, network: nn.Module, epochs: Sequence[int]) -> None:
        for epoch in epochs:
            if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 0:
                raise UsageError(f"epochs of Unfreezing must be whole numbers >= 0, got {epoch!r}.")
        groups = layer_groups(network)
        if not 0 < len(epochs) < len(groups):
            raise UsageError(
                f"Unfreezing needs 1 to {len(groups) - 1} epochs, one per group before the head "
                f"of this network, got {len(epochs)}."
            )
        self.network, self.epochs = network, tuple(sorted(epochs))
        self._groups = len(groups)
        freeze(network, "backbone")
        woken = groups[len(groups) - 1 - len(epochs) : -1]
        for parameter in (p for group in woken for part in group for p in part.parameters()):
            # Frozen for a time only: the trainer keeps its best value with the others.
            parameter.rests = True  # type: ignore[attr-defined]
        self._frozen = self._groups - 1

    def frozen(self, epoch: int) -> int:
        """How many groups are frozen in ``epoch``."""
        return max(0, self._groups - 1 - sum(each <= epoch for each in self.epochs))

    def on_start(self, run: Run) -> None:
        """Also after a resume, in the middle of whatever epoch."""
        self._apply(run)

    def on_step(self, run: Run, logs: dict[str, float]) -> None:
        """After the last step of an epoch, the next one counts."""
        if run.number % run.period == 0:
            self._apply(run)

    def _apply(self, run: Run) -> None:
        count = self.frozen(run.number // run.period)
        if count != self._frozen:
            freeze(self.network, count)
            self._frozen = count
