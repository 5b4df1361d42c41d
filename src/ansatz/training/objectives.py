"""Objectives: what is minimised and evaluated, and the contract of a step."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from ansatz.data.batch import Batch, MixedTarget, map_tensors
from ansatz.data.source import Source
from ansatz.errors import NumericalError
from ansatz.layers.mode import evaluation_mode
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.training.machine import has_shards
from ansatz.training.processes.group import Processes

AUXILIARY = 0.3  # of a head for training alone: Szegedy et al. (2015), section 5


class Loss(NamedTuple):
    """The weighted sum over outcomes and their weight; the mean is total / count.

    Sums add up over micro-batches, processes and a short last batch, where means would not.

    Example:
        >>> import torch
        >>> from ansatz.training import Loss
        >>> loss = Loss(torch.tensor(6.0), torch.tensor(3.0))
        >>> (loss.total / loss.count).item()
        2.0
    """

    total: Tensor
    count: Tensor  # type: ignore[assignment]  # hides tuple.count, which no loss needs


class Supervised(nn.Module):
    r"""The negative log-likelihood of the outcomes given the inputs.

    .. math:: \sum_i w_i \ell(r_i, y_i), \qquad r = \text{shift} + \text{scale} f(x) + \text{offset}

    Args:
        likelihood: gives the loss of one outcome.
        shift: ``(P,)``, or ``(K, P)`` for K targets; zeros when not given.
        scale: like shift; ones when not given.
        axis: of the network's output that holds P: the last one, or 1 for networks on grids that
            answer at every cell.

    A network may come with heads for training alone (GoogLeNet): its outputs are then a NamedTuple,
    the answer first; the loss of each further head counts 0.3, and only in training.

    Shapes:
        - network(*inputs): ``(B, P)``, or ``(B, K * P)`` for K targets; ``(B, P, H, W)`` with
          axis 1.
        - raw: ``(B, P)``, ``(B, K, P)`` or ``(B, H, W, P)``.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.training import Supervised
        >>> objective = Supervised(Normal(dispersion=1.0))
        >>> loss = objective(torch.nn.Identity(), Batch.of(torch.zeros(3, 1), torch.zeros(3)))
        >>> round((loss.total / loss.count).item(), 4)
        0.9189
    """

    shift: Tensor | None
    scale: Tensor | None

    def __init__(
        self,
        likelihood: Likelihood,
        shift: Tensor | None = None,
        scale: Tensor | None = None,
        *,
        axis: int = -1,
    ) -> None:
        super().__init__()
        self.likelihood, self.axis = likelihood, axis
        self.register_buffer("shift", shift)
        self.register_buffer("scale", scale)

    def attach(self, output: Tensor, offset: Tensor | None = None) -> Tensor:
        """Computes raw = shift + scale * output + offset, added to the linear predictor."""
        raw = output
        if self.shift is not None and self.scale is not None:
            if self.shift.ndim == 2:
                raw = raw.reshape(*raw.shape[:-1], *self.shift.shape)  # (B, K, P)
            raw = torch.addcmul(self.shift.to(raw.dtype), self.scale.to(raw.dtype), raw)
        if offset is not None:  # (B,): added to the first raw number of each outcome
            extra = offset.reshape(offset.shape + (1,) * (raw.ndim - 1 - offset.ndim))
            raw = torch.cat([raw[..., :1] + extra.unsqueeze(-1), raw[..., 1:]], -1)
        return raw

    def raw(
        self, network: nn.Module, inputs: tuple[Any, ...], offset: Tensor | None = None
    ) -> Tensor:
        """Computes the parameters of the likelihood at ``inputs``."""
        return self.heads(network, inputs, offset)[0]

    def heads(
        self, network: nn.Module, inputs: tuple[Any, ...], offset: Tensor | None = None
    ) -> list[Tensor]:
        """Computes them for every head of the network, the answer first."""
        outputs = network(*inputs)
        return [
            self.attach(output if self.axis == -1 else output.movedim(self.axis, -1), offset)
            for output in (outputs if isinstance(outputs, tuple) else (outputs,))
        ]

    def terms(self, network: nn.Module, batch: Batch) -> Tensor:
        """Computes the plain loss per outcome, unweighted."""
        raw = self.raw(network, batch.inputs, batch.offset)
        if self._in_parts(batch):
            return self.likelihood.partial_loss(raw, batch.target, batch.weight)[0]
        return self.likelihood.loss(raw, batch.target)

    def forward(self, network: nn.Module, batch: Batch) -> Loss:
        """Computes what the optimiser minimises."""
        raw, *others = self.heads(network, batch.inputs, batch.offset)
        if isinstance(batch.target, MixedTarget):
            return self._mixed([raw, *others], batch.target, batch.weight)
        complete = _all_observed(batch.weight)
        target = batch.target if complete else observed(batch.target, batch.weight)
        if not self.likelihood.additive:
            return self._joint(raw, target, batch.weight)
        if self._in_parts(batch):
            return self._partial([raw, *others], target, batch.weight)
        terms = self.likelihood.training_loss(raw, target)
        for other in others:
            terms = terms + AUXILIARY * self.likelihood.training_loss(other, target)
        return with_penalty(weighted(terms, batch.weight, complete=complete), network)

    def _mixed(self, raws: list[Tensor], target: MixedTarget, weight: Tensor) -> Loss:
        """The loss of both outcomes of mixed rows, by their shares."""
        terms = torch.zeros_like(weight)
        for place, raw in enumerate(raws):
            first, second = (
                self.likelihood.training_loss(raw, y) for y in (target.first, target.second)
            )
            both = target.share * first + (1 - target.share) * second
            terms = terms + (AUXILIARY if place else 1.0) * both
        return weighted(terms, weight)

    def evaluate(self, network: nn.Module, batch: Batch) -> Loss:
        """Computes the plain loss, which validation scores."""
        if not self.likelihood.additive:
            raw = self.raw(network, batch.inputs, batch.offset)
            return self._joint(raw, batch.target, batch.weight)
        if self._in_parts(batch):
            raw = self.raw(network, batch.inputs, batch.offset)
            return self._partial([raw], batch.target, batch.weight)
        return weighted(self.terms(network, batch), batch.weight)

    def _in_parts(self, batch: Batch) -> bool:
        """Tests whether weights reach inside outcomes: pixels of masks, one outcome each."""
        axes, y = self.likelihood.event_ndim, batch.target
        return bool(axes) and isinstance(y, Tensor) and batch.weight.ndim > y.ndim - axes

    def _partial(self, heads: list[Tensor], target: Any, weight: Tensor) -> Loss:
        """The loss of outcomes that are observed in part."""
        terms, whole = self.likelihood.partial_loss(heads[0], target, weight)
        for other in heads[1:]:
            terms = terms + AUXILIARY * self.likelihood.partial_loss(other, target, weight)[0]
        return weighted(terms, whole)

    def _joint(self, raw: Tensor, target: Any, weight: Tensor) -> Loss:
        """The loss of a likelihood that couples rows."""
        return Loss(self.likelihood.joint_loss(raw, target, weight).sum(), weight.sum())


def is_additive(objective: nn.Module) -> bool:
    """Tests whether the loss of a batch is the sum of its rows' losses, however it is split."""
    return bool(getattr(getattr(objective, "likelihood", None), "additive", True))


