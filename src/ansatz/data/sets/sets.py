"""Examples that are sets, and elements of sets, whose order carries no meaning."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ansatz.data.frames import as_frame, is_frame
from ansatz.data.keys import cell_keys, mix
from ansatz.errors import DataError
from ansatz.seeds import derive
from ansatz.spec import InputSpec


class Sets:
    """N sets of elements, one behind the other.

    Args:
        values: ``(E, D)`` numbers of the elements, nan where missing, or a table of them.
        offsets: ``(N + 1,)``; set i is ``values[offsets[i]:offsets[i + 1]]``.
        beside: columns of the sets themselves, a table of N rows; None for none.
        names: of the sets, for messages and predictions; None for their numbers.

    Example:
        >>> import numpy as np
        >>> from ansatz.data import Sets
        >>> sets = Sets.of([np.zeros((3, 2)), np.ones((5, 2))])
        >>> len(sets), sets.lengths.tolist()
        (2, [3, 5])
    """

    unit = "set"
    spec = InputSpec.set(1)  # how many features a network sees depends on the levels
    has_features = True

    def __init__(
        self, values: Any, offsets: Any, beside: Any = None, names: NDArray[Any] | None = None
    ) -> None:
        self.values = values
        self.offsets: NDArray[np.int64] = np.asarray(offsets, dtype=np.int64)
        self.beside, self.names = beside, names

    @classmethod
    def of(cls, X: Any, beside: Any = None) -> Self:
        """Sets from a list of arrays ``(n_i, D)``, or an array ``(N, n, D)``.

        Args:
            X: the sets.
            beside: columns of the sets themselves, a table of N rows.
        """
        if isinstance(X, cls):
            return X
        parts = [_numbers(each, place, cls.unit) for place, each in enumerate(X, 1)]
        given = next((part for part in parts if len(part)), parts[0] if parts else np.zeros((0, 0)))
        width = given.shape[1]
        for place, part in enumerate(parts, 1):
            if len(part) and part.shape[1] != width:
                raise DataError(
                    f"{cls.unit} {place} has {part.shape[1]} numbers per element, others have "
                    f"{width}."
                )
        parts = [part if len(part) else np.zeros((0, width)) for part in parts]
        values = np.concatenate(parts) if parts else np.zeros((0, width))
        offsets = np.cumsum([0, *map(len, parts)])
        return cls(values, offsets, None if beside is None else as_frame(beside)).checked()

    @classmethod
    def packed(cls, x: Any, offsets: Any, origin: str, beside: Any = None) -> Self:
        """Sets from values and offsets as a file holds them.

        Args:
            x: ``(E, D)``.
            offsets: ``(N + 1,)`` from 0 to E, never falling.
            origin: what errors call the data.
            beside: columns of the sets.
        """
        x, ends = np.asarray(x), np.asarray(offsets)
        x = x[:, None] if x.ndim == 1 else x
        if x.ndim != 2 or x.dtype.kind not in "fiub":
            raise DataError(f"{origin}: x must be numbers (E, D), got {x.dtype} {x.shape}.")
        whole = ends.ndim == 1 and ends.dtype.kind in "iu" and len(ends) > 0
        if not whole or ends[0] != 0 or ends[-1] != len(x) or (np.diff(ends.astype(int)) < 0).any():
            raise DataError(
                f"{origin}: offsets must be whole numbers from 0 to {len(x)} that never fall, one "
                "more than there are sets."
            )
        return cls(x.astype(np.float64), ends, beside).checked(origin)

    def checked(self, origin: str = "") -> Self:
        """The sets, if no number is infinite."""
        bad = np.isinf(self.values).any(1) if isinstance(self.values, np.ndarray) else None
        if bad is not None and bad.any():
            place = int(np.flatnonzero(bad)[0])
            raise DataError(f"{origin + ', ' if origin else ''}{self.place(place)}: infinite.")
        return self

    @property
    def is_table(self) -> bool:
        """Whether elements are the rows of a table."""
        return is_frame(self.values)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of elements of each set, ``(N,)``."""
        return np.diff(self.offsets)

    def name(self, index: int) -> str:
        """What messages call a set."""
        return f"{self.unit} {index + 1 if self.names is None else self.names[index]}"

    def place(self, element: int) -> str:
        """What messages call an element."""
        owner = int(np.searchsorted(self.offsets, element, side="right")) - 1
        return f"{self.name(owner)}, element {element - self.offsets[owner] + 1}"

    def elements(self) -> "Elements":
        """The elements as rows, each with its set.

        Example:
            >>> import numpy as np
            >>> from ansatz.data import Sets
            >>> len(Sets.of([np.zeros((3, 2)), np.ones((5, 2))]).elements())
            8
        """
        return Elements(self, np.arange(len(self.values)))

    def take(self, index: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The positions of the elements of some sets, and the offsets of these sets."""
        rows = np.arange(len(self))[index]
        starts, lengths = self.offsets[:-1][rows], self.lengths[rows]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return np.repeat(starts - ends[:-1], lengths) + np.arange(ends[-1]), ends

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Self:
        index = np.asarray(index) if not isinstance(index, slice) else index
        place, ends = self.take(index)
        rows = np.arange(len(self))[index]
        values = self.values.iloc[place] if self.is_table else self.values[place]
        beside = None if self.beside is None else self.beside.iloc[rows]
        names = None if self.names is None else self.names[rows]
        return type(self)(values, ends, beside, names)

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of each set that its order does not change: equal multisets are duplicates."""
        each = mix(cell_keys(self.values, derive(seed, "element")))
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(each, dtype=np.uint64)])
        keys = total[self.offsets[1:]] - total[self.offsets[:-1]]  # modulo 2^64
        keys = mix(keys + self.lengths.astype(np.uint64))
        if self.beside is not None:
            keys = mix(keys + cell_keys(self.beside, derive(seed, "beside")))
        found: NDArray[np.uint64] = keys
        return found

    def describe(self) -> dict[str, Any]:
        """The numbers or columns of an element, and the columns of a set."""
        beside = 0 if self.beside is None else self.beside.shape[1]
        return {"names": None, "count": int(self.values.shape[1] + beside), "columns": None}


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


def _numbers(given: Any, place: int, unit: str) -> NDArray[np.float64]:
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"{unit} {place} must be an array of numbers (elements, D): its elements have "
            "features of unequal length, or are not numbers."
        ) from None
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2:
        raise DataError(f"{unit} {place} must have shape (elements, D), got {found.shape}.")
    return found
