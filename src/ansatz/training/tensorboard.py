"""Losses for TensorBoard, on request."""

from pathlib import Path
from typing import Any

from ansatz.errors import MissingExtraError
from ansatz.training.callbacks import Callback, Run
from ansatz.training.progress import History, Record


class TensorBoard(Callback):
    """Writes every number of every record as a scalar.

    A resumed run hides the points after the step it resumed from, so no curve is drawn twice.

    Args:
        folder: for ``tensorboard --logdir``.

    Example:
        >>> from ansatz.training.tensorboard import TensorBoard
        >>> TensorBoard("runs/a").folder.name
        'a'
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._writer: Any = None

    def on_start(self, run: Run) -> None:
        """Opens the log."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtraError("TensorBoard logs", "tb") from error
        purge = run.number + 1 if run.number else None
        self._writer = SummaryWriter(str(self.folder), purge_step=purge)

    def on_evaluation(self, run: Run, record: Record) -> None:
        """One point per number."""
        for name, value in record.items():
            if name != "step" and isinstance(value, int | float) and not isinstance(value, bool):
                self._writer.add_scalar(name, value, run.number)

    def on_end(self, run: Run, history: History) -> None:
        """Closes the log."""
        self._writer.close()
