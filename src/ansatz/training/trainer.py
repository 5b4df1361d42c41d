"""The trainer: budget, device, threads, signals and checkpoints around the loop."""

import logging
import math
import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from ansatz.data.source import Source
from ansatz.errors import DataError, Interrupted, NumericalError, UsageError
from ansatz.storage import RunLock
from ansatz.storage.run_folder import RunFolder, Saved
from ansatz.training.callbacks import Level, TensorBoard, create_progress
from ansatz.training.loop import Loop, StepBudget
from ansatz.training.machine import (
    Signals,
    choose_device,
    choose_threads,
    current_processes,
    own_randomness,
    refuse_half_precision,
    trusted_device,
    using_threads,
)
from ansatz.training.objectives import Step
from ansatz.training.processes.gradients import device_of_process, join
from ansatz.training.processes.group import Processes
from ansatz.training.run import Average, Averaging, Callback, Callbacks, History
from ansatz.training.torch_data import as_source

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

_log = logging.getLogger(__name__)


class Trainer:
    """Trains: repeats a step over a source of batches, and leaves the best weights it found.

    The best weights by validation loss are in the network whenever training ends: budget, patience,
    time limit, interrupt or failure. With an average, they are averaged weights. Without validation
    data they are the last ones.

    With ``checkpoint`` and ``resume``, a run that was killed at any moment ends with the same
    weights bit for bit as one that was not, on the same machine type with the same torch and
    thread count. When a checkpoint is written has no influence on the result.

    Under ``torchrun``, or in a program that has opened a process group, all processes train one
    model: each takes its own rows of every batch, so that ``batch_size`` and the result are those
    of one process. The first process writes checkpoints and shows progress; callbacks run in all.

    Args:
        epochs: passes over the training source.
        steps: updates; with both given, the smaller budget counts.
        patience: evaluations without progress after which to stop.
        min_improvement: what counts as progress: a validation loss that is lower than at the last
            progress by this number times the smaller of 1 and the gain since the first evaluation.
        evaluate_every: steps between evaluations; once per epoch by default.
        average: ``"ema"`` or ``"swa"``.
        checkpoint: folder for checkpoints; none are written by default.
        checkpoint_every: steps between checkpoints; by default one every 30 seconds. One is always
            written before the first step, on a signal and at the end.
        keep: how many checkpoints stay.
        resume: continue the run in ``checkpoint``; starts it when there is none.
        fingerprint: settings and data of the run, as plain JSON. A resume with another one is
            refused.
        time_limit: seconds, over all parts of the run.
        progress: 0 silent, 1 a bar, 2 lines; ``"auto"`` picks by where stderr goes.
        tensorboard: folder for TensorBoard logs.
        callbacks: see :class:`Callback`.
        seed: of dropout and whatever else draws from torch's global generator during the fit.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
        force: resume although the fingerprint differs; the history notes it.
        threads: ``"auto"`` by the size of the network, or a number.
        evaluate_train: also report the training loss in evaluation mode.
        on_checkpoint_error: ``"continue"`` with a warning, or ``"stop"``.

    Attributes:
        history: of the last fit, also when it failed.
        nothing_to_do: True when the last fit resumed a run that had already ended.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch, TensorSource
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.training import GradientStep, Supervised, Trainer
        >>> x = torch.randn(64, 2)
        >>> source = TensorSource(Batch.of(x, x.sum(1)), batch_size=16)
        >>> network = torch.nn.Linear(2, 1)
        >>> optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
        >>> step = GradientStep(network, Supervised(Normal(dispersion=1.0)), optimizer)
        >>> history = Trainer(epochs=50, progress=0).fit(step, source, valid=source)
        >>> history.stop_reason, round(history.best_loss, 2)
        ('epochs', 0.92)
    """

    def __init__(
        self,
        *,
        epochs: int | None = None,
        steps: int | None = None,
        patience: int | None = None,
        min_improvement: float = 0.0,
        evaluate_every: int | None = None,
        average: Average | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int | None = None,
        keep: int = 2,
        resume: bool = False,
        fingerprint: dict[str, Any] | None = None,
        time_limit: float | None = None,
        progress: Level = "auto",
        tensorboard: str | Path | None = None,
        callbacks: Sequence[Callback] = (),
        seed: int = 0,
        device: str = "auto",
        force: bool = False,
        threads: int | Literal["auto"] = "auto",
        evaluate_train: bool = False,
        on_checkpoint_error: Literal["continue", "stop"] = "continue",
    ) -> None:
        for name, value in {
            "epochs": epochs,
            "steps": steps,
            "evaluate_every": evaluate_every,
            "checkpoint_every": checkpoint_every,
            "threads": None if threads == "auto" else threads,
        }.items():
            if value is not None and (not isinstance(value, int) or value < 1):
                raise UsageError(f"{name} must be a whole number >= 1, got {value!r}.")
        if all(budget is None for budget in (epochs, steps, patience, time_limit)):
            raise UsageError("give a budget: epochs, steps, patience or time_limit.")
        if time_limit is not None and not 0 < time_limit < math.inf:
            raise UsageError(f"time_limit must be a positive number of seconds, got {time_limit}.")
        if resume and checkpoint is None:
            raise UsageError("resume needs checkpoint, the folder of the run to continue.")
        if on_checkpoint_error not in ("continue", "stop"):
            raise UsageError(
                f"on_checkpoint_error must be 'continue' or 'stop', got {on_checkpoint_error!r}."
            )
        self.epochs, self.steps, self.patience = epochs, steps, patience
        self.min_improvement = min_improvement
        self.evaluate_every, self.evaluate_train = evaluate_every, evaluate_train
        self.average = average
        self.checkpoint, self.checkpoint_every, self.keep = checkpoint, checkpoint_every, keep
        self.resume, self.fingerprint, self.force = resume, fingerprint, force
        self.time_limit, self.progress, self.tensorboard = time_limit, progress, tensorboard
        self.callbacks, self.seed, self.device, self.threads = callbacks, seed, device, threads
        self.on_checkpoint_error = on_checkpoint_error
        self.history: History | None = None
        self.nothing_to_do = False

    def fit(
        self,
        step: Step,
        train: "Source | DataLoader[Any]",
        valid: "Source | DataLoader[Any] | None" = None,
    ) -> History:
        """Trains the step's weights, and returns the history of the run.

        Args:
            step: what one batch does.
            train: where batches come from: a source, or a torch DataLoader, which is seeded by
                ``seed`` and the epoch, see :class:`~ansatz.training.LoaderSource`.
            valid: batches that evaluate the weights.

        Raises:
            NumericalError: a loss or gradient is not finite; the update was not applied.
            Interrupted: SIGINT or SIGTERM, after the step was finished and a checkpoint written.
            UsageError: settings that contradict each other or the run in the folder.
            BusyError: another process trains into the same folder.
        """
        self.nothing_to_do = False
        train = as_source(train, self.seed)
        valid = None if valid is None else as_source(valid, self.seed)
        if len(train) == 0:
            raise DataError("the training source has no rows.")
        if self.patience is not None and valid is None:
            raise UsageError(
                "patience needs a validation source; to watch the training loss, "
                "pass the training source as valid."
            )
        processes = current_processes()
        if processes is None:
            return self._fit(step, train, valid, None)
        with processes.together():
            return self._fit(step, train, valid, processes)

    def _fit(
        self, step: Step, train: Source, valid: Source | None, processes: Processes | None
    ) -> History:
        device = self._place(step, train, processes)
        threads = self._choose_threads(step, train, processes)
        is_first = processes is None or processes.is_first
        with ExitStack() as stack:
            stack.enter_context(using_threads(threads))
            if processes is not None:
                stack.enter_context(join(processes, step, train, valid, self._settings(train)))
            stack.enter_context(own_randomness(self.seed, device))
            folder = self._open_folder(stack, train) if is_first else None
            signals = stack.enter_context(Signals())
            plan = self._plan(train)
            loop = Loop(
                step,
                train,
                valid,
                plan=plan,
                patience=self.patience,
                min_improvement=self.min_improvement,
                average=Averaging(self.average, step, plan.total) if self.average else None,
                callbacks=self._all_callbacks(is_first),
                device=device,
                signals=signals,
                folder=folder,
                processes=processes,
            )
            history = self._run(loop, folder, signals)
        if signals.received is not None:  # after the last step, when nobody looked any more
            raise Interrupted(signals.received, loop.number)
        return history

    def _run(self, loop: Loop, folder: RunFolder | None, signals: Signals) -> History:
        if self.checkpoint is not None:
            saved = self._load(loop, folder)
            if saved is not None:
                loop.load(saved)
            if folder is not None:
                loop.history.notes.extend(folder.notes)
            if saved is not None and saved.finished and not self._goes_on(saved.finished, loop):
                _log.info(
                    "nothing to do: the run in %s has ended (%s)", self.checkpoint, saved.finished
                )
                loop.callbacks, self.nothing_to_do = Callbacks.of(()), True
                self.history = loop.finish(saved.finished)
                return self.history
        self.history = loop.history
        self._note_source(loop)
        for callback in loop.callbacks.all:
            callback.on_start(loop.view)
        try:
            reason = loop.run()
            loop.save(finished=None if reason == "interrupted" else reason)
            if loop.processes is not None:
                loop.processes.gather()  # nobody leaves before it is written
        except BaseException as error:
            loop.finish(_name(error))
            if isinstance(error, NumericalError) and loop.resumed is not None:
                raise NumericalError(f"{error} The run went on from {loop.resumed}.") from error
            raise
        loop.finish(reason)
        if signals.received is not None:
            where = None if self.checkpoint is None else str(self.checkpoint)
            interrupted = Interrupted(signals.received, loop.number, where)
            raise interrupted if loop.processes is None else loop.processes.settle(interrupted)
        return loop.history

    def _note_source(self, loop: Loop) -> None:
        """Notes batches that a resumed run cannot repeat; warns where there are checkpoints."""
        note = getattr(loop.train, "note", None)
        if note is not None and note not in loop.history.notes:
            loop.history.notes.append(note)
            if self.checkpoint is not None:
                warnings.warn(note, stacklevel=4)

    def _load(self, loop: Loop, folder: RunFolder | None) -> Saved | None:
        """The checkpoint to go on from, which the first of several processes reads for all."""
        saved, processes = None, loop.processes
        if folder is not None:
            saved = folder.load(
                threads=torch.get_num_threads(),
                device=str(loop.device),
                processes=1 if processes is None else processes.size,
            )
        if processes is None:
            return saved
        content = processes.bytes_from_first(b"" if saved is None else saved.to_bytes())
        return Saved.from_bytes(content) if content else None

    def _goes_on(self, finished: str, loop: Loop) -> bool:
        """Tests whether a finished run has a larger budget now."""
        if finished in ("epochs", "steps"):
            return loop.number < loop.plan.total
        if finished == "time limit":
            return self.time_limit is None or loop.history.seconds < self.time_limit
        return False

    def _place(self, step: Step, train: Source, processes: Processes | None) -> torch.device:
        device = choose_device(self.device)
        if processes is not None:
            device = device_of_process(device, processes, asked=self.device)
        if device.type == "mps":
            first = next(iter(train.batches(epoch=0)))
            device = trusted_device(step.network, step.objective, first, device)
        refuse_half_precision(step.network, device)
        step.network.to(device)
        step.objective.to(device)
        return device

    def _choose_threads(self, step: Step, train: Source, processes: Processes | None) -> int:
        if self.threads != "auto":
            return self.threads
        rows = getattr(train, "batch_size", 1024)
        if processes is None:
            return choose_threads(step.network, rows)
        return choose_threads(step.network, -(-rows // processes.size), processes.local_size)

    def _open_folder(self, stack: ExitStack, train: Source) -> RunFolder | None:
        if self.checkpoint is None:
            return None
        lock = stack.enter_context(RunLock(self.checkpoint))
        folder = RunFolder(
            self.checkpoint,
            keep=self.keep,
            fingerprint=self._settings(train) | (self.fingerprint or {}),
            resume=self.resume,
            force=self.force,
        )
        if lock.note:
            folder.notes.append(lock.note)
        return folder

    def _settings(self, train: Source) -> dict[str, Any]:
        """Gives what identifies a run, beside its data."""
        # Runs of before had no such number.
        own = {"min_improvement": self.min_improvement} if self.min_improvement else {}
        return {
            **own,
            "seed": self.seed,
            "average": self.average,
            "evaluate_every": self.evaluate_every,
            "patience": self.patience,
            "batches per epoch": len(train),
        }

    def _plan(self, train: Source) -> StepBudget:
        by_epochs = sys.maxsize if self.epochs is None else self.epochs * len(train)
        by_steps = sys.maxsize if self.steps is None else self.steps
        return StepBudget(
            total=min(by_epochs, by_steps),
            limit="epochs" if by_epochs <= by_steps else "steps",
            evaluate_every=self.evaluate_every or len(train),
            evaluate_train=self.evaluate_train,
            checkpoint_every=self.checkpoint_every,
            time_limit=self.time_limit,
            stop_on_checkpoint_error=self.on_checkpoint_error == "stop",
            saves=self.checkpoint is not None,
            seed=self.seed,
        )

    def _all_callbacks(self, is_first: bool) -> Callbacks:
        extra: list[Callback] = []
        if self.tensorboard is not None and is_first:
            extra.append(TensorBoard(self.tensorboard))
        silent = type(self.progress) is int and self.progress == 0
        if is_first and not silent:
            progress = create_progress(self.progress)
            if progress is not None:
                extra.append(progress)
        return Callbacks.of([*self.callbacks, *extra])


def _name(error: BaseException) -> str:
    if isinstance(error, NumericalError):
        return "numerical failure"
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "error"
