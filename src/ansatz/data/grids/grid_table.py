"""Grids with a table: a row for each of them."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ansatz.data.grids.grids import Grids
from ansatz.data.grids.masks import Masks
from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class GridTable:
    """Grids with the other columns of their table, one row per example.

    Args:
        origin: what errors call the data.
        frame: everything but the grids: file names, classes, targets, weights; perhaps no column.
        grids: the inputs.
        masks: a class for each pixel, where the data have them.
        notes: what was assumed in reading, in sentences for the user.
        target: the column to predict if nobody says; ``"mask"`` for the masks; None if unknown.

    Example:
        >>> import pandas as pd, torch
        >>> from ansatz.data.grids import Grids, GridTable
        >>> frame = pd.DataFrame({"class": ["cat", "dog"]})
        >>> table = GridTable("pets", frame, Grids.of(torch.zeros(2, 4, 4)), target="class")
        >>> len(table), table.rows([1]).frame["class"].tolist()
        (2, ['dog'])
    """

    origin: str
    frame: "pd.DataFrame"
    grids: Grids
    masks: Masks | None = None
    notes: list[str] = field(default_factory=list)
    target: str | None = None

    def __post_init__(self) -> None:
        counts = {"rows": len(self.frame), "grids": len(self.grids)}
        if self.masks is not None:
            counts["masks"] = len(self.masks)
            if self.masks.shape != self.grids.shape[1:]:
                raise DataError(
                    f"{self.origin}: masks of size {self.masks.shape} for grids of size "
                    f"{self.grids.shape[1:]}; each pixel needs its class."
                )
        if len(set(counts.values())) > 1:
            said = ", ".join(f"{count} {name}" for name, count in counts.items())
            raise DataError(f"{self.origin}: {said}; expected one of each per example.")

    def __len__(self) -> int:
        return len(self.grids)

    def rows(self, rows: np.ndarray | list[int]) -> "GridTable":
        """Some of the examples, with their rows."""
        masks = None if self.masks is None else self.masks[rows]
        frame = self.frame.iloc[rows].reset_index(drop=True)
        return GridTable(self.origin, frame, self.grids[rows], masks, self.notes, self.target)
