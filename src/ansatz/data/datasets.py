"""A named data set: a table, its target, and what is known about it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ansatz.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Dataset:
    """A table with a question.

    Args:
        name: as in ``ansatz data list``.
        frame: all rows, target included.
        target: the column to predict; several where the outcome has several parts.
        description: one sentence.
        license: what its publisher says.
        likelihood: a law that suits the target; empty where none of the simple ones does.
        exclude: columns that give the target away.
        splits: the published splits, as (train, test) row numbers.

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

    def split(self, k: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers (train, test) of the k-th published split."""
        if not 0 <= k < len(self.splits):
            raise UsageError(
                f"data set '{self.name}' has {len(self.splits)} published splits, asked for {k}."
            )
        return self.splits[k]
