"""The slices of volumes through what their predictions rest on most."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def strongest_slices(maps: Mapping[str, NDArray[Any]]) -> NDArray[np.intp]:
    """For each volume the slice along its first axis with the most attribution, all methods alike.

    The magnitudes of a method add up to one over a volume; of their sums in each slice the largest
    over all methods together is taken. Without any attribution it is the middle slice.

    Args:
        maps: for each method a number per cell.

    Shapes:
        - maps: ``(N, D, H, W)`` each.
        - returns: ``(N,)``, counted from 0.

    Example:
        >>> import numpy as np
        >>> from ansatz.report.volume_saliency import strongest_slices
        >>> heat = np.zeros((2, 5, 4, 4))
        >>> heat[0, 3, 1, 1] = -1.0
        >>> strongest_slices({"occlusion": heat})
        array([3, 2])
    """
    each = [np.abs(np.nan_to_num(heat)).sum((2, 3)) for heat in maps.values()]  # (N, D)
    totals = [part.sum(1, keepdims=True) for part in each]
    share = sum(
        part / np.where(total > 0, total, 1) for part, total in zip(each, totals, strict=True)
    )
    found = np.asarray(share)
    middle = np.full(len(found), found.shape[1] // 2)
    return np.where(found.max(1) > 0, found.argmax(1), middle).astype(np.intp)


def sliced(cells: NDArray[Any], at: NDArray[np.intp]) -> NDArray[Any]:
    """One slice of each volume along its first axis.

    Shapes:
        - cells: ``(N, D, ...)``; at: ``(N,)``; returns ``(N, ...)``.

    Example:
        >>> import numpy as np
        >>> from ansatz.report.volume_saliency import sliced
        >>> sliced(np.arange(12).reshape(2, 3, 2), np.array([0, 2])).tolist()
        [[0, 1], [10, 11]]
    """
    found: NDArray[Any] = cells[np.arange(len(at)), at]
    return found
