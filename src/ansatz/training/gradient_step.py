"""The default step: one gradient, one update."""

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.data.batch import Batch, take_rows
from ansatz.errors import NumericalError, ResourceError, UsageError
from ansatz.training.diagnosis import all_finite, numerical_error
from ansatz.training.loop_state import load_optimizer
from ansatz.training.machine import has_shards
from ansatz.training.objectives import Loss, evaluate_batch, is_additive
from ansatz.training.processes.gradients import (
    GatheredNetwork,
    clip_gradients,
    local_parts,
    reduce_gradients,
    running_statistics,
    shard_optimizer,
)
from ansatz.training.processes.group import Processes
from ansatz.training.recomputation import recomputing, segments
from ansatz.training.torch_losses import as_objective

_log = logging.getLogger(__name__)

Logs = dict[str, float]


class GradientStep:
    r"""Moves the weights against the gradient of the batch's mean loss.

    .. math:: \theta \leftarrow \text{optimizer}\left(\theta,\;
        \nabla_\theta \left[ \frac{\sum_m T_m}{\sum_m C_m} + \text{penalty}(\theta) \right]\right)

    with (T, C) = objective(network, micro-batch m). Sums over sums: splitting a batch changes the
    memory it takes, and the result only by rounding.

    A loss or gradient that is not finite stops the run before the update, so the weights stay the
    last good ones; the error names the first bad tensor and the rows. When memory runs out, the
    number of micro-batches doubles and the same batch is tried again.

    With ``processes``, which the trainer sets, a batch is this process's part of a larger one, and
    the sums run over all processes. A network that was given to ``fully_shard`` (FSDP2) keeps its
    shards; the optimizer must have been made after that.

    Args:
        network: gives raw from the inputs of a batch.
        objective: ``objective(network, batch) -> Loss(total, count)``; or a likelihood, a torch
            loss (``nn.MSELoss()``), or a function of network and batch that gives the mean loss.
        optimizer: over the parameters of the network, and of the objective if it learns any.
        schedule: step number -> multiplier of each group's own rate.
        clip: bound on the global norm of the gradient.
        accumulate: micro-batches per batch.
        penalty: ``penalty(network) -> scalar``, added once per update, not once per micro-batch.
        recompute: gradient checkpointing: the blocks of the network forget their activations and
            compute them again in the backward pass. The same gradients in less memory, at the
            price of a second forward pass.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.training import GradientStep, Supervised
        >>> network = torch.nn.Linear(2, 1)
        >>> optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        >>> step = GradientStep(network, Supervised(Normal(dispersion=1.0)), optimizer)
        >>> batch = Batch.of(torch.randn(8, 2), torch.zeros(8))
        >>> before = step.step(batch)["loss"]
        >>> step.step(batch)["loss"] <= before
        True
    """

    def __init__(
        self,
        network: nn.Module,
        objective: nn.Module | Callable[..., Any],
        optimizer: torch.optim.Optimizer,
        *,
        schedule: Callable[[int], float] | None = None,
        clip: float | None = None,
        accumulate: int = 1,
        penalty: Callable[[nn.Module], Tensor] | None = None,
        recompute: bool = False,
    ) -> None:
        objective = as_objective(objective)
        if recompute and not segments(network):
            raise UsageError(
                f"{type(network).__name__} has no blocks of layers: recompute would save nothing."
            )
        if accumulate < 1:
            raise UsageError(f"accumulate must be at least 1, got {accumulate}.")
        if clip is not None and not clip > 0:
            raise UsageError(f"clip must be a positive norm, got {clip}.")
        if accumulate > 1 and not is_additive(objective):
            raise UsageError("this likelihood couples the rows of a batch; use accumulate=1.")
        if getattr(optimizer, "needs_graph", False):
            raise UsageError(f"{type(optimizer).__name__} needs the graph of the loss: NewtonStep.")
        self.network, self.objective, self.optimizer = network, objective, optimizer
        self.schedule, self.clip, self.penalty = schedule, clip, penalty
        self.accumulate, self.evaluation_parts, self.recompute = accumulate, 1, recompute
        self.processes: Processes | None = None  # who else trains these weights
        self.number = 0  # updates so far
        self.notes: list[str] = []  # what happened on the way that a user should know
        self._base_rates = [float(group["lr"]) for group in optimizer.param_groups]
        self._needs_closure = getattr(
            optimizer, "needs_closure", isinstance(optimizer, torch.optim.LBFGS)
        )

    @property
    def rate(self) -> float:
        """The learning rate of the first group, as last used."""
        return float(self.optimizer.param_groups[0]["lr"])

    def step(self, batch: Batch) -> Logs:
        """Updates once; ``loss`` is the batch's mean without the penalty, ``count`` its weight."""
        if not self.network.training:
            self.network.train()
        if not self.objective.training:
            self.objective.train()
        with recomputing(self.network) if self.recompute else nullcontext():
            logs = self._closure_step(batch) if self._needs_closure else self._gradient(batch)
        if not self._needs_closure and logs["count"] > 0:  # no observed outcome changes nothing
            self._update()
        self.number += 1
        return logs

    def evaluate(self, batch: Batch) -> Loss:
        """Computes the plain loss in evaluation mode."""
        while True:
            try:
                parts = micro_batches(batch, self.evaluation_parts)
                losses = [evaluate_batch(self._whole_network(), self.objective, p) for p in parts]
                break
            except (RuntimeError, MemoryError) as error:
                self._require_split(error, batch, self.evaluation_parts)
            self.evaluation_parts = self._double("evaluation", self.evaluation_parts, batch)
        if len(losses) == 1:
            return self._own(losses[0])
        return Loss(*(torch.stack(part).sum() for part in zip(*losses, strict=True)))

    def observe(self, value: float) -> None:
        """Hands an evaluation to a schedule that listens (plateau)."""
        listen = getattr(self.schedule, "observe", None)
        if listen:
            listen(value)

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's state, the step number, base rates, schedule and micro-batches."""
        saved = getattr(self.schedule, "state_dict", None)
        return {
            "optimizer": self.optimizer.state_dict(),
            "number": self.number,
            "base_rates": list(self._base_rates),
            "schedule": saved() if saved else {},
            "accumulate": self.accumulate,
            "evaluation_pieces": self.evaluation_parts,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave, exactly."""
        load_optimizer(self.optimizer, state["optimizer"])
        align_state(self.optimizer)
        shard_optimizer(self.optimizer)
        self.number = int(state["number"])
        self._base_rates = [float(rate) for rate in state["base_rates"]]
        self.accumulate = int(state["accumulate"])
        self.evaluation_parts = int(state["evaluation_pieces"])
        if state["schedule"] and self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])  # type: ignore[attr-defined]

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def _set_rates(self) -> None:
        if self.schedule is None:  # the rates may then be the user's own to change
            return
        multiplier = float(self.schedule(self.number))
        for group, base in zip(self.optimizer.param_groups, self._base_rates, strict=True):
            group["lr"] = base * multiplier

    def _current_rate(self) -> float:
        if self.schedule is None:
            return self.rate
        return self._base_rates[0] * float(self.schedule(self.number))

    def _update(self) -> None:
        self._set_rates()
        try:
            self.optimizer.step()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise ResourceError(
                "the optimizer's state does not fit in memory; use a smaller network or plain SGD."
            ) from error

    def _closure_step(self, batch: Batch) -> Logs:
        """For rules that ask for several gradients per update, such as L-BFGS."""
        parameters = self._parameters()
        kept = [p.detach().clone() for p in parameters]
        seen: list[Logs] = []
        self._set_rates()

        def closure() -> Tensor:
            logs = self._gradient(batch)
            seen.append(logs)
            return parameters[0].new_tensor(logs["loss"] + logs.get("penalty", 0.0))

        try:
            self.optimizer.step(closure)  # type: ignore[arg-type]  # a tensor, as torch expects
        except NumericalError:
            with torch.no_grad():
                for parameter, value in zip(parameters, kept, strict=True):
                    parameter.copy_(value)
            raise
        return seen[0]

    def _gradient(self, batch: Batch) -> Logs:
        """Fills ``.grad`` with the gradient of the batch, checked and clipped."""
        if self.processes is None:
            logs = self._as_it_fits(batch, self._backward)
        else:
            logs = self._common_backward(batch, self.processes)
        if logs["count"] == 0:
            self.optimizer.zero_grad()
            return logs
        if self.clip is not None:
            norm = clip_gradients(self._parameters(), self.clip)
            finite, logs["gradient_norm"] = math.isfinite(norm), norm
        else:
            finite = self._is_finite()
        if not (finite and math.isfinite(logs["loss"])):
            self._refuse(logs, batch)
        return logs

    def _as_it_fits(self, batch: Batch, backward: Callable[[Batch], Logs]) -> Logs:
        """Computes in as many parts as the memory needs."""
        while True:
            try:
                return backward(batch)
            except (RuntimeError, MemoryError) as error:
                self._require_split(error, batch, self.accumulate)
            # Here, not in the handler: the error's frames hold the tensors that filled the memory.
            self.accumulate = self._double("training", self.accumulate, batch)

    def _is_finite(self) -> bool:
        gradients = [p.grad for p in self._parameters() if p.grad is not None]
        return all_finite(local_parts(gradients))

    def _backward(self, batch: Batch) -> Logs:
        self.optimizer.zero_grad()
        parts = micro_batches(batch, self.accumulate)
        if len(parts) == 1:
            total, count = self.objective(self.network, batch)
            mean = total / count
            loss = mean if self.penalty is None else mean + (cost := self.penalty(self.network))
            loss.backward()
            logs = {"loss": mean.item(), "count": count.item()}
        else:
            logs = self._accumulated(parts)
            if self.penalty is not None:
                cost = self.penalty(self.network)
                if cost.requires_grad:  # a network may have nothing to penalise
                    cost.backward()
        if self.penalty is not None:
            logs["penalty"] = cost.item()
        return logs

    def _accumulated(self, parts: Sequence[Batch]) -> Logs:
        """The gradient of the sum, divided by the sum of the weights, which comes out last."""
        logs = self._sums(parts)
        total, count = logs["total"], logs["count"]
        gradients = [p.grad for p in self._parameters() if p.grad is not None]
        torch._foreach_div_(gradients, count)
        return {"loss": total / count if count else math.nan, "count": count}

    def _sums(self, parts: Sequence[Batch]) -> Logs:
        """The gradient of the sum of the totals."""
        network = self._whole_network()
        total: Tensor | float = 0.0
        count: Tensor | float = 0.0
        for part in parts:
            loss = self._own(self.objective(network, part))
            loss.total.backward()
            total, count = total + loss.total.detach(), count + loss.count.detach()
        return {"total": float(total), "count": float(count)}

    # --- several processes -----------------------------------------------------------------------

    def _common_backward(self, batch: Batch, processes: Processes) -> Logs:
        """The gradient of all processes' rows."""
        logs, error = {"total": 0.0, "count": 0.0}, None
        sharded = has_shards(self.network)
        self.optimizer.zero_grad()
        try:
            if len(batch.index) or sharded:  # shards are only there while all processes compute
                logs = self._own_sums(batch, sharded)
        except Exception as failure:
            if sharded or not is_additive(self.objective):
                raise  # the others are in the middle of a forward pass, and wait for this one
            error = failure
        total, count = reduce_gradients(
            processes,
            self._parameters(),
            running_statistics(self.network),
            total=logs["total"],
            count=logs["count"],
            error=error,
        )
        logs = {"loss": total / count if count else math.nan, "count": count}
        if self.penalty is not None and count:
            cost = self.penalty(self.network)
            if cost.requires_grad:
                cost.backward()
            logs["penalty"] = cost.item()
        return logs

    def _own_sums(self, batch: Batch, sharded: bool) -> Logs:
        """This process's part, found to be finite before it spoils everybody's."""

        def backward(batch: Batch) -> Logs:
            self.optimizer.zero_grad()
            return self._sums(micro_batches(batch, self.accumulate))

        # Memory that runs out in one process cannot change how often all compute with shards.
        logs = backward(batch) if sharded else self._as_it_fits(batch, backward)
        if logs["count"] > 0 and not (math.isfinite(logs["total"]) and self._is_finite()):
            self._refuse({**logs, "loss": logs["total"]}, batch)
        if self._is_coupled() and self.processes is not None and not self.processes.is_first:
            for parameter in self.objective.parameters():  # every process computed all of it
                parameter.grad = None
        return logs

    def _is_coupled(self) -> bool:
        return self.processes is not None and not is_additive(self.objective)

    def _whole_network(self) -> nn.Module:
        """The network, or all processes' outputs where the likelihood must see all rows."""
        if self.processes is not None and self._is_coupled():
            return GatheredNetwork(self.network, self.processes)
        return self.network

    def _own(self, loss: Loss) -> Loss:
        """Gives this process's share of the sum: a joint loss is known to all, and counts once."""
        if self.processes is None or self.processes.is_first or not self._is_coupled():
            return loss
        # Its gradient in this process's rows does count.
        return Loss(loss.total - loss.total.detach(), torch.zeros_like(loss.count))

    def _refuse(self, logs: Logs, batch: Batch) -> None:
        what = f"the loss is {logs['loss']:g}" if not math.isfinite(logs["loss"]) else "no update"
        number, rate = self.number + 1, self._current_rate()
        error = numerical_error(self.network, self.objective, batch, what, number=number, rate=rate)
        self.optimizer.zero_grad()
        raise error

    def _require_split(self, error: BaseException, batch: Batch, parts: int) -> None:
        """Lets an error pass unless it is a lack of memory that smaller parts may cure."""
        if not is_out_of_memory(error):
            raise error
        self.optimizer.zero_grad()
        if parts >= len(batch.index):
            raise ResourceError(
                "out of memory with one row at a time; use a smaller network or another device."
            ) from error
        if not is_additive(self.objective):
            raise ResourceError(
                "out of memory, and this likelihood cannot split a batch; use a smaller batch_size."
            ) from error

    def _double(self, doing: str, parts: int, batch: Batch) -> int:
        parts = min(2 * parts, len(batch.index))
        note = (
            f"out of memory in {doing} at step {self.number + 1}: "
            f"batches are now taken in {parts} parts, the effective batch size is unchanged."
        )
        self.notes.append(note)
        _log.warning(note)
        return parts


_WORDS = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")


def is_out_of_memory(error: BaseException) -> bool:
    """True for the errors that mean "too little memory", of any device and of the host."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(w in str(error).lower() for w in _WORDS)


def micro_batches(batch: Batch, parts: int) -> list[Batch]:
    """The rows of ``batch`` in at most ``parts`` runs of nearly equal length."""
    rows = len(batch.index)
    parts = min(parts, rows)
    if parts <= 1:
        return [batch]
    bounds = [rows * i // parts for i in range(parts + 1)]
    return [take_rows(batch, slice(*ends)) for ends in pairwise(bounds)]


def align_state(optimizer: torch.optim.Optimizer) -> None:
    """Gives moments and averages that were read from a file the strides of their parameters.

    Files hold numbers row by row. A parameter may lie otherwise (channels last), and torch's fused
    rules walk through parameter, gradient and moments by their place in memory: with unlike
    strides each weight would be moved by the moments of another.
    """
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if (
                isinstance(value, Tensor)
                and value.shape == parameter.shape
                and value.stride() != parameter.stride()
            ):
                state[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
