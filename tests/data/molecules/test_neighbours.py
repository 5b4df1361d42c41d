import itertools

import numpy as np
import pytest

from ansatz.data.molecules import neighbours
from ansatz.errors import DataError


def brute_force(x, cutoff, box=None, periodic=(True, True, True)):
    """Every atom with every image of every atom, as a set of (i, j, S)."""
    x = np.asarray(x, dtype=float)
    if box is None:
        box, periodic = np.eye(3), (False,) * 3
    heights = 1 / np.linalg.norm(np.linalg.inv(box), axis=0)
    place = x @ np.linalg.inv(box)
    wide = np.ceil(cutoff / heights + np.ptp(place, axis=0)).astype(int) + 1
    steps = [range(-n, n + 1) if p else (0,) for n, p in zip(wide, periodic, strict=True)]
    found = set()
    for shift in itertools.product(*steps):
        moved = x + np.array(shift) @ box
        distance = np.linalg.norm(moved[None] - x[:, None], axis=2)
        near = distance < cutoff
        if shift == (0, 0, 0):
            np.fill_diagonal(near, False)
        found |= {(int(i), int(j), shift) for i, j in zip(*np.nonzero(near), strict=True)}
    return found


def as_set(pairs):
    columns = pairs.center.tolist(), pairs.neighbour.tolist(), map(tuple, pairs.shift.tolist())
    listed = list(zip(*columns, strict=True))
    assert len(set(listed)) == len(listed), "a pair is listed twice"
    return set(listed)


def triclinic(draw):
    while True:
        box = draw.normal(size=(3, 3)) * 2 + np.diag(draw.uniform(1, 4, 3))
        heights = 1 / np.linalg.norm(np.linalg.inv(box), axis=0)
        if heights.min() > 0.8:
            return box


@pytest.mark.parametrize("seed", range(12))
def test_pairs_are_those_of_brute_force_in_any_box(seed):
    draw = np.random.default_rng(seed)
    box = triclinic(draw)
    x = draw.uniform(-1.5, 2.5, (int(draw.integers(1, 9)), 3)) @ box  # outside the box too
    periodic = draw.integers(0, 2, 3).astype(bool) if seed % 3 == 0 else np.ones(3, bool)
    cutoff = float(draw.uniform(0.5, 4.0))  # up to several boxes
    pairs = neighbours(x, cutoff, box, periodic)
    assert as_set(pairs) == brute_force(x, cutoff, box, periodic)
    assert (np.diff(pairs.center) >= 0).all()
    vector = x[pairs.neighbour] + pairs.shift @ box - x[pairs.center]
    np.testing.assert_allclose(pairs.vector, vector, atol=1e-12)


def test_pairs_without_a_box():
    x = np.random.default_rng(0).normal(size=(40, 3))
    assert as_set(neighbours(x, 1.1)) == brute_force(x, 1.1)


def test_the_list_of_a_dense_crowd_is_not_cut_short():
    x = np.random.default_rng(0).normal(size=(200, 3)) * 0.01
    assert len(neighbours(x, 5.0).center) == 200 * 199


def test_a_single_atom_sees_its_own_images():
    pairs = neighbours(np.zeros((1, 3)), 1.01, np.eye(3))
    assert sorted(map(tuple, pairs.shift.tolist())) == [
        (-1, 0, 0), (0, -1, 0), (0, 0, -1), (0, 0, 1), (0, 1, 0), (1, 0, 0)
    ]  # fmt: skip


def test_no_atoms_and_lone_atoms_have_no_pairs():
    assert len(neighbours(np.zeros((0, 3)), 1.0, np.eye(3)).center) == 0
    assert len(neighbours([[0.0, 0, 0], [9.0, 0, 0]], 1.0).center) == 0


def test_agrees_with_ase():
    pytest.importorskip("ase")
    from ase import Atoms
    from ase.neighborlist import neighbor_list

    draw = np.random.default_rng(5)
    box = triclinic(draw)
    x = draw.uniform(size=(30, 3)) @ box
    i, j, S = neighbor_list("ijS", Atoms("H30", positions=x, cell=box, pbc=True), 2.0)
    theirs = set(zip(i.tolist(), j.tolist(), map(tuple, S.tolist()), strict=True))
    assert as_set(neighbours(x, 2.0, box)) == theirs


@pytest.mark.parametrize(
    "x, box, message",
    [
        ([[0, 0, 0], [1, 2, np.nan]], None, r"atom 2: its position \[1.0, 2.0, nan\] is not"),
        ([[0, 0, 0], [1, 2, 3], [0, 0, 0]], None, "atoms 1 and 3 are at the same place"),
        ([[0, 0, 0], [1, 0, 0]], np.eye(3), "atoms 1 and 2 are at the same place"),
        ([[0, 0, 0]], np.ones((3, 3)), "is singular: its volume is"),
        ([[0, 0, 0]], np.eye(4), r"three vectors, shape \(3, 3\), got \(4, 4\)"),
        ([0, 0, 0], None, r"positions must have shape \(N, 3\)"),
    ],
)
def test_bad_input_is_named(x, box, message):
    with pytest.raises(DataError, match=message):
        neighbours(x, 1.5, box)
