"""What a graph of a fitted model needs from the structure of x."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, dtype, nn

from ansatz.fitting.contracts.encoder import Encoder
from ansatz.fitting.contracts.inference import Posterior


@dataclass(frozen=True)
class Input:
    """One input of the exported graph.

    Args:
        name: in the graph; the column's own, unless an output has that name.
        column: in the table; of a matrix, all columns of an array.
        kind: ``"number"`` takes floats, nan where missing; ``"category"`` and ``"ordered"`` take
            text, empty where missing; ``"date"`` takes microseconds since 1970-01-01 UTC as int64,
            -2**63 where missing; ``"matrix"`` takes all numbers at once, ``(N, D)``;
            ``"grid"`` the cells of signals, images or volumes, ``(N, C, *size)``;
            ``"offset"`` and ``"exposure"`` take floats. Other structures have kinds of their own.
        codes: text -> the whole number that stands for it inside, of categories.
        unknown: what stands for any other text.
        takes: what it takes, in words.

    Example:
        >>> from ansatz.onnx import Input
        >>> Input("age", "age", "number").is_text
        False
    """

    name: str
    column: str
    kind: str
    codes: dict[str, int] = field(default_factory=dict)
    unknown: int = 0
    takes: str = ""

    @property
    def is_text(self) -> bool:
        """Whether cells are given as text."""
        return bool(self.codes)


class Exporter(Protocol):
    """From cells as a service has them to a network's inputs, as operations on tensors."""

    inputs: list[Input]
    preprocessing: str  # what happens inside the graph, in words

    def keeps_units(self, encoder: Encoder) -> bool:
        """Whether inputs are so large or small that a network must compute in float64."""
        return False

    def module(self, encoder: Encoder) -> nn.Module:
        """Takes a tensor for each of the inputs, gives a tuple: what a network takes."""
        ...

    def example(self, kind: dtype) -> tuple[Tensor, ...]:
        """Cells to trace with; the number of rows should be no other axis's."""
        ...

    def feed(self, given: Any, kind: type[np.floating[Any]]) -> list[NDArray[Any]]:
        """Rows as a user has them, as a runtime takes them: an array for each of the inputs."""
        ...

    def made_up(self, seed: int, kind: type[np.floating[Any]]) -> tuple[Any, list[NDArray[Any]]]:
        """Examples like those of the training without any of them, as rows and as a runtime's."""
        ...

    def raw(self, posterior: Posterior, rows: Any, offset: Tensor | None) -> Tensor:
        """What the model computes for made-up rows."""
        return posterior.predictive(rows, offset, notes=[]).raw
