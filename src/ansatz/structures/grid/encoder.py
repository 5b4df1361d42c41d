"""From signals, images and volumes to a network's inputs."""

from typing import Any

import torch
from torch import Tensor

from ansatz.data import Column
from ansatz.data.grids import GridPreprocessor, Grids
from ansatz.networks.grid_inputs import channels_last
from ansatz.spec import InputSpec


class GridEncoder:
    """Every channel with mean 0 and standard deviation 1.

    Networks predict in float32: convolutions in float64 take many times as long, so that an
    example alone and among others may differ in the seventh digit. What the likelihood makes of the
    raw numbers is computed in float64.

    Args:
        preprocessor: learned from training examples.
    """

    dtype = torch.float32

    def __init__(self, preprocessor: GridPreprocessor) -> None:
        self.preprocessor = preprocessor

    @property
    def spec(self) -> InputSpec:
        """Channels and cells of an example."""
        return self.preprocessor.spec

    @property
    def notes(self) -> list[str]:
        """What the training examples showed."""
        return self.preprocessor.notes

    @property
    def columns(self) -> list[Column]:
        """None: cells are not columns."""
        return []

    def inputs(self, rows: Grids, *, notes: list[str] | None = None) -> tuple[Tensor, ...]:
        """Standardised cells, channels last in memory."""
        made = self.preprocessor
        return (channels_last(made.standardized(made.scaled(rows.load()))),)

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        return self.preprocessor.state()
