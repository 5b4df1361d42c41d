"""Examples that are point clouds: coordinates, and features of the points."""

from typing import Any, Self

import numpy as np

from ansatz.data.sets.sets import Sets
from ansatz.errors import DataError
from ansatz.spec import InputSpec


class Clouds(Sets):
    """N clouds of points ``(x, y, z, features...)``, one behind the other.

    Every cloud has a point, and every number is finite.

    Args:
        values: ``(E, 3 + C)`` numbers of the points.
        offsets: ``(N + 1,)``; cloud i is ``values[offsets[i]:offsets[i + 1]]``.
        beside: accepted as in :class:`Sets`; clouds have no columns of their own.
        names: of the clouds, their files; None for their numbers.

    Example:
        >>> import numpy as np
        >>> from ansatz.data import Clouds
        >>> Clouds.of(np.zeros((4, 100, 3)) + np.arange(3.0)).lengths.tolist()
        [100, 100, 100, 100]
    """

    unit = "cloud"
    spec = InputSpec("points", 3, rows="sets")

    def checked(self, origin: str = "") -> Self:
        """The clouds, if each has points and all numbers are finite."""
        where = f"{origin}, " if origin else ""
        if self.beside is not None:
            raise DataError(f"{where}clouds have no columns of their own.")
        if len(self) and self.values.shape[1] < 3:
            raise DataError(
                f"{where}{self.name(0)}: points need three coordinates, got "
                f"{self.values.shape[1]} numbers."
            )
        empty = np.flatnonzero(self.lengths == 0)
        if len(empty):
            raise DataError(f"{where}{self.name(int(empty[0]))} has no points.")
        bad = ~np.isfinite(self.values).all(1)
        if bad.any():
            place = int(np.flatnonzero(bad)[0])
            raise DataError(f"{where}{self.place(place)}: a coordinate or feature is not finite.")
        return self

    def place(self, element: int) -> str:
        """What messages call a point."""
        return super().place(element).replace(", element ", ", point ")

    def describe(self) -> dict[str, Any]:
        """The numbers of a point."""
        return {"names": None, "count": int(self.values.shape[1]), "columns": None}
