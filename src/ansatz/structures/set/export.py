"""Sets and point clouds in an exported graph: any number of sets, of any number of elements."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data.sets.batch import ElementBatch, SetBatch
from ansatz.fitting.contracts.exporter import ROWS, Exporter, Input
from ansatz.fitting.contracts.inference import Posterior

ELEMENTS = "E"  # the axis of all elements
_SIZES = (5, 3, 7, 4, 6, 2, 8, 9, 3, 5, 11)  # of made-up sets: no other axis has these lengths


class SetExporter(Exporter):
    """Encoded elements and offsets; codes and numbers of sets where the model has them.

    Args:
        encoder: of the model.
        as_rows: makes rows of what a user has.
    """

    preprocessing = "outside the graph: elements are encoded as in the fit"

    def __init__(self, encoder: Any, as_rows: Callable[[Any], Any]) -> None:
        self.encoder, self.as_rows, spec = encoder, as_rows, encoder.spec
        self.codes = len(spec.cardinalities) + (spec.relations > 0)
        self.each = spec.rows == "elements"
        takes = f"numbers of all elements, one set behind the other ({ELEMENTS}, {spec.features})"
        ends = f"where each set begins, and the last one ends ({ROWS} + 1)"
        self.inputs = [
            Input("X", "X", "tensor", takes=takes, axis=ELEMENTS),
            Input("offsets", "offsets", "codes", takes=ends, axis=f"{ROWS} + 1"),
        ]
        if self.codes:
            words = f"codes of levels ({ELEMENTS}, {self.codes})"
            self.inputs.append(Input("codes", "codes", "codes", takes=words, axis=ELEMENTS))
        if spec.graph_features:
            words = f"numbers of each set ({ROWS}, {spec.graph_features})"
            self.inputs.append(Input("beside", "beside", "tensor", takes=words))

    def module(self, encoder: Any) -> nn.Module:
        """The inputs as a network takes them."""
        return _Inputs(bool(self.codes), bool(encoder.spec.graph_features))

    def example(self, kind: torch.dtype) -> tuple[Tensor, ...]:
        """Sets of several sizes."""
        batch = self._made(np.random.default_rng(0))
        return tuple(t.to(kind) if t.is_floating_point() else t for t in self._kept(batch))

    def feed(self, given: Any, kind: type[np.floating[Any]]) -> list[NDArray[Any]]:
        """Sets as encoded numbers and offsets."""
        found = self.encoder.inputs(self.as_rows(given), notes=[])
        return [
            t.numpy().astype(kind) if t.is_floating_point() else t.numpy()
            for t in self._kept(found)
        ]

    def made_up(
        self, seed: int, kind: type[np.floating[Any]]
    ) -> tuple[SetBatch | ElementBatch, list[NDArray[Any]]]:
        """Random elements in sets of several sizes."""
        batch = self._made(np.random.default_rng(seed))
        fed = [
            t.numpy().astype(kind) if t.is_floating_point() else t.numpy()
            for t in self._kept(batch)
        ]
        if self.each:
            return ElementBatch(*batch, torch.arange(len(batch.values))), fed
        return batch, fed

    def raw(self, posterior: Posterior, rows: Any, offset: Tensor | None) -> Tensor:
        """The raw numbers of the model for encoded sets."""
        return posterior.answer(rows, offset)

    def _made(self, draw: np.random.Generator) -> SetBatch:
        spec, dtype = self.encoder.spec, self.encoder.dtype
        count = sum(_SIZES)

        def normal(*shape: int) -> Tensor:
            values = draw.normal(size=shape).astype(np.float32)
            return torch.from_numpy(values).to(dtype)

        kinds = [spec.relations] if spec.relations else []
        levels = [draw.integers(1, n + 1, count) for n in (*spec.cardinalities, *kinds)]
        codes = np.stack(levels, 1) if levels else np.zeros((count, 0), dtype=np.int64)
        return SetBatch(
            normal(count, spec.features),
            torch.tensor(np.cumsum([0, *_SIZES])),
            torch.tensor(codes),
            normal(len(_SIZES), spec.graph_features),
        )

    def _kept(self, batch: Any) -> list[Tensor]:
        """The inputs that a graph has."""
        found = [batch.values, batch.offsets]
        found += [batch.codes] if self.codes else []
        return [*found, *([batch.beside] if self.encoder.spec.graph_features else [])]


class _Inputs(nn.Module):
    def __init__(self, codes: bool, beside: bool) -> None:
        super().__init__()
        self.codes, self.beside = codes, beside

    def forward(self, values: Tensor, offsets: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        if self.beside and not self.codes:
            return values, offsets, offsets.new_zeros(len(values), 0), *others
        return values, offsets, *others
