"""Objectives from torch's losses and from functions, as steps take them."""

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from ansatz.data.batch import Batch
from ansatz.errors import UsageError
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.training.objectives import Loss, Supervised, weighted


class TorchLoss(nn.Module):
    """The objective of a loss of predictions and targets: ``nn.MSELoss()``, ``F.huber_loss``.

    A loss with ``reduction="none"`` may have rows of any weight; of others all rows count alike.

    Args:
        loss: ``loss(network(*inputs), target)``, a mean or a sum over the batch, or one number
            per outcome.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.training import TorchLoss
        >>> batch = Batch.of(torch.ones(4, 1), torch.zeros(4, 1))
        >>> TorchLoss(torch.nn.MSELoss())(torch.nn.Identity(), batch).total
        tensor(4.)
    """

    def __init__(self, loss: Callable[..., Tensor]) -> None:
        super().__init__()
        self.loss = loss
        self.reduction = getattr(loss, "reduction", "mean")

    def forward(self, network: nn.Module, batch: Batch) -> Loss:
        """Computes the loss of a batch, as a sum and its weight."""
        prediction, y = network(*batch.inputs), batch.target
        _require_one_shape(prediction, y)
        value = self.loss(prediction, y)
        if value.ndim:
            return weighted(value, batch.weight)
        if not bool((batch.weight == 1).all()):
            raise UsageError(
                f"{_name(self.loss)} takes no weights of rows: make it with reduction='none', or "
                "take a likelihood."
            )
        count = batch.weight.sum()
        return Loss(value if self.reduction == "sum" else value * count, count)


class FunctionObjective(nn.Module):
    """The objective of a function ``f(network, batch)`` that gives the mean loss of the batch.

    Args:
        function: of the network and the :class:`~ansatz.data.Batch`; a scalar tensor, or
            ``Loss(total, count)``.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.training import FunctionObjective
        >>> def loss(network, batch):
        ...     return (network(*batch.inputs) - batch.target).abs().mean()
        >>> batch = Batch.of(torch.ones(4, 1), torch.zeros(4, 1))
        >>> FunctionObjective(loss)(torch.nn.Identity(), batch).total
        tensor(4.)
    """

    def __init__(self, function: Callable[[nn.Module, Batch], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, network: nn.Module, batch: Batch) -> Loss:
        """Computes the loss of a batch, as a sum and its weight."""
        value = self.function(network, batch)
        if isinstance(value, Loss):
            return value
        if not isinstance(value, Tensor) or value.ndim:
            shape = getattr(value, "shape", None)
            got = type(value).__name__ if shape is None else f"shape {tuple(shape)}"
            raise UsageError(
                f"{_name(self.function)}(network, batch) must give the mean loss of the batch, a "
                f"tensor without axes, got {got}."
            )
        count = batch.weight.sum()
        return Loss(value * count, count)


def as_objective(given: Any) -> nn.Module:
    """An objective as it is, or that of a likelihood, a torch loss or a function.

    A module is an objective if it is called with a network and a batch; torch's own losses, and
    functions whose arguments are called input and target as theirs are, get predictions.
    """
    if isinstance(given, Likelihood):
        return Supervised(given)
    if any(kind.__module__ == nn.MSELoss.__module__ for kind in type(given).__mro__):
        return TorchLoss(given)
    names = _arguments(given)
    if names[:2] in (["input", "target"], ["prediction", "target"]):
        return TorchLoss(given)
    if isinstance(given, nn.Module):
        return given
    if not callable(given) or len(names) < 2:
        raise UsageError(
            "an objective is a likelihood, a torch loss, or a function of a network and a batch, "
            f"got {_name(given)}({', '.join(names)})."
        )
    return FunctionObjective(given)


def _arguments(given: Any) -> list[str]:
    function = given.forward if isinstance(given, nn.Module) else given
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _name(given: Any) -> str:
    return getattr(given, "__name__", type(given).__name__)


def _require_one_shape(prediction: Any, y: Any) -> None:
    """Refuses (B, 1) against (B,), which torch would broadcast to (B, B)."""
    if not isinstance(prediction, Tensor) or not isinstance(y, Tensor):
        return
    if y.is_floating_point() and prediction.ndim != y.ndim and prediction.numel() == y.numel():
        raise UsageError(
            f"the network gives {tuple(prediction.shape)} and the targets are {tuple(y.shape)}, "
            "which a loss would broadcast: give both one shape, as y.unsqueeze(1)."
        )
