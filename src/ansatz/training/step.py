"""What one batch does."""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import nn

from ansatz.data.batch import Batch
from ansatz.data.source import Source
from ansatz.errors import NumericalError
from ansatz.modes import evaluation_mode
from ansatz.training.distributed import Processes
from ansatz.training.objectives import Loss, is_additive
from ansatz.training.sharded import has_shards


class Step(Protocol):
    """One update of some weights by one batch; all that it remembers is in its ``state_dict``.

    ``network`` holds the weights that a checkpoint saves and that early stopping restores.

    A step that can train with other processes has an attribute ``processes``, None at first. The
    trainer sets it to a :class:`~ansatz.training.distributed.Processes`; batches are then this
    process's rows, and the step adds up gradient, total and count with ``add_up``. A step without
    the attribute is refused where there are several processes.

    Example:
        >>> from ansatz.training import GradientStep, Step
        >>> all(hasattr(GradientStep, name) for name in ("step", "evaluate", "state_dict"))
        True
    """

    network: nn.Module
    objective: nn.Module

    def step(self, batch: Batch) -> dict[str, float]:
        """Updates the weights; returns what is worth logging, ``"loss"`` among it."""
        ...

    def evaluate(self, batch: Batch) -> Loss:
        """The plain loss of the batch in evaluation mode, without a gradient."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything but the weights: tensors, numbers and nested dicts of them."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        ...


def evaluate_batch(network: nn.Module, objective: nn.Module, batch: Batch) -> Loss:
    """The plain loss of one batch: ``objective.evaluate`` where there is one."""
    with evaluation_mode(network, objective), torch.no_grad():
        score = getattr(objective, "evaluate", objective)
        return score(network, batch)


def mean_loss(
    step: Step,
    source: Source,
    *,
    move: Callable[[Batch], Batch] = lambda batch: batch,
    stop: Callable[[], bool] = lambda: False,
    processes: Processes | None = None,
) -> float | None:
    """Sum of totals / sum of counts over all of ``source``: a short last batch counts as it should.

    Args:
        step: whose weights and objective are evaluated.
        source: its epoch 0 is taken.
        move: brings a batch to the weights' device.
        stop: asked before each batch; when it says True, the answer is None.
        processes: each of them takes its own rows of every batch; all get the same number.
    """
    losses: list[Loss] = []
    with evaluation_mode(step.network, step.objective):
        for batch in source.batches(epoch=0):
            if stop():
                return None
            losses.append(_evaluate(step, batch, move, processes))
    if not losses:
        raise ValueError("the validation source has no rows.")
    total, count = (torch.stack(part).cpu().double() for part in zip(*losses, strict=True))
    if processes is not None:
        total, count = processes.sum(torch.stack([total, count]))
    mean = float(total.sum() / count.sum())
    if not torch.isfinite(total.sum() / count.sum()):
        raise NumericalError(_bad_batch(mean, total, count, source))
    return mean


def _evaluate(
    step: Step, batch: Batch, move: Callable[[Batch], Batch], processes: Processes | None
) -> Loss:
    if processes is not None and is_additive(step.objective):
        batch = processes.part(batch)
        if not len(batch.index) and not has_shards(step.network):
            return Loss(torch.zeros(()), torch.zeros(()))
    return step.evaluate(move(batch))


def _bad_batch(mean: float, total: torch.Tensor, count: torch.Tensor, source: Source) -> str:
    if float(count.sum()) == 0:
        return "the validation rows have total weight 0, so they have no mean loss."
    position = int((~total.isfinite()).nonzero()[0]) if not total.isfinite().all() else 0
    rows = next(iter(source.batches(epoch=0, start=position))).index[:5].tolist()
    return (
        f"the validation loss is {mean}: first in the batch of rows {rows}. "
        "Check those rows; if they are sound, lower the learning rate."
    )
