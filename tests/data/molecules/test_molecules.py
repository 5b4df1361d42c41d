import numpy as np
import pytest

from ansatz.data import Molecules
from ansatz.errors import DataError


def two_kinds():
    draw = np.random.default_rng(0)
    return Molecules(
        draw.normal(size=(9, 3)),
        ["O", "H", "H", "He", "He", "He", "O", "H", "H"],
        np.stack([np.eye(3) * 5, np.zeros((3, 3)), np.eye(3) * 6]),
        offsets=[0, 3, 6, 9],
        energy=[1.0, 2.0, 3.0],
        forces=draw.normal(size=(9, 3)),
    )


def test_rows_are_taken_with_their_atoms():
    molecules = two_kinds()
    part = molecules[np.array([2, 0])]
    assert part.species.tolist() == [8, 1, 1, 8, 1, 1]
    order = [6, 7, 8, 0, 1, 2]
    np.testing.assert_array_equal(part.positions, molecules.positions[order])
    np.testing.assert_array_equal(part.forces, molecules.forces[order])
    assert part.energy.tolist() == [3.0, 1.0] and part.box[:, 0, 0].tolist() == [6.0, 5.0]
    assert molecules.periodic.tolist() == [[True] * 3, [False] * 3, [True] * 3]


def test_keys_forget_the_order_of_atoms_and_nothing_else():
    molecules = two_kinds()
    order = [0, 2, 1, 5, 3, 4, 6, 7, 8]
    swapped = Molecules(
        molecules.positions[order], molecules.species[order], molecules.box,
        offsets=molecules.offsets, periodic=molecules.periodic,
    )  # fmt: skip
    np.testing.assert_array_equal(swapped.content_keys(), molecules.content_keys())
    moved = molecules[:]
    moved.positions[8, 0] += 1e-9
    assert (moved.content_keys() == molecules.content_keys()).tolist() == [True, True, False]
    others = molecules[:]
    others.species[3:6] = 8
    assert (others.content_keys() == molecules.content_keys()).tolist() == [True, False, True]


def test_frames_of_one_run_are_cut_into_blocks_of_consecutive_frames():
    x = np.random.default_rng(0).normal(size=(50, 2, 3))
    molecules = Molecules.concatenate([Molecules(x, ["H", "H"]), Molecules(x[:5], ["O", "H"])])
    blocks = molecules.blocks
    assert (np.diff(blocks) >= 0).all() and blocks.max() + 1 == 20 + 5
    assert (
        np.bincount(blocks)[:20].tolist().count(2) + np.bincount(blocks)[:20].tolist().count(3)
        == 20
    )


def test_ase_and_back():
    pytest.importorskip("ase")
    molecules = two_kinds()
    back = Molecules.from_ase(molecules.to_ase())
    for name in ("positions", "species", "box", "periodic", "offsets", "energy", "forces"):
        np.testing.assert_array_equal(getattr(back, name), getattr(molecules, name), err_msg=name)


def test_what_some_frames_lack_is_nan():
    bare = Molecules(np.zeros((1, 3)), ["He"])
    both = Molecules.concatenate([two_kinds(), bare])
    assert np.isnan(both.energy[3]) and np.isnan(both.forces[9:]).all()
    assert np.unique(both.runs).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        (([[0, 0, np.inf]], ["H"]), {}, "frame 1, atom 1: its position"),
        (([[0, 0, 0], [1, 0, 0], [0, 0, 0]], ["H"] * 3), {}, "frame 1: atoms 1 and 3 are at the"),
        (([[0, 0, 0]], ["Xx"]), {}, "atom 1: 'Xx' is not a chemical element"),
        (([[0, 0, 0]], [0]), {}, "0 is not an atomic number"),
        (([[0, 0, 0]], ["H", "H"]), {}, "1 atoms need 1 species"),
        (([[0, 0, 0]], ["H"], np.ones((3, 3))), {}, "frame 1: the box .* is singular"),
        (([[0, 0, 0]], ["H"]), {"forces": [[1, 2]]}, r"shape of the positions, \(1, 3\)"),
        (([[0, 0, 0]], ["H"]), {"energy": [1, 2]}, "1 frames need 1 energies, got 2"),
        (([[0, 0, 0]], ["H"]), {"offsets": [0, 2]}, "rise from 0 to the number of atoms"),
    ],
)
def test_bad_input_is_named(arguments, options, message):
    with pytest.raises(DataError, match=message):
        Molecules(*arguments, **options)
