"""The step of plain networks without autograd, which is fast on small tables."""

import math
from collections.abc import Callable
from typing import Any, NoReturn, cast

import numpy as np
import torch
from torch import nn

from ansatz import seeds
from ansatz.data.batch import Batch, take_rows
from ansatz.errors import UsageError
from ansatz.optim.flat_adamw import FlatAdamW
from ansatz.training.diagnosis import numerical_error
from ansatz.training.fast.likelihood import OutputGradient
from ansatz.training.fast.numpy_mlp import Array, Backpropagation, Derivative, derivative_of
from ansatz.training.objectives import Loss, Supervised, evaluate_batch
from ansatz.training.processes.gradients import GatheredNetwork
from ansatz.training.processes.group import Processes


class AnalyticStep:
    r"""One AdamW step of a plain MLP, without autograd in the network.

    :class:`Backpropagation` gives the gradient, :class:`OutputGradient` the loss and its derivative
    in the output, :class:`ansatz.optim.FlatAdamW` the update. All parameters become views into one
    flat vector ``[matrices | biases | likelihood's own]``. Weight decay is decoupled and acts on
    matrices only. The path equals that of autograd with ``torch.optim.AdamW`` up to rounding, at a
    fraction of the fixed cost per step, which on small tables is nearly all of the cost.

    Args:
        network: an ``MLP`` for which :meth:`supports` holds; its parameters become views.
        objective: a :class:`Supervised`; parameters of its likelihood are trained by the same rule.
        learning_rate: :math:`\eta` at multiplier 1.
        betas: :math:`\beta_1, \beta_2`.
        eps: :math:`\epsilon`.
        weight_decay: :math:`\lambda`.
        schedule: step number from 0 -> multiplier of the rate; None for a constant rate.
        clip: the gradient's global norm is scaled down to this; None for no clipping.
        generator: gives the seed of the dropout masks; ``state_dict`` holds seed and position.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.networks import MLP
        >>> from ansatz.training import AnalyticStep, Supervised
        >>> step = AnalyticStep(MLP(3, 2, widths=(8,)), Supervised(Normal()))
        >>> x = torch.randn(16, 3)
        >>> losses = [step.step(Batch.of(x, x.sum(1)))["loss"] for _ in range(50)]
        >>> losses[-1] < losses[0]
        True

    References:
        Loshchilov and Hutter (2019), Decoupled weight decay regularization, algorithm 2.
        https://arxiv.org/abs/1711.05101
    """

    network: nn.Module
    objective: nn.Module

    def __init__(
        self,
        network: nn.Module,
        objective: nn.Module,
        *,
        learning_rate: float = 3e-3,
        betas: tuple[float, float] = (0.9, 0.99),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        schedule: Callable[[int], float] | None = None,
        clip: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        if not self.supports(network, objective):
            raise UsageError(
                "AnalyticStep needs a plain MLP (Linear, activation, dropout) on the CPU and a "
                f"Supervised objective, got {type(network).__name__} and "
                f"{type(objective).__name__}. Use GradientStep for this pair."
            )
        if clip is not None and not clip > 0:
            raise UsageError(f"clip must be a positive norm, got {clip}.")
        self.network, self.objective = network, objective
        self.learning_rate, self.schedule, self.clip = learning_rate, schedule, clip
        self.rate = learning_rate  # as last used
        self.number = 0  # batches so far
        self.processes: Processes | None = None  # who else trains these weights; see GradientStep
        self._output_gradient = OutputGradient(cast(Supervised, objective))
        linears = _linears(network)
        self.optimizer = FlatAdamW(
            [linear.weight for linear in linears],
            [*(linear.bias for linear in linears), *self._output_gradient.own],
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
        )
        generator = generator or seeds.generator(0, "dropout")
        self._seed = int(torch.randint(2**62, (), generator=generator))
        self._passes = self._bind()

    @staticmethod
    def supports(network: nn.Module, objective: nn.Module) -> bool:
        """Tests whether this pair can be trained: Linear, activation, dropout, nothing else."""
        if not isinstance(objective, Supervised) or not getattr(network, "is_plain", False):
            return False
        kind: type[Supervised] = type(objective)
        if kind.forward is not Supervised.forward or kind.attach is not Supervised.attach:
            return False  # a subclass that changes what is minimised
        linears, parameters = _linears(network), list(network.parameters())
        known = {id(p) for linear in linears for p in (linear.weight, linear.bias)}
        learned = [p for p in objective.parameters() if p.requires_grad]
        dtypes = {p.dtype for p in [*parameters, *learned]}
        return (
            derivative_of(cast(nn.Module, network.activation)) is not None
            and {id(p) for p in parameters} == known  # a layer without bias has None among known
            and all(p.requires_grad and p.device.type == "cpu" for p in parameters)
            and dtypes in ({torch.float32}, {torch.float64})
        )

    def step(self, batch: Batch) -> dict[str, float]:
        """Updates the weights; a loss or gradient that is not finite leaves them as they were."""
        if self.optimizer.moved:
            self._rebind()
        if self.processes is not None:
            return self._common_step(batch, self.processes)
        masks = self._passes.masks.state
        with np.errstate(all="ignore"):  # what is not finite is found below
            output = self._passes.forward(batch.inputs[0].numpy())
            loss, count, delta = self._output_gradient(output, batch, self._own_gradients)
            logs = {"loss": loss, "count": count}
            if self.schedule is not None:
                self.rate = self.learning_rate * self.schedule(self.number)
            if count > 0:  # a batch without a single observed outcome changes nothing
                if not math.isfinite(loss):
                    self._refuse(batch, masks, f"the loss is {loss:g}")
                self._passes.backward(delta)
                self._bound(batch, masks, logs)
                self.optimizer.update(self.rate)
        self.number += 1
        return logs

    def evaluate(self, batch: Batch) -> Loss:
        """Computes the plain loss of the batch in evaluation mode, without a gradient."""
        if self.processes is None or self._output_gradient.likelihood.additive:
            return evaluate_batch(self.network, self.objective, batch)
        gathered = GatheredNetwork(self.network, self.processes)
        loss = evaluate_batch(gathered, self.objective, batch)
        # Known to all, and counted once.
        return loss if self.processes.is_first else Loss(loss.total * 0, loss.count * 0)

    def observe(self, value: float) -> None:
        """Hands an evaluation to a schedule that listens (plateau)."""
        observe = getattr(self.schedule, "observe", None)
        if observe is not None:
            observe(value)

    def state_dict(self) -> dict[str, Any]:
        """The optimiser's state, the batch number, the schedule, the position in the masks."""
        saved = getattr(self.schedule, "state_dict", None)
        return {
            "optimizer": self.optimizer.state_dict(),
            "number": self.number,
            "schedule": saved() if saved else {},
            "masks": list(self._passes.masks.state),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave; the weights are loaded into the network itself."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.number = int(state["number"])
        if state["schedule"] and self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])  # type: ignore[attr-defined]
        seed, blocks = state["masks"]
        self._passes.masks.state = int(seed), int(blocks)

    def _common_step(self, batch: Batch, processes: Processes) -> dict[str, float]:
        """One update by the gradient of all processes' rows, which is one message."""
        if self._passes.masks.threshold:  # of this process and step: nothing to save for a resume
            self._passes.masks.state = seeds.derive(self._seed, processes.rank, self.number), 0
        masks, error, total, count = self._passes.masks.state, None, 0.0, 0.0
        self.optimizer.gradient.zero_()
        with np.errstate(all="ignore"):
            try:
                if len(batch.index):
                    total, count = self._own_sums(batch, masks, processes)
            except Exception as failure:
                if not self._output_gradient.likelihood.additive:
                    raise  # the others wait for this one's outputs
                error = failure
            summed, total, count = processes.add_up(self.optimizer.gradient, total, count, error)
            logs = {"loss": total / count if count else math.nan, "count": count}
            if self.schedule is not None:
                self.rate = self.learning_rate * self.schedule(self.number)
            if count > 0 and summed is not None:
                self.optimizer.gradient.copy_(summed.div_(count))
                self._bound(batch, masks, logs)
                self.optimizer.update(self.rate)
        self.number += 1
        return logs

    def _own_sums(
        self, batch: Batch, masks: tuple[int, int], processes: Processes
    ) -> tuple[float, float]:
        """Leaves this process's part of the gradient of the sum; returns its total and count."""
        if not self._output_gradient.likelihood.additive:
            return self._own_share(batch, masks, processes)
        output = self._passes.forward(batch.inputs[0].numpy())
        loss, count, delta = self._output_gradient(output, batch, self._own_gradients)
        if count > 0:
            self._sum_backward(delta, loss, count, batch, masks)
        return loss * count if count > 0 else 0.0, count

    def _own_share(
        self, batch: Batch, masks: tuple[int, int], processes: Processes
    ) -> tuple[float, float]:
        """The same for rows that are coupled: their loss is that of all processes' outputs."""
        rows = len(batch.index)
        first, last = processes.bounds(rows)[processes.rank :][:2]
        own = self._passes.forward(take_rows(batch.inputs[0], slice(first, last)).numpy())
        output = processes.gather_rows(torch.from_numpy(own), rows).numpy()
        loss, count, delta = self._output_gradient(output, batch, self._own_gradients)
        if count > 0:
            self._sum_backward(delta[first:last], loss, count, batch, masks)
        if processes.is_first:
            return loss * count, count
        for slot in self._own_gradients:  # every process computed all of it
            slot.zero_()
        return 0.0, 0.0

    def _sum_backward(
        self, delta: Array, loss: float, count: float, batch: Batch, masks: tuple[int, int]
    ) -> None:
        """The gradient of the total, found to be finite before it spoils everybody's."""
        if not math.isfinite(loss):
            self._refuse(batch, masks, f"the loss is {loss:g}")
        self._passes.backward(delta)
        if not math.isfinite(self.optimizer.gradient_norm()):
            self._refuse(batch, masks, "no update")
        self.optimizer.scale_gradient(count)

    def _bind(self) -> Backpropagation:
        """Lets both passes work on the flat vector's memory."""
        depth = len(_linears(self.network))
        values = [value.numpy() for value in self.optimizer.values[: 2 * depth]]
        gradients = [slot.numpy() for slot in self.optimizer.gradients[: 2 * depth]]
        self._own_gradients = self.optimizer.gradients[2 * depth :]
        return Backpropagation(
            values[:depth],
            values[depth:],
            gradients[:depth],
            gradients[depth:],
            cast(Derivative, derivative_of(cast(nn.Module, self.network.activation))),
            dropout=float(cast(float, self.network.dropout)),
            seed=self._seed,
        )

    def _rebind(self) -> None:
        """After the parameters were given other memory, as by ``network.double()``."""
        if not self.supports(self.network, self.objective):
            raise UsageError("AnalyticStep works on the CPU; on another device use GradientStep.")
        position = self._passes.masks.state
        self.optimizer.bind()
        self._passes = self._bind()
        self._passes.masks.state = position

    def _bound(self, batch: Batch, masks: tuple[int, int], logs: dict[str, float]) -> None:
        """Refuses a gradient that is not finite, and clips one that is too long."""
        norm = self.optimizer.gradient_norm()
        if not math.isfinite(norm):
            self._refuse(batch, masks, "no update")
        if self.clip is not None:
            logs["gradient_norm"] = norm
            if norm + 1e-6 > self.clip:  # as torch.nn.utils.clip_grad_norm_
                self.optimizer.scale_gradient(self.clip / (norm + 1e-6))

    def _refuse(self, batch: Batch, masks: tuple[int, int], what: str) -> NoReturn:
        """Stops before the update, naming the first bad tensor and the rows."""
        self._passes.masks.state = masks
        pairs = list(zip(self.optimizer.parameters, self.optimizer.gradients, strict=True))
        for parameter, gradient in pairs:
            parameter.grad = gradient
        error = numerical_error(
            self.network, self.objective, batch, what, number=self.number + 1, rate=self.rate
        )
        for parameter, _ in pairs:
            parameter.grad = None
        raise error


def _linears(network: nn.Module) -> list[nn.Linear]:
    return [*cast("list[nn.Linear]", network.hidden), cast(nn.Linear, network.output)]
