"""From examples to a network's inputs."""

from typing import Any, Protocol

import torch
from torch import Tensor

from ansatz.spec import InputSpec


class Encoder(Protocol):
    """The map from rows to a network's inputs, learned from training rows."""

    @property
    def spec(self) -> InputSpec:
        """The shape of one example's inputs, for the network's factory."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """The floating-point type in which a network predicts."""
        ...

    @property
    def notes(self) -> list[str]:
        """Sentences about what the training rows showed."""
        ...

    def inputs(self, rows: Any, *, notes: list[str] | None = None) -> tuple[Tensor, ...]:
        """The network's inputs for prediction; what is odd goes to ``notes``, or is warned of."""
        ...

    def state(self) -> dict[str, Any]:
        """All of it as JSON; the structure's ``load_encoder`` is the inverse."""
        ...
