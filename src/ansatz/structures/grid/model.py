"""A fitted model of signals, images or volumes: preprocessing, network and likelihood."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ansatz.data.grids import GridPreprocessor, Grids
from ansatz.errors import UsageError
from ansatz.fitting.model import TableModel
from ansatz.structures.grid.tiles import predict_tiles
from ansatz.networks.layout import channels_last
from ansatz.networks.receptive_field import receptive_field
from ansatz.spec import InputSpec
from ansatz.symmetry import Group, GroupAverage, create

CELLS = 2**21  # numbers of the examples that are predicted at once
MOST = 512  # examples, likewise
LARGEST_TILE = {1: 2**20, 2: 1024, 3: 128}  # cells a side that are predicted at once, by axes


class GridModel(TableModel):
    """Grids in, the likelihood's parameters out.

    The network computes in float32: convolutions in float64 take many times as long, so that an
    example alone and among others may differ in the seventh digit. What the law makes of the raw
    numbers is computed in float64.

    Args:
        preprocessor: tells mean and spread of every channel.
        network: gives the raw numbers before shift and scale.
        objective: holds likelihood, shift and scale.
        network_name: as the registry spells it.
        network_options: the options that remake the network; None for one of the user's own.
        symmetry: the group that the answers of a network for masks are averaged over.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> images = np.zeros((20, 1, 12, 12), dtype=np.float32)
        >>> images[::2, :, 6:] = 1
        >>> settings = {"network": "linear_grid", "epochs": 2, "holdout": 0.0}
        >>> model = Classifier(**settings).fit(images, np.arange(20) % 2).model_
        >>> model.raw(model.read(images)).shape
        torch.Size([20, 1])
    """

    dtype = torch.float32
    preprocessor: GridPreprocessor

    def __init__(self, *parts: Any, symmetry: str | None = None) -> None:
        super().__init__(*parts)
        self.network = channels_last(self.network)
        self.symmetry = symmetry

    @property
    def answering(self) -> nn.Module:
        """The network, averaged over the symmetry that its masks should have."""
        if self.symmetry is None:
            return self.network
        return GroupAverage(self.network, mask_symmetry(self.symmetry, self.preprocessor.shape[1:]))

    @staticmethod
    def read(examples: Any) -> Grids:
        """Arrays as grids."""
        return examples if isinstance(examples, Grids) else Grids.of(examples)

    @property
    def is_dense(self) -> bool:
        """Whether the answer is one for every cell."""
        return self.objective.axis == 1

    def raw(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Tensor:
        """The likelihood's parameters of each example, ``(N, P)``; of each cell for masks."""
        self.preprocessor.check(rows, any_size=self.is_dense)
        parts = [
            self.raw_of(
                self.prepare(rows[piece]),
                None if offset is None else offset[torch.as_tensor(piece)],
            )
            for piece in self.pieces(rows)
        ]
        if not parts:
            return torch.zeros(0, *self.empty_shape(), dtype=torch.float64)
        return torch.cat(parts)

    def raw_in_tiles(self, rows: Grids, tile: int | None = None) -> Tensor:
        """The likelihood's parameters at every cell, of examples larger than those of the fit too.

        Args:
            rows: examples of any size.
            tile: cells along each side of a piece; None takes the size of the fit's examples, up
                to 1,024 of images and 128 of volumes.
        """
        size, seen = rows.shape[1:], self.preprocessor.shape[1:]
        most = tile or LARGEST_TILE[len(size)]
        within = seen if tile is None else size
        sides = tuple(min(most, side) for side in within)
        if all(side <= piece for side, piece in zip(size, sides, strict=True)):
            return self.raw(rows)
        self.preprocessor.check(rows, any_size=True)
        stride = int(getattr(self.network, "stride", 1))  # tiles are pooled as the whole would be
        multiple = stride if all(side >= 6 * stride for side in sides) else 1
        overlap = self._context(sides, multiple)
        parts = []
        for piece in range(len(rows)):
            (x,) = self.prepare(rows[np.arange(piece, piece + 1)])
            cells = predict_tiles(
                self.answering, x, tile=sides, overlap=overlap, multiple=multiple, border="keep"
            )
            parts.append(self.objective.attach(cells.movedim(1, -1)).double())
        return torch.cat(parts).detach()

    def _context(self, sides: tuple[int, ...], multiple: int) -> tuple[int, ...]:
        """What a cell sees around it, so that tiles answer as the whole; at most a third of one."""
        spec = InputSpec.grid(self.preprocessor.shape[0], *sides)
        seen = receptive_field(self.network, spec).size
        most = [side // 3 // multiple * multiple for side in sides]
        return tuple(
            max(1, min(third, -(-reach // 2))) for third, reach in zip(most, seen, strict=True)
        )

    def empty_shape(self) -> tuple[int, ...]:
        """The shape of the raw numbers of one example."""
        assert self.objective.shift is not None
        return tuple(self.objective.shift.shape)

    def prepare(self, rows: Any, *, notes: list[str] | None = None) -> tuple[Tensor, ...]:
        """The network's inputs."""
        x = self.preprocessor.standardized(self.preprocessor.scaled(rows.load()))
        return (channels_last(x),)

    def raw_of(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        """The likelihood's parameters at inputs that are prepared."""
        with torch.no_grad():
            return self.objective.raw(self.answering, inputs, offset).double()

    def pieces(self, rows: Grids) -> Iterator[np.ndarray]:
        """The numbers of the examples that are predicted at once, piece by piece."""
        share = CELLS // 4 if self.is_dense else CELLS
        size = min(MOST, max(1, share // math.prod(rows.shape)))
        for first in range(0, len(rows), size):
            yield np.arange(first, min(first + size, len(rows)))


def mask_symmetry(name: str, size: tuple[int, ...]) -> Group:
    """The group of a name that moves the cells of such grids; flips along every axis.

    Example:
        >>> from ansatz.structures.grid.model import mask_symmetry
        >>> mask_symmetry("flip", (8, 8)).axes
        (-2, -1)
    """
    if name == "flip":
        return create("flip", axes=tuple(range(-len(size), 0)))
    if len(size) < 2:
        raise UsageError(f"signals cannot be turned: symmetry is flip or none, got {name}.")
    return create(name)
