"""Pairs of atoms closer than a cut-off, in any periodic box."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.spatial import cKDTree

from ansatz.errors import DataError

Array = NDArray[np.float64]
SLACK = 1e-9  # of the cut-off: how much wider the tree looks before distances are compared


class Pairs(NamedTuple):
    r"""Each atom with each of its neighbours; both directions of a pair are listed.

    The vector from atom i to its neighbour j is :math:`x_j + S h - x_i`, with the whole numbers S
    and the box h, whose rows are its vectors.

    Args:
        center: ``(E,)`` int64, the atoms i; never falling.
        neighbour: ``(E,)`` int64, the atoms j.
        shift: ``(E, 3)`` int64, the boxes S by which the neighbour is moved; 0 without a box.
        vector: ``(E, 3)`` float64.

    Example:
        >>> from ansatz.data.molecules import neighbours
        >>> neighbours([[0.0, 0, 0], [0, 0, 1.0]], 1.5).vector.tolist()
        [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]
    """

    center: NDArray[np.int64]
    neighbour: NDArray[np.int64]
    shift: NDArray[np.int64]
    vector: Array


def neighbours(
    positions: ArrayLike,
    cutoff: float,
    box: ArrayLike | None = None,
    periodic: ArrayLike = True,
) -> Pairs:
    r"""All pairs of atoms with :math:`|x_j + S h - x_i| < r_c`.

    The images of atoms that can lie within the cut-off of the box are added as ghosts: along
    axis k up to :math:`\lceil r_c / d_k \rceil` boxes, with the distance :math:`d_k` of its two
    faces. So the box may have any angles and may be smaller than the cut-off; an atom is then a
    neighbour of its own images. No list is ever cut short.

    Args:
        positions: ``(N, 3)``, inside the box or not.
        cutoff: the largest distance :math:`r_c`, in the unit of the positions.
        box: ``(3, 3)``, its vectors as rows; None for none.
        periodic: whether the box repeats, or for each of its axes.

    Example:
        >>> import numpy as np
        >>> from ansatz.data.molecules import neighbours
        >>> found = neighbours([[0.0, 0, 0], [0.9, 0, 0]], 0.5, np.eye(3))
        >>> found.center, found.neighbour, found.shift[:, 0]
        (array([0, 1]), array([1, 0]), array([-1,  1]))
        >>> found.vector.round(3)[:, 0]
        array([-0.1,  0.1])

    Raises:
        DataError: positions are not finite, atoms coincide, or the box is singular.
    """
    x = np.ascontiguousarray(positions, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != 3:
        raise DataError(f"positions must have shape (N, 3), got {x.shape}.")
    if not np.isfinite(cutoff) or cutoff <= 0:
        raise DataError(f"the cut-off must be a positive distance, got {cutoff}.")
    bad = np.flatnonzero(~np.isfinite(x).all(1))
    if len(bad):
        raise DataError(f"atom {bad[0] + 1}: its position {x[bad[0]].tolist()} is not finite.")
    repeats = np.broadcast_to(np.asarray(periodic, dtype=bool), 3)
    if box is None or not repeats.any() or not len(x):
        ghosts = _Ghosts(x, np.arange(len(x)), np.zeros((len(x), 3), dtype=np.int64))
        found = _pairs(x, ghosts, cutoff)
    else:
        h = checked_box(box)
        wrapped = np.where(repeats, np.floor(x @ np.linalg.inv(h)), 0).astype(np.int64)  # (N, 3)
        inside = x - wrapped @ h
        found = _pairs(inside, _ghosts(inside, h, repeats, cutoff), cutoff)
        if wrapped.any():
            shift = found.shift + wrapped[found.center] - wrapped[found.neighbour]
            found = found._replace(shift=shift)
    distance = np.einsum("ek,ek->e", found.vector, found.vector)
    near = distance < cutoff**2
    if not near.all():
        found = Pairs(*(each[near] for each in found))
        distance = distance[near]
    if len(distance) and distance.min() == 0:
        row = int(distance.argmin())
        i, j = sorted((int(found.center[row]), int(found.neighbour[row])))
        raise DataError(f"atoms {i + 1} and {j + 1} are at the same place: {x[i].tolist()}.")
    return found


def checked_box(box: ArrayLike) -> Array:
    """The vectors of a box as ``(3, 3)`` float64; three lengths are those of a right-angled one."""
    h = np.asarray(box, dtype=np.float64)
    if h.shape == (3,):
        h = np.diag(h)
    if h.shape == (9,):
        h = h.reshape(3, 3)
    if h.shape != (3, 3):
        raise DataError(f"a box has three vectors, shape (3, 3), got {h.shape}.")
    if not np.isfinite(h).all():
        raise DataError(f"the box {h.tolist()} is not finite.")
    volume, lengths = abs(float(np.linalg.det(h))), np.linalg.norm(h, axis=1)
    if not lengths.all() or volume <= 1e-9 * float(lengths.prod()):
        raise DataError(f"the box {h.tolist()} is singular: its volume is {volume:.3g}.")
    return h


class _Ghosts(NamedTuple):
    """Atoms and those of their images that matter; the atoms themselves come first."""

    points: Array
    atom: NDArray[np.int64]
    shift: NDArray[np.int64]


def _ghosts(inside: Array, h: Array, repeats: NDArray[np.bool_], cutoff: float) -> _Ghosts:
    """Images whose fractional coordinates lie within the cut-off of the atoms' own."""
    inverse = np.linalg.inv(h)
    share = cutoff * (1 + SLACK) * np.linalg.norm(inverse, axis=0) + SLACK  # of each axis
    place, atom = inside @ inverse, np.arange(len(inside))
    shift = np.zeros((len(inside), 3), dtype=np.int64)
    for axis in np.flatnonzero(repeats):
        own = place[atom, axis]
        low, high = float(own.min()) - share[axis], float(own.max()) + share[axis]
        most = int(np.ceil(high - low)) + 1
        parts, shifts = [np.arange(len(atom))], [np.zeros(len(atom), dtype=np.int64)]
        for step in (s for k in range(1, most + 1) for s in (-k, k)):
            kept = np.flatnonzero((own + step >= low) & (own + step <= high))
            parts.append(kept)
            shifts.append(np.full(len(kept), step))
        chosen = np.concatenate(parts)
        atom, shift = atom[chosen], shift[chosen]
        shift[:, axis] = np.concatenate(shifts)
    return _Ghosts(inside[atom] + shift @ h, atom, shift)


def _pairs(inside: Array, ghosts: _Ghosts, cutoff: float) -> Pairs:
    """Pairs of an atom and an atom or ghost, sorted by the first."""
    count = len(inside)
    # Atoms that are near each other in space also are in memory: half of the time.
    order = cKDTree(ghosts.points, leafsize=32, balanced_tree=False).indices
    tree = cKDTree(ghosts.points[order], leafsize=12, balanced_tree=False, compact_nodes=False)
    both = order[tree.query_pairs(cutoff * (1 + SLACK), output_type="ndarray")]  # (M, 2)
    is_atom = both < count  # else a ghost
    first = np.concatenate([both[is_atom[:, 0], 0], both[is_atom[:, 1], 1]])
    second = np.concatenate([both[is_atom[:, 0], 1], both[is_atom[:, 1], 0]])
    rows = sparse.csr_array((second, (first, np.arange(len(first)))), shape=(count, len(first)))
    center = np.repeat(np.arange(count), np.diff(rows.indptr))
    vector = ghosts.points.take(rows.data, 0)
    vector -= inside.take(center, 0)
    return Pairs(center, ghosts.atom.take(rows.data), ghosts.shift.take(rows.data, 0), vector)
