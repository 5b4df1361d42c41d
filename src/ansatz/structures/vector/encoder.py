"""From rows of a table to a network's inputs."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ansatz.data import Column, Preprocessor
from ansatz.spec import InputSpec
from ansatz.structures.vector.rows import TableRows


class TableEncoder:
    """The preprocessing of a table: numbers standardised, levels coded, missing values filled.

    Predictions are computed in float64, whatever the training used, so that a row alone and the
    same row among others give the same number.

    Args:
        preprocessor: learned from training rows.
    """

    dtype = torch.float64

    def __init__(self, preprocessor: Preprocessor) -> None:
        self.preprocessor = preprocessor

    @property
    def spec(self) -> InputSpec:
        """The shape of one row's inputs."""
        return self.preprocessor.spec

    @property
    def notes(self) -> list[str]:
        """What the training rows showed about columns."""
        return self.preprocessor.notes

    @property
    def columns(self) -> list[Column]:
        """What each column was taken for."""
        return self.preprocessor.columns

    def inputs(self, rows: TableRows, *, notes: list[str] | None = None) -> tuple[Tensor, ...]:
        """Inputs for prediction: numbers far outside the training range are clipped."""
        found = self.preprocessor.transform(rows.values, clip=True, notes=notes)
        return tuple(t.double() if t.is_floating_point() else t for t in found)

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        return self.preprocessor.state()


def bent_columns(options: Mapping[str, Any]) -> bool | list[str]:
    """Reads which columns are bent to normal scores: all, none, or those named."""
    given = options.get("quantile") or False
    return given if isinstance(given, bool) else list(given)
