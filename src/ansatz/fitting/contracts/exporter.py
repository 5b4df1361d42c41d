"""The contract of the structure of x with an exported graph."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, dtype, nn

from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.contracts.rows import Encoder
from ansatz.spec import InputSpec

ROWS = "N"  # the name of the axis of the rows


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
        axis: what its first axis is: the rows, one more than they are, or another name.

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
    axis: str = "N"

    @property
    def is_text(self) -> bool:
        """Whether cells are given as text."""
        return bool(self.codes)


class Exporter(Protocol):
    """The map from values as a service has them to a network's inputs, in tensor operations."""

    inputs: list[Input]
    preprocessing: str  # what happens inside the graph, in words
    steps: int = 0  # the greatest length of the second axis of every input, where it is free

    def beside(self) -> dict[str, bytes]:
        """Files that a service needs besides the graph, by name."""
        return {}

    def keeps_units(self, encoder: Encoder) -> bool:
        """Tests whether inputs are so large or small that a network must compute in float64."""
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
        """The raw numbers of the model for made-up rows."""
        return posterior.predictive(rows, offset, notes=[]).raw


_EXAMPLE = 1009  # rows: no other axis is likely to have this length


_MADE_UP = 64  # rows


class TensorExporter(Exporter):
    """Encoded inputs in, the same out: a service encodes its examples by itself."""

    preprocessing = "outside the graph: inputs are encoded as in the fit"

    def __init__(self, encoder: Encoder, as_rows: Callable[[Any], Any]) -> None:
        self.encoder, self.as_rows = encoder, as_rows
        self.shapes = list(_shapes(encoder.spec))
        self.inputs = []
        for k, (shape, levels) in enumerate(self.shapes):
            name = "X" if len(self.shapes) == 1 else f"X{k + 1}"
            what = "codes of levels" if levels else "numbers"
            takes = f"encoded {what} ({', '.join(['N', *map(str, shape)])})"
            self.inputs.append(Input(name, name, "codes" if levels else "tensor", takes=takes))

    def module(self, encoder: Encoder) -> nn.Module:
        return _Same()

    def example(self, kind: torch.dtype) -> tuple[Tensor, ...]:
        return tuple(
            torch.zeros(_EXAMPLE, *shape, dtype=torch.int64 if levels else kind)
            for shape, levels in self.shapes
        )

    def feed(self, given: Any, kind: type[np.floating[Any]]) -> list[NDArray[Any]]:
        found = self.encoder.inputs(self.as_rows(given), notes=[])
        return [t.numpy().astype(kind) if t.is_floating_point() else t.numpy() for t in found]

    def made_up(
        self, seed: int, kind: type[np.floating[Any]]
    ) -> tuple[tuple[Tensor, ...], list[NDArray[Any]]]:
        generator = np.random.default_rng(seed)
        cells = [
            generator.integers(0, levels, (_MADE_UP, *shape))
            if levels
            else generator.normal(size=(_MADE_UP, *shape)).astype(np.float32).astype(kind)
            for shape, levels in self.shapes
        ]
        rows = (torch.from_numpy(cell) for cell in cells)
        return tuple(t.to(self.encoder.dtype) if t.is_floating_point() else t for t in rows), cells

    def raw(self, posterior: Posterior, rows: Any, offset: Tensor | None) -> Tensor:
        return posterior.answer(rows, offset)


class _Same(nn.Module):
    def forward(self, *cells: Tensor) -> tuple[Tensor, ...]:
        return cells


def _shapes(spec: InputSpec) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The shape of each input of one example, and the levels of its codes if it holds codes."""
    for _, part in spec.parts:
        yield from _shapes(part)
    if not spec.parts:
        yield (spec.features, *spec.size), ()
        if spec.cardinalities:
            yield (len(spec.cardinalities),), spec.cardinalities
