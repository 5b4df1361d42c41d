"""The training loop: steps, evaluations, checkpoints; all that it remembers can be saved."""

import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ansatz.data.batch import Batch, first_tensor, to_device
from ansatz.data.source import Source
from ansatz.errors import AnsatzError, ModelError
from ansatz.storage import load_into
from ansatz.storage.decoding import decoding
from ansatz.storage.run_folder import RunFolder, Saved
from ansatz.training.early_stopping import EarlyStopping, Stopping
from ansatz.training.loop_state import LoopState
from ansatz.training.machine import (
    Signals,
    has_shards,
    owned_generators,
    random_state,
    seed_step,
    set_random_state,
)
from ansatz.training.objectives import Step, is_additive, least_loss, mean_loss
from ansatz.training.processes.gradients import gather_shards, shard_named
from ansatz.training.processes.group import Processes
from ansatz.training.run import (
    Averaging,
    Callbacks,
    History,
    Record,
    Run,
    Snapshot,
    moving,
    restore,
    snapshot,
    spoiled,
)

_SECONDS_BETWEEN_CHECKPOINTS = 30.0


class StepBudget(NamedTuple):
    """The budget of a run in steps, and how often it evaluates and saves."""

    total: int
    limit: str  # "epochs" or "steps", whichever sets the total
    evaluate_every: int
    evaluate_train: bool = False
    checkpoint_every: int | None = None  # None for every 30 seconds
    time_limit: float | None = None
    stop_on_checkpoint_error: bool = False
    saves: bool = False  # by the first process, where there are several
    seed: int = 0  # of each process and step, where there are several


