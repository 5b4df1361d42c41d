"""What one batch does."""

from typing import Any, Protocol

from torch import nn

from ansatz.data.batch import Batch
from ansatz.training.objectives import Loss


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
