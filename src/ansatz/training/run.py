"""The state of a run: history, callbacks, averages and copies of weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.facts import Facts, as_html, as_text
from ansatz.networks.transfer import rests
from ansatz.registry import load
from ansatz.training.machine import is_sharded
from ansatz.training.objectives import Step

Record = dict[str, float | int | bool | None]


@dataclass(repr=False)
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

    def __repr__(self) -> str:
        return as_text(*self._facts())

    def _repr_html_(self) -> str:
        return as_html(*self._facts())

    def _facts(self) -> tuple[str, Facts]:
        kept = "" if self.best_step is None else f"step {self.best_step:,}"
        if kept and self.best_loss is not None:
            kept += f", validation loss {self.best_loss:.5g}"
        length = f"{self.steps:,} steps, {self.epochs:,} epochs, {self.seconds:.3g} seconds"
        return f"History: {length}", [
            ("stopped by", self.stop_reason),
            ("weights kept", kept),
            ("evaluations", len(self.records)),
            ("notes", " ".join(self.notes)),
        ]

    def plot(self) -> Any:
        """Draws the losses during training: a matplotlib figure (``.savefig("curves.png")``)."""
        return load("ansatz.report.plots:plot_history")(self)

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


Average = Literal["ema", "swa"]

_EVERY, _SOON = 4, 400  # an average over 40 steps and more looks at every fourth


class Averaging:
    r"""An average of the weights and running statistics over the steps.

    ``"ema"``, exponential: after update t,

    .. math:: a \leftarrow d_t a + (1 - d_t) \theta, \qquad
        d_t = \min\left(0.999, \frac{1 + t}{10 + t}\right)

    where the warm-up keeps the arbitrary start out of short runs. After 400 steps, when the average
    is over more than 40, only every fourth counts, with the product of four :math:`d_t`: nearly the
    same average at a quarter of the cost. ``"swa"``, stochastic weight averaging: the plain mean
    over the steps of the last quarter of the budget. Before the first update the average is the
    weights themselves. Running statistics are averaged with the weights.

    References:
        Izmailov et al. (2018), Averaging weights leads to wider optima and better generalization.
        https://arxiv.org/abs/1803.05407
    """

    def __init__(self, kind: Average, step: Step, total: int) -> None:
        if kind not in ("ema", "swa"):
            raise UsageError(f"average must be 'ema', 'swa' or None, got {kind!r}.")
        self.kind, self.count, self._decay = kind, 0, 1.0
        self._start = total - total // 4  # swa: the last quarter of the steps
        self._live = {
            name: tensor.detach()
            for name, tensor in moving(step).items()
            # What is infinite on purpose (a mask) has no average.
            if tensor.is_floating_point() and bool(tensor.isfinite().all())
        }
        self.values: dict[str, Tensor] = {}
        self._pairs: tuple[list[Tensor], list[Tensor]] = ([], [])  # averages, what they follow
        for names, whole in _runs(self._live):
            mean = whole.clone()
            sizes = [self._live[name].numel() for name in names]
            views = mean.split(sizes) if len(names) > 1 else [mean]
            self.values |= {n: v.view_as(self._live[n]) for n, v in zip(names, views, strict=True)}
            self._pairs[0].append(mean)
            self._pairs[1].append(whole)

    def update(self, number: int) -> None:
        """Adds the weights after step ``number`` (from 1) to the average."""
        if self.kind == "swa":
            if number > self._start:
                self.count += 1
                torch._foreach_lerp_(*self._pairs, 1 / self.count)
            return
        self._decay *= min(0.999, (1 + self.count) / (10 + self.count))
        self.count += 1
        if self.count <= _SOON or self.count % _EVERY == 0:
            torch._foreach_lerp_(*self._pairs, 1 - self._decay)
            self._decay = 1.0

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Gives the network the averaged weights inside, its own again after."""
        weights = self._pairs[1]
        kept = [weight.clone() for weight in weights]
        self.apply()
        try:
            yield
        finally:
            _copy(kept, weights)

    def apply(self) -> None:
        """Gives the network the averaged weights, once there is an average."""
        if self.count:
            _copy(*self._pairs)

    def state_dict(self) -> dict[str, Any]:
        """The averages, how many updates are in them, and what the next one has to make up for."""
        values = {name: value.clone() for name, value in self.values.items()}
        return {"count": self.count, "decay": self._decay, "values": values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        self.count, self._decay = int(state["count"]), float(state["decay"])
        for name, value in self.values.items():
            value.copy_(state["values"][name])


def _copy(values: list[Tensor], places: list[Tensor]) -> None:
    for value, place in zip(values, places, strict=True):
        place.copy_(value)


def _runs(live: dict[str, Tensor]) -> list[tuple[list[str], Tensor]]:
    """Tensors that lie end to end in memory, as a flat optimizer's do, as one: names and whole."""
    runs: list[list[str]] = []
    for name in sorted(live, key=lambda name: _place(live[name])):
        last = live[runs[-1][-1]] if runs else None
        if last is not None and _follows(live[name], last):
            runs[-1].append(name)
        else:
            runs.append([name])
    return [(names, _whole([live[name] for name in names])) for names in runs]


def _place(tensor: Tensor) -> int:
    return 0 if is_sharded(tensor) else tensor.data_ptr()


def _follows(tensor: Tensor, last: Tensor) -> bool:
    if is_sharded(tensor) or is_sharded(last) or not tensor.numel():
        return False
    alike = tensor.dtype == last.dtype and tensor.is_contiguous() and last.is_contiguous()
    same = tensor.untyped_storage().data_ptr() == last.untyped_storage().data_ptr()
    return alike and same and tensor.data_ptr() == last.data_ptr() + last.nbytes


def _whole(tensors: list[Tensor]) -> Tensor:
    if len(tensors) == 1:
        return tensors[0]
    first, count = tensors[0], sum(tensor.numel() for tensor in tensors)
    return first.as_strided((count,), (1,), first.storage_offset())


Snapshot = dict[str, Tensor]


def snapshot(step: Step) -> Snapshot:
    """Copies all that training can change in the network and the objective.

    Frozen parameters are left out, unless they only rest for a time (``Unfreezing``): nothing
    moves them, and a teacher may be large.
    """
    return {name: tensor.detach().clone() for name, tensor in moving(step).items()}


def restore(step: Step, kept: Snapshot) -> None:
    """Puts a snapshot back, in place: optimizers keep pointing at the same parameters."""
    live = moving(step)
    with torch.no_grad():
        for name, value in kept.items():
            live[name].copy_(value)


def spoiled(step: Step, kept: Snapshot) -> bool:
    """Tests whether something that was finite in ``kept`` is not finite any more."""
    # Compared with before, since a buffer may be infinite on purpose, as an attention mask is.
    live = moving(step)
    if any(is_sharded(t) for t in live.values()):
        return True  # what this process sees is not what all see, and all must do the same
    return any(bool((kept[n].isfinite() & ~t.isfinite()).any()) for n, t in live.items())


def moving(step: Step) -> dict[str, Tensor]:
    """The tensors themselves that training can change, by name."""
    return {
        f"{part}.{name}": tensor
        for part in ("network", "objective")
        for name, tensor in _state(getattr(step, part)).items()
    }


def _state(module: nn.Module) -> dict[str, Tensor]:
    named = module.named_parameters(remove_duplicate=False)
    frozen = {name for name, p in named if not p.requires_grad and not rests(p)}
    state = module.state_dict(keep_vars=True).items()
    return {name: t for name, t in state if name not in frozen and isinstance(t, Tensor)}