class Loop:
    """Runs the steps, evaluations and checkpoints of one fit, in one part or several.

    Everything that the next step depends on is in :meth:`state`, and everything due (an evaluation,
    the end) follows from that state, so that where a run is cut in two makes no difference.
    """

    def __init__(
        self,
        step: Step,
        train: Source,
        valid: Source | None,
        *,
        plan: StepBudget,
        patience: int | None,
        min_improvement: float,
        average: Averaging | None,
        callbacks: Callbacks,
        device: torch.device,
        signals: Signals,
        folder: RunFolder | None,
        processes: Processes | None = None,
    ) -> None:
        self.step, self.train, self.valid, self.plan = step, train, valid, plan
        self.average, self.callbacks, self.folder = average, callbacks, folder
        self.device, self.signals, self.processes = device, signals, processes
        self._is_sharded, self._is_additive = has_shards(step.network), is_additive(step.objective)
        self._generators = owned_generators(step.network, step.objective)
        self.history = History()
        # An ensemble's members stop one by one, which their step sees to.
        own = getattr(step, "stopping", EarlyStopping)
        self.stopping: Stopping = own(patience, min_improvement, least_loss(step.objective))
        self.number = self.epoch = self.position = 0  # steps in all; batch `position` of `epoch`
        self.evaluated = 0  # the step of the last evaluation
        self.total = self.count = 0.0  # of the training loss since then
        self.best: Snapshot | None = None
        self.resumed: Path | None = None  # the checkpoint that it went on from
        self.view = Run(step, plan.total, len(train), self.history)
        self._start = snapshot(step)
        self._clock, self._seconds_before = time.monotonic(), 0.0
        self._saved_number, self._warned = -1, False
        self._next_save = self._clock + _SECONDS_BETWEEN_CHECKPOINTS
        self._set_events()

    # --- the loop --------------------------------------------------------------------------------

    def run(self) -> str:
        """Trains until there is a reason to stop, and returns it."""
        reason = self._pause() if self.number else None
        if self.plan.saves and self._saved_number < 0:
            self._write(None)  # a folder that cannot be written to is found out before any work
        each_step, average, processes = self.callbacks.each_step, self.average, self.processes
        while reason is None:
            for batch in self.train.batches(self.epoch, self.position):
                if processes is None:
                    logs = self.step.step(self._move(batch))
                else:
                    logs = self._common_step(batch, processes)
                self.number += 1
                self.position += 1
                count = logs["count"] if "count" in logs else float(batch.weight.sum())
                self.total += logs["loss"] * count
                self.count += count
                if average is not None:
                    average.update(self.number)
                if each_step:
                    self._report(logs)
                if self.number >= self._next_event or (
                    self._wants_pause() if processes is None else processes.pause
                ):
                    reason = self._pause()
                    if reason is not None:
                        return reason
            self.epoch, self.position = self.epoch + 1, 0
        return reason

    def _common_step(self, batch: Batch, processes: Processes) -> dict[str, float]:
        """A step that all processes make, each with its own rows and random numbers."""
        seed_step(self.plan.seed, processes.rank, self.number, self.device, self._generators)
        processes.wants_pause = self._wants_pause()
        part = processes.part(batch)
        return self.step.step(self._move(part if self._is_additive else batch))

    def _wants_pause(self) -> bool:
        return (
            time.monotonic() >= self._next_moment
            or self.signals.received is not None
            or self.view.stop_reason is not None
        )

    def _move(self, batch: Batch) -> Batch:
        if first_tensor(batch.inputs).device == self.device:
            return batch
        return to_device(batch, self.device)

    def _report(self, logs: dict[str, float]) -> None:
        self.view.number = self.number
        for callback in self.callbacks.each_step:
            callback.on_step(self.view, logs)

    def _pause(self) -> str | None:
        """Finds what is due after this step: an evaluation, a checkpoint, the end."""
        self.signals.step = self.view.number = self.number
        self._agree()
        every = self.plan.evaluate_every
        at_end = self.number >= self.plan.total or self._over_time() or self.view.stop_reason
        if self.number > self.evaluated and (self.number % every == 0 or at_end):
            self._evaluate()
            self._agree()
        reason = self._reason_to_stop()
        if reason is None and self._checkpoint_due():
            self.save()
        self._set_events()
        return reason

    def _agree(self) -> None:
        """A signal or a wish to stop that reached one process counts for all."""
        if self.processes is not None:
            wishes = self.processes.gather([self.signals.received, self.view.stop_reason])
            signals, reasons = (
                [w for w in each if w is not None] for each in zip(*wishes, strict=True)
            )
            self.signals.received = signals[0] if signals else None
            self.view.stop_reason = reasons[0] if reasons else None

    def _decide(self, answer: bool) -> bool:
        """Lets the first process decide what depends on a clock."""
        return answer if self.processes is None else bool(self.processes.from_first(answer))

    def _reason_to_stop(self) -> str | None:
        if self.signals.received is not None:
            return "interrupted"
        if self.stopping.exhausted:
            return "patience"
        if self.number >= self.plan.total:
            return self.plan.limit
        if self.view.stop_reason is not None:
            return self.view.stop_reason
        return "time limit" if self._over_time() else None

    def _set_events(self) -> None:
        """The next step number and the next moment at which to look up from the work."""
        after = [self.plan.total]
        for every in (self.plan.evaluate_every, self.plan.checkpoint_every):
            if every:
                after.append((self.number // every + 1) * every)
        self._next_event = min(after)
        moments = [float("inf")]
        if self.folder is not None and self.plan.checkpoint_every is None:
            moments.append(self._next_save)
        if self.plan.time_limit is not None:
            moments.append(self._clock + self.plan.time_limit - self._seconds_before)
        self._next_moment = min(moments)

    @property
    def seconds(self) -> float:
        """Time spent on the run, earlier parts included."""
        return self._seconds_before + time.monotonic() - self._clock

    def _over_time(self) -> bool:
        limit = self.plan.time_limit
        return limit is not None and self._decide(self.seconds >= limit)

    # --- evaluation ------------------------------------------------------------------------------

    def _evaluate(self) -> None:
        """Adds a record; leaves no trace when a signal cuts it short, so that it is done later."""
        losses: dict[str, float | None] = {}
        sources = self._evaluated_sources()
        with self.average.in_place() if self.average and sources else nullcontext():
            for name, source in sources:
                losses[name] = mean_loss(
                    self.step,
                    source,
                    move=self._move,
                    stop=self._signalled,
                    processes=self.processes,
                )
                if losses[name] is None:
                    return
            record = self._record(losses)
            loss = losses.get("valid_loss")
            if loss is not None and self.stopping.observe(loss):
                self.best, record["best"] = snapshot(self.step), True
                self.history.best_step, self.history.best_loss = self.number, loss
        if loss is not None and hasattr(self.step, "observe"):
            self.step.observe(loss)
        self.history.records.append(record)
        self.evaluated, self.total, self.count = self.number, 0.0, 0.0
        for callback in self.callbacks.all:
            callback.on_evaluation(self.view, record)

    def _evaluated_sources(self) -> list[tuple[str, Source]]:
        found = [("train_loss", self.train)] if self.plan.evaluate_train else []
        return found + ([("valid_loss", self.valid)] if self.valid is not None else [])

    def _record(self, losses: dict[str, float | None]) -> Record:
        record: Record = {
            "step": self.number,
            "epoch": self.number / len(self.train),
            "seconds": self.seconds,
            "running_loss": self.total / self.count if self.count else None,
            **losses,
        }
        if hasattr(self.step, "rate"):
            record["rate"] = float(self.step.rate)
        return record

    def _signalled(self) -> bool:
        # Of several processes, none may leave the others in the middle: the next pause decides.
        return self.processes is None and self.signals.received is not None

    # --- the end ---------------------------------------------------------------------------------

    def finish(self, reason: str) -> History:
        """Fills in the history and puts the best weights back."""
        if self.history.stop_reason != reason:  # else it was saved so, and stays as it was saved
            self._complete(reason)
        if self.best is not None:
            restore(self.step, self.best)
        elif reason == "numerical failure" and spoiled(self.step, self._start):
            restore(self.step, self._start)
        elif self.average is not None:
            self.average.apply()
        for callback in self.callbacks.all:
            callback.on_end(self.view, self.history)
        return self.history

    def _complete(self, reason: str | None) -> None:
        history = self.history
        history.stop_reason, history.steps, history.seconds = reason, self.number, self.seconds
        history.epochs = self.epoch + (self.position >= len(self.train))
        if self.valid is None:
            history.best_step = self.number
        notes = getattr(self.step, "notes", [])
        history.notes.extend(note for note in notes if note not in history.notes)

    # --- memory ----------------------------------------------------------------------------------

    def _checkpoint_due(self) -> bool:
        if not self.plan.saves or self.number == self._saved_number:
            return False
        if self.plan.checkpoint_every is None:
            return self._decide(time.monotonic() >= self._next_save)
        return self.number % self.plan.checkpoint_every == 0

    def save(self, finished: str | None = None) -> None:
        """Writes a checkpoint; when that fails, goes on or stops by the plan."""
        if not self.plan.saves:
            return
        self._next_save = time.monotonic() + _SECONDS_BETWEEN_CHECKPOINTS
        try:
            self._write(finished)
        except (AnsatzError, OSError) as error:
            note = f"the checkpoint of step {self.number} was not written: {error}"
            if self.plan.stop_on_checkpoint_error:
                raise
            self.history.notes.append(note)
            if finished is not None or not self._warned:
                warnings.warn(note, stacklevel=2)
            self._warned = True

    def _write(self, finished: str | None) -> None:
        self._complete(finished)
        self._saved_number = self.number
        if self.folder is None and not self._is_sharded:
            return  # the first of several processes writes
        weights = {f"network.{n}": t for n, t in self.step.network.state_dict().items()}
        moved = snapshot(self.step)
        weights |= {n: t for n, t in moved.items() if n.startswith("objective.")}
        state = self.state()
        if self._is_sharded:  # all processes have a part in this
            weights, state = gather_shards(weights), gather_shards(state)
        if self.folder is not None:
            self.folder.save(
                self.number,
                weights,
                state,
                threads=torch.get_num_threads(),
                device=str(self.device),
                finished=finished,
                processes=1 if self.processes is None else self.processes.size,
            )

    def state(self) -> dict[str, Any]:
        """All that the rest of the run depends on, but for the weights."""
        return {
            "number": self.number,
            "epoch": self.epoch,
            "position": self.position,
            "evaluated": self.evaluated,
            "total": self.total,
            "count": self.count,
            "step": self.step.state_dict(),
            "random": random_state(self.device, self.step.network, self.step.objective),
            "stopping": self.stopping.state_dict(),
            "best": self.best,
            "average": self.average.state_dict() if self.average else None,
            "train": _state_of(self.train),
            "callbacks": self.callbacks.state_dict(),
            "history": self.history.state_dict(),
        }

    def load(self, saved: Saved) -> None:
        """Goes back to a checkpoint."""
        with decoding(saved.path, "checkpoint of this run", to=ModelError):
            state = saved.state
            LoopState.of(state, weights=moving(self.step), source=self.train)
            _load_weights(self.step, saved.weights, str(saved.path))
            if not self._is_sharded and spoiled(self.step, self._start):
                raise ModelError("a weight in it is not finite")
            self.step.load_state_dict(state["step"])
            self._load_rest(state)
        self.resumed = saved.path
        self._set_events()

    def _load_rest(self, state: dict[str, Any]) -> None:
        for name in ("number", "epoch", "position", "evaluated", "total", "count"):
            setattr(self, name, state[name])
        if self.position >= len(self.train):
            self.epoch, self.position = self.epoch + 1, 0
        set_random_state(state["random"], self.device, self.step.network, self.step.objective)
        self.stopping.load_state_dict(state["stopping"])
        live = moving(self.step)
        self.best = None if state["best"] is None else shard_named(state["best"], live)
        if self.average is not None:
            average = state["average"]
            values = shard_named(average["values"], live)
            self.average.load_state_dict({**average, "values": values})
        if state["train"] is not None:
            self.train.load_state_dict(state["train"])  # type: ignore[attr-defined]
        self.callbacks.load_state_dict(state["callbacks"])
        self.history = self.view.history = History.from_state(state["history"])
        self._seconds_before, self._clock = self.history.seconds, time.monotonic()
        self._saved_number = self.view.number = self.number


def _state_of(source: Source) -> Any:
    state: Callable[[], Any] | None = getattr(source, "state_dict", None)
    return state() if state else None


def _load_weights(step: Step, weights: dict[str, torch.Tensor], where: str) -> None:
    network = {n.removeprefix("network."): t for n, t in weights.items() if n[:8] == "network."}
    load_into(step.network, shard_named(network, step.network.state_dict()), where=where)
    rest = {n: t for n, t in weights.items() if n.startswith("objective.")}
    expected = {n: t for n, t in snapshot(step).items() if n.startswith("objective.")}
    misfits = [n for n in rest.keys() | expected.keys() if _shape(rest, n) != _shape(expected, n)]
    if misfits:
        raise ModelError(f"{where} does not fit this objective: {min(misfits)} differs.")
    restore(step, rest)


def _shape(tensors: dict[str, torch.Tensor], name: str) -> torch.Size | None:
    return tensors[name].shape if name in tensors else None
