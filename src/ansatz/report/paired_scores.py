"""One score of each row by each of two models."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class ScorePair(NamedTuple):
    """One score of each row by each of two models.

    Args:
        name: of the score.
        a: ``(N,)`` of the one model.
        b: ``(N,)`` of the other.
        higher: whether larger is better.
        note: what is to be said about it.
    """

    name: str
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    higher: bool
    note: str | None = None

    @property
    def gain(self) -> NDArray[np.float64]:
        """By how much a is better, row by row; 0 where both are minus infinity."""
        better, worse = (self.a, self.b) if self.higher else (self.b, self.a)
        return np.subtract(better, worse, out=np.zeros(len(better)), where=better != worse)