def least_loss(objective: nn.Module) -> float:
    """The least loss that a prediction can have; minus infinity where there is none."""
    return float(getattr(getattr(objective, "likelihood", None), "least_loss", -math.inf))


def observed(target: Any, weight: Tensor) -> Any:
    """The target with a harmless number in place of outcomes of weight 0, which may be nan.

    The mask of :func:`weighted` hides a nan from the loss, but not from its gradient: 0 * nan is
    nan. One half has a finite loss under every likelihood of numbers, and every class likelihood
    has code 0.
    """

    def fill(y: Tensor) -> Tensor:
        seen = (weight > 0).reshape(weight.shape + (1,) * (y.ndim - weight.ndim))
        return torch.where(seen, y, 0.5 if y.is_floating_point() else 0)

    return map_tensors(fill, target)


def with_penalty(loss: Loss, network: nn.Module) -> Loss:
    """Adds what a network asks for in training, ``penalty()``, to the mean loss."""
    ask: Any = getattr(network, "penalty", None)
    cost = ask() if callable(ask) and network.training else None
    return loss if cost is None else loss._replace(total=loss.total + loss.count * cost)


def weighted(terms: Tensor, weight: Tensor, *, complete: bool | None = None) -> Loss:
    """Sum of weight * terms and sum of weights, over every outcome."""
    if weight.shape != terms.shape:
        weight = weight.reshape(weight.shape + (1,) * (terms.ndim - weight.ndim)).expand_as(terms)
    product = terms * weight
    if not (_all_observed(weight) if complete is None else complete):
        # where, not multiplication: an unobserved outcome may be nan, and nan * 0 is nan.
        product = torch.where(weight > 0, product, 0)
    return Loss(product.sum(), weight.sum())


def _all_observed(weight: Tensor) -> bool:
    return not weight.is_meta and bool(weight.all())  # a meta tensor has no values to look at


class Step(Protocol):
    """The contract of a step: an update of weights by one batch, with all its memory saved.

    ``network`` holds the weights that a checkpoint saves and that early stopping restores.

    A step that can train with other processes has an attribute ``processes``, None at first. The
    trainer sets it to a :class:`~ansatz.training.processes.group.Processes`; batches are then this
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
        """Computes the plain loss of the batch in evaluation mode, without a gradient."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything but the weights: tensors, numbers and nested dicts of them."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        ...


def evaluate_batch(network: nn.Module, objective: nn.Module, batch: Batch) -> Loss:
    """Computes the plain loss of one batch, by ``objective.evaluate`` where there is one."""
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
    """Computes the mean loss over all of ``source``; None when ``stop`` asks to leave early."""
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
