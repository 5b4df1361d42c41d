"""What happened during a fit."""

from dataclasses import asdict, dataclass, field
from typing import Any

Record = dict[str, float | int | bool | None]


@dataclass
class History:
    """The evaluations of a run, how it ended, and what the user should know about it.

    A record has ``step``, ``epoch`` (a fraction), ``seconds``, ``running_loss`` (the mean over the
    period since the last record, in training mode, while the weights moved), ``valid_loss`` (whole
    validation source, evaluation mode), ``train_loss`` (the same for the training source, on
    request), ``rate`` where the step has one, and ``best`` when it is the best so far.

    Args:
        records: one per evaluation.
        best_step: after how many steps the restored weights were reached.
        best_loss: their validation loss; None without validation data.
        stop_reason: ``"epochs"``, ``"steps"``, ``"patience"``, ``"time limit"``, ``"interrupted"``,
            ``"numerical failure"``, ``"error"``, or what a callback said.
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
        """One column of the records."""
        return [record.get(name) for record in self.records]

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers and strings."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "History":
        """The history that ``state_dict`` described."""
        return cls(**state)
