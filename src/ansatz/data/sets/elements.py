"""Elements as rows, each beside the others of its set."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz.data.keys import mix
from ansatz.data.sets.sets import Sets
from ansatz.spec import InputSpec


class Elements:
    """Elements of sets: their outcomes may depend on the whole set.

    Rows of one set share its content key, so that no split divides a set.

    Args:
        sets: that they belong to.
        positions: ``(R,)`` of the elements among those of all sets.

    Example:
        >>> import numpy as np
        >>> from ansatz.data import Sets
        >>> rows = Sets.of([np.zeros((3, 2)), np.ones((5, 2))]).elements()
        >>> len(rows[np.array([0, 7])].sets)
        2
    """

    spec = InputSpec.set(1, rows="elements")
    has_features = True

    def __init__(self, sets: Sets, positions: NDArray[np.int64]) -> None:
        self.sets, self.positions = sets, positions

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, index: Any) -> "Elements":
        index = index if isinstance(index, slice) else np.asarray(index)
        return Elements(self.sets, self.positions[index])

    @property
    def owners(self) -> NDArray[np.int64]:
        """The number of each row's set."""
        return np.searchsorted(self.sets.offsets, self.positions, side="right") - 1

    def packed(self) -> tuple[Sets, NDArray[np.int64]]:
        """The sets that rows belong to, and where the rows stand in them."""
        kept, inverse = np.unique(self.owners, return_inverse=True)
        if len(kept) == len(self.sets):
            return self.sets, self.positions
        inside = self.positions - self.sets.offsets[self.owners]
        sets = self.sets[kept]
        return sets, sets.offsets[inverse] + inside

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """The hash of each row's set."""
        sets, positions = self.packed()
        keys = sets.content_keys(seed)
        owners = np.searchsorted(sets.offsets, positions, side="right") - 1
        return mix(keys[owners])

    def describe(self) -> dict[str, Any]:
        """The columns of an element and of its set."""
        return self.sets.describe()
