"""Callbacks of a fit: a bar, lines for a log, TensorBoard, gradual unfreezing."""

import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TextIO

from torch import nn

from ansatz.errors import MissingExtraError, UsageError
from ansatz.networks.transfer import freeze, layer_groups
from ansatz.training.run import Callback, History, Record, Run

Level = Literal["auto", 0, 1, 2]


class ProgressBar(Callback):
    """Shows one line, rewritten at most ten times a second (twice in a notebook)."""

    def __init__(self, stream: TextIO | None = None, interval: float = 0.1) -> None:
        self.stream = stream or sys.stderr
        self.interval = interval
        self._next, self._width = 0.0, 0
        self._start, self._first = time.monotonic(), 0

    def on_start(self, run: Run) -> None:
        """Starts the clock; a resumed run has steps behind it that took no time here."""
        self._start, self._first = time.monotonic(), run.number

    def on_step(self, run: Run, logs: dict[str, float]) -> None:
        """Redraws when it is time."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self.interval
            text = _where(run) + f"  loss {logs['loss']:.4g}" + _valid(run.history)
            self._draw(text + _left(run, self._first, now - self._start))

    def on_end(self, run: Run, history: History) -> None:
        """The last state of the line, which stays."""
        self._draw(_summary(history))
        self.stream.write("\n")
        self.stream.flush()

    def _draw(self, text: str) -> None:
        text = text[: min(110, shutil.get_terminal_size((111, 24)).columns - 1)]
        self.stream.write("\r" + text.ljust(self._width))
        self.stream.flush()
        self._width = len(text)


class Lines(Callback):
    """Writes a line every ten seconds, later one per 5 % of the time, and a last one, for a log."""

    def __init__(self, stream: TextIO | None = None, interval: float = 10.0) -> None:
        self.stream = stream or sys.stderr
        self.interval = interval
        self._start, self._first = time.monotonic(), 0
        self._next = self._start + interval

    def on_start(self, run: Run) -> None:
        """Starts the clock; a resumed run has steps behind it that took no time here."""
        self._start, self._first = time.monotonic(), run.number
        self._next = self._start + self.interval

    def on_step(self, run: Run, logs: dict[str, float]) -> None:
        """Writes a line when it is time, with an estimate of the time that is left."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + max(self.interval, (now - self._start) / 20)
        text = _where(run) + f"  loss {logs['loss']:.4g}" + _valid(run.history)
        self._write(text + _left(run, self._first, now - self._start))

    def on_end(self, run: Run, history: History) -> None:
        """How it ended."""
        self._write(_summary(history))

    def _write(self, text: str) -> None:
        self.stream.write(text + "\n")
        self.stream.flush()


class TensorBoard(Callback):
    """Writes every number of every record as a scalar.

    A resumed run hides the points after the step it resumed from, so no curve is drawn twice.
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


def create_progress(level: Level, stream: TextIO | None = None) -> Callback | None:
    """Creates the display: 0 none, 1 a bar, 2 lines; ``"auto"``: lines if not a terminal.

    A bar needs a terminal or a notebook; anywhere else 1 means 2.
    """
    if level not in ("auto", 0, 1, 2) or isinstance(level, bool):
        raise UsageError(f"progress must be 'auto', 0, 1 or 2, got {level!r}.")
    stream = stream or sys.stderr
    if level == 0 or stream is None:  # a windowed process has no stderr
        return None
    if level == 2:
        return Lines(stream)
    if stream.isatty():
        return ProgressBar(stream)
    return ProgressBar(stream, interval=0.5) if _is_notebook(stream) else Lines(stream)


def _is_notebook(stream: TextIO) -> bool:
    return type(stream).__module__.startswith("ipykernel")


def _where(run: Run) -> str:
    limited = run.total < sys.maxsize
    epochs = f"/{-(-run.total // run.period)}" if limited else ""
    steps = f"/{run.total}" if limited else ""
    return f"epoch {-(-run.number // run.period)}{epochs}  step {run.number}{steps}"


def _valid(history: History) -> str:
    if not history.records or history.records[-1].get("valid_loss") is None:
        return ""
    last = history.records[-1]
    return f"  valid {last['valid_loss']:.4g}{' *' if last.get('best') else ''}"


def _left(run: Run, first: int, seconds: float) -> str:
    """The time that the other steps will take at most: patience may end the training earlier."""
    done = run.number - first
    if run.total == sys.maxsize or not done:
        return ""
    return f"  at most {time_words(seconds / done * (run.total - run.number))} left"


def _summary(history: History) -> str:
    best = ""
    if history.best_loss is not None:
        best = f", best valid loss {history.best_loss:.4g} at step {history.best_step}"
    why = history.stop_reason
    return f"stopped after step {history.steps} ({why}){best}"


def time_words(seconds: float) -> str:
    """Writes a duration: 3.2 s, 1:05 min, 2:03:04."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d} min"


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
        """Counts the groups that are frozen in ``epoch``."""
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
