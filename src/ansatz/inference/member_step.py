"""Training several plain networks together, without autograd: the speed of an ensemble."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn

from ansatz import seeds
from ansatz.data import Batch
from ansatz.data.batch import map_tensors
from ansatz.errors import NumericalError
from ansatz.inference.member_passes import MemberPasses
from ansatz.inference.members import MemberObjective, Members
from ansatz.optim import FlatAdamW
from ansatz.training import AnalyticStep, Loss, Supervised
from ansatz.training.early_stopping import check_stopping, settling
from ansatz.training.fast.numpy_mlp import Array


class MemberStopping:
    """Remembers for each member its lowest loss, how long ago it was, and its weights then."""

    def __init__(
        self,
        parameters: list[Tensor],
        patience: int | None,
        min_improvement: float = 0.0,
        least_loss: float = -math.inf,
    ) -> None:
        check_stopping(patience, min_improvement)
        self._parameters, self.patience = parameters, patience
        self.min_improvement, self.enough = min_improvement, least_loss + min_improvement
        members = len(parameters[0])
        self.best = torch.full((members,), torch.inf, dtype=torch.float64)
        self.first, self.progress = self.best.clone(), self.best.clone()
        self.waited = torch.zeros(members, dtype=torch.int64)
        self.settled = self.waited.clone()
        self.kept = [p.detach().clone() for p in parameters]
        self.latest: Tensor | None = None  # losses of the evaluation that is under way

    def observe(self, loss: float) -> bool:
        """True when a member has a new lowest loss; ``latest`` holds the members' losses."""
        assert self.latest is not None, "the step has not been evaluated"
        return self.evaluate(self.latest)

    def evaluate(self, losses: Tensor) -> bool:
        """Takes note of one loss per member."""
        losses, learning = losses.double(), ~self.finished  # one that has stopped has stopped
        self.first = torch.where(self.first == torch.inf, losses, self.first)
        better = (losses < self.best) & learning
        self.best = torch.where(better, losses, self.best)
        margin = self.min_improvement * (self.first - self.best).clamp(max=1.0)
        further = (losses < self.progress - margin) & learning
        self.progress = torch.where(further, losses, self.progress)
        self.waited = torch.where(further, 0, self.waited + 1)
        near = (losses < self.enough) | ~learning  # a member that has settled stays so
        self.settled = torch.where(near, self.settled + learning, 0)
        for mine, now in zip(self.kept, self._parameters, strict=True):
            mine[better] = now.detach()[better]
        return bool(better.any())

    @property
    def finished(self) -> Tensor:
        """For each member, whether its patience has run out."""
        if self.patience is None:
            return torch.zeros_like(self.waited, dtype=torch.bool)
        return (self.waited >= self.patience) | (self.settled >= settling(self.patience))

    @property
    def exhausted(self) -> bool:
        """True when every member's patience has run out."""
        return bool(self.finished.all())

    def restore(self) -> None:
        """Gives every member the weights of its lowest loss."""
        with torch.no_grad():
            for now, mine in zip(self._parameters, self.kept, strict=True):
                now.copy_(mine)

    def state_dict(self) -> dict[str, Any]:
        """Losses, waiting times and weights."""
        kept = {str(place): value for place, value in enumerate(self.kept)}
        seen = {"best": self.best, "first": self.first, "progress": self.progress}
        return {**seen, "waited": self.waited, "settled": self.settled, "kept": kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        self.best, self.waited = state["best"].clone(), state["waited"].clone()
        self.first = state.get("first", self.best).clone()  # runs of before had no such numbers
        self.progress = state.get("progress", self.best).clone()
        self.settled = state.get("settled", torch.zeros_like(self.waited)).clone()
        for place, value in enumerate(self.kept):
            value.copy_(state["kept"][str(place)])


_ROWS = 4_096  # of each member that are evaluated at once


class MemberStep:
    """One AdamW step of each of S plain networks, every one on rows of its own.

    Members share nothing but the call: each has its gradient clipped by itself, its own dropout,
    its own learned shapes of the likelihood, and stops by its own held-out rows. The path of a
    member is that of :class:`~ansatz.training.AnalyticStep` up to rounding.

    Args:
        network: the members; parameters become views into one flat vector.
        objective: their losses.
        dropout: one probability per member, zeros first.
        learning_rate: at multiplier 1.
        betas: of AdamW.
        weight_decay: decoupled, on matrices.
        schedule: step number from 0 -> multiplier of the rate; None for a constant rate.
        clip: the norm of each member's gradient is scaled down to this; None for no clipping.
        drop_finished: members that have stopped leave the batch. The network then follows at
            evaluations and when its state is asked for, no longer at every step, as an average
            of the weights would need it.
        seed: of the dropout masks.
    """

    network: nn.Module
    objective: nn.Module

    def __init__(
        self,
        network: Members,
        objective: MemberObjective,
        *,
        dropout: Sequence[float] = (),
        learning_rate: float = 3e-3,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 1e-2,
        schedule: Callable[[int], float] | None = None,
        clip: float | None = None,
        drop_finished: bool = False,
        seed: int = 0,
    ) -> None:
        self.network = self.members = network
        self.objective = self.losses = objective
        self.learning_rate, self.schedule, self.clip = learning_rate, schedule, clip
        self.rate, self.number, self.drop_finished = learning_rate, 0, drop_finished
        self._dropout, self._betas, self._weight_decay = list(dropout), betas, weight_decay
        self._learning = torch.arange(len(network))  # numbers of the members that still learn
        self._assemble(network, objective, (seeds.derive(seed, "dropout"), 0))
        self._stopping: MemberStopping | None = None
        self._evaluated = torch.full((2, len(network)), torch.nan, dtype=torch.float64)
        network.register_state_dict_pre_hook(lambda *_: self._write_back())  # type: ignore[no-untyped-call]

    def _assemble(
        self, network: Members, objective: MemberObjective, masks: tuple[int, int]
    ) -> None:
        """The optimiser and the passes of the members that learn."""
        self._network, self._losses = network, objective
        self.optimizer = FlatAdamW(
            list(network.weights),
            [*network.biases, *objective.own],
            betas=self._betas,
            weight_decay=self._weight_decay,
        )
        depth = len(network.weights)
        values, gradients = self.optimizer.values, self.optimizer.gradients
        self._own_gradients = gradients[2 * depth :]
        self._gradients = gradients
        self._flat = [gradient.reshape(len(gradient), -1).numpy() for gradient in gradients]
        self._passes = MemberPasses(
            values[:depth],
            values[depth : 2 * depth],
            gradients[:depth],
            gradients[depth : 2 * depth],
            network.activation,
            dropout=[self._dropout[k] for k in self._learning] if self._dropout else (),
        )
        self._passes.masks.state = masks

    @staticmethod
    def supports(network: nn.Module, objective: nn.Module) -> bool:
        """Tests whether members like this one can be trained together."""
        return isinstance(objective, Supervised) and AnalyticStep.supports(network, objective)

    def stopping(self, *rule: Any) -> MemberStopping:
        """Makes what decides when each member stops, of the arguments of ``EarlyStopping``."""
        self._stopping = MemberStopping(_parameters(self.members, self.losses), *rule)
        return self._stopping

    def observe(self, loss: float) -> None:
        """After an evaluation: members that have stopped leave, and cost nothing any more."""
        if self._stopping is None or not self.drop_finished:
            return
        learning = (~self._stopping.finished).nonzero().flatten()
        if 0 < len(learning) < len(self._learning):
            self._keep(learning)

    @torch.no_grad()
    def _keep(self, learning: Tensor) -> None:
        """Goes on with these members alone."""
        self._write_back()
        there = torch.isin(self._learning, learning)
        moments = [view[there] for view in self.optimizer.moments()]
        steps, masks = self.optimizer.steps, self._passes.masks.state
        self._learning = learning
        self._assemble(self.members.select(learning), self.losses.select(learning), masks)
        self.optimizer.steps = steps
        for mine, value in zip(self.optimizer.moments(), moments, strict=True):
            mine.copy_(value)

    @torch.no_grad()
    def _write_back(self) -> None:
        """Writes the weights of the members that still train into the network of all."""
        if self._network is self.members:
            return
        everyone = _parameters(self.members, self.losses)
        some = _parameters(self._network, self._losses)
        for mine, theirs in zip(everyone, some, strict=True):
            mine[self._learning] = theirs

    @torch.no_grad()
    def step(self, batch: Batch) -> dict[str, float]:
        """Updates the members; a loss or gradient that is not finite leaves them as they were."""
        batch = self._rows_of_learners(batch)
        masks = self._passes.masks.state
        output = self._passes.forward(batch.inputs[0])
        losses, delta = self._losses.gradient(output, batch, self._own_gradients)
        loss = float(losses.numpy().mean())
        if self.schedule is not None:
            self.rate = self.learning_rate * self.schedule(self.number)
        if not math.isfinite(loss):
            self._refuse(batch, masks, losses, f"the loss is {loss:g}")
        self._passes.backward(delta)
        self._clip(batch, masks)
        self.optimizer.update(self.rate)
        self.number += 1
        return {"loss": loss, "count": float(batch.weight.numpy().sum())}

    def _clip(self, batch: Batch, masks: tuple[int, int]) -> None:
        norm = self.optimizer.gradient_norm()  # of all members: none has a longer one
        if math.isfinite(norm) and (self.clip is None or norm <= self.clip):
            return
        norms = self._norms()
        longest = float(norms.max())
        if not math.isfinite(longest):
            self._refuse(batch, masks, torch.from_numpy(norms), "no update")
        if self.clip is None or longest <= self.clip:
            return
        factor = torch.from_numpy(np.minimum(self.clip / (norms + 1e-6), 1))
        for gradient in self._gradients:
            gradient *= factor.reshape(-1, *(1,) * (gradient.ndim - 1))

    def _norms(self) -> Array:
        """The Euclidean norm of each member's gradient."""
        with np.errstate(over="ignore"):
            norms: Array = np.sqrt(sum(np.vecdot(rows, rows) for rows in self._flat))
        if np.isfinite(norms).all():
            return norms
        # A square overflows long before its root.
        wide = [np.square(rows, dtype=np.float64).sum(1) for rows in self._flat]
        found: Array = np.sqrt(sum(wide)).astype(norms.dtype)
        return found

    def _rows_of_learners(self, batch: Batch) -> Batch:
        if self._network is self.members:
            return batch
        rows: Batch = map_tensors(lambda t: t[self._learning], batch)
        return rows

    @torch.no_grad()
    def evaluate(self, batch: Batch) -> Loss:
        """The plain loss of the batch in evaluation mode; each member's mean goes to its memory.

        A member that has left counts with the loss that it had last.
        """
        self._write_back()
        batch = self._rows_of_learners(batch)
        total = count = torch.zeros(len(self._learning), dtype=torch.float64)
        width = batch.weight.shape[1] if not self.losses.likelihood.additive else _ROWS
        for first in range(0, batch.weight.shape[1], width):
            part: Batch = map_tensors(lambda t, k=first: t[:, k : k + width], batch)
            output = self._network(part.inputs[0])
            sums, weights = self._losses.losses(output, part)
            total, count = total + sums.double(), count + weights.double()
        self._evaluated[:, self._learning] = torch.stack([total, count])
        totals, counts = self._evaluated
        if self._stopping is not None:
            self._stopping.latest = totals / counts
        return Loss(totals.sum(), counts.sum())

    def restore_best(self) -> None:
        """Gives every member the weights of its best evaluation."""
        if self._stopping is not None:
            self._stopping.restore()

    def state_dict(self) -> dict[str, Any]:
        """The optimiser's state, the batch number, who learns, the position in the masks."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "number": self.number,
            "learning": self._learning.clone(),
            "evaluated": self._evaluated.clone(),
            "masks": list(self._passes.masks.state),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave; the weights are loaded into the network itself."""
        if len(state["learning"]) < len(self._learning):
            self._keep(state["learning"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.number = int(state["number"])
        self._evaluated.copy_(state["evaluated"])
        seed, blocks = state["masks"]
        self._passes.masks.state = int(seed), int(blocks)

    def _refuse(self, batch: Batch, masks: tuple[int, int], values: Tensor, what: str) -> NoReturn:
        self._passes.masks.state = masks
        place = int((~values.isfinite()).nonzero()[0, 0])
        member, rows = int(self._learning[place]) + 1, batch.index[place, :5].tolist()
        raise NumericalError(
            f"{what} at step {self.number + 1}, first in member {member} of "
            f"{len(self.members)}, in a batch with the rows {', '.join(map(str, rows))}. The "
            f"update was not applied. Lower the learning rate, which is {self.rate:g}."
        )


def _parameters(network: Members, objective: MemberObjective) -> list[Tensor]:
    """All that members learn, in the optimiser's order."""
    return [p.data for p in (*network.weights, *network.biases, *objective.own)]
