"""Every member stops when its own rows say so."""

from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError


class MemberStopping:
    """Remembers for each member its lowest loss, how long ago it was, and its weights then.

    Args:
        parameters: of all members, each with a leading axis of S.
        patience: evaluations without a new lowest loss that a member endures; None for any number.
    """

    def __init__(self, parameters: list[Tensor], patience: int | None) -> None:
        if patience is not None and patience < 1:
            raise UsageError(f"patience must be at least 1 evaluation, got {patience}.")
        self._parameters, self.patience = parameters, patience
        members = len(parameters[0])
        self.best = torch.full((members,), torch.inf, dtype=torch.float64)
        self.waited = torch.zeros(members, dtype=torch.int64)
        self.kept = [p.detach().clone() for p in parameters]
        self.latest: Tensor | None = None  # losses of the evaluation that is under way

    def observe(self, loss: float) -> bool:
        """True when a member has a new lowest loss; ``latest`` holds the members' losses."""
        assert self.latest is not None, "the step has not been evaluated"
        return self.evaluate(self.latest)

    def evaluate(self, losses: Tensor) -> bool:
        """Takes note of one loss per member."""
        better = losses.double() < self.best
        better &= ~self.finished  # one that has stopped has stopped
        self.best = torch.where(better, losses.double(), self.best)
        self.waited = torch.where(better, 0, self.waited + 1)
        for mine, now in zip(self.kept, self._parameters, strict=True):
            mine[better] = now.detach()[better]
        return bool(better.any())

    @property
    def finished(self) -> Tensor:
        """For each member, whether its patience has run out."""
        if self.patience is None:
            return torch.zeros_like(self.waited, dtype=torch.bool)
        return self.waited >= self.patience

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
        return {"best": self.best, "waited": self.waited, "kept": kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        self.best, self.waited = state["best"].clone(), state["waited"].clone()
        for place, value in enumerate(self.kept):
            value.copy_(state["kept"][str(place)])
