"""Which cells lie side by side."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree


def shared_facets(
    middles: NDArray[np.float64], owners: NDArray[np.intp], radius: float
) -> NDArray[np.intp]:
    """Pairs of cells that have a facet in common.

    The cells of a network meet face to face: whatever unit cuts a cell up to one of its facets
    cuts the cell behind it at the same place, for a network is continuous. So a facet of both has
    the same corners, and the same mean of them.

    Args:
        middles: ``(F, D)`` means of the corners of each cell's facets.
        owners: ``(F,)`` the cell of each.
        radius: how far rounding may move a mean.

    Returns:
        ``(E, 2)`` pairs of cells.
    """
    pairs = owners[cKDTree(middles).query_pairs(radius, output_type="ndarray")]
    return pairs[pairs[:, 0] != pairs[:, 1]]
