"""A named data set: a table, perhaps with images, its target, and what is known about it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ansatz.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from ansatz.data.grids import Grids, Masks


@dataclass(frozen=True)
class Dataset:
    """A table with a question.

    Args:
        name: as in ``ansatz data list``.
        frame: all rows, target included.
        target: the column to predict; several where the outcome has several parts; ``"mask"``
            where it is a class per cell.
        description: one sentence.
        license: what its publisher says.
        likelihood: a likelihood that suits the target; empty where none of the simple ones does.
        exclude: columns that give the target away.
        splits: the published splits, as (train, test) row numbers.
        grids: the images or volumes, one per row; None for tables.
        masks: a class for each of their cells; None where there are none.

    Example:
        >>> from ansatz.data import load
        >>> iris = load("iris")
        >>> iris.frame.shape, iris.target, iris.likelihood
        ((150, 5), 'species', 'categorical')
    """

    name: str
    frame: "pd.DataFrame"
    target: str | tuple[str, ...]
    description: str
    license: str
    likelihood: str = ""
    exclude: tuple[str, ...] = ()
    splits: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    grids: "Grids | None" = None
    masks: "Masks | None" = None

    def split(self, k: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers (train, test) of the k-th published split."""
        if not 0 <= k < len(self.splits):
            raise UsageError(
                f"data set '{self.name}' has {len(self.splits)} published splits, asked for {k}."
            )
        return self.splits[k]
