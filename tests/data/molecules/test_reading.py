import numpy as np
import pytest

from ansatz.data import Molecules
from ansatz.data.molecules import read_molecules
from ansatz.data.molecules.reading import holds_forces, recognizes_molecules
from ansatz.errors import DataError


def frames(boxes=True):
    draw = np.random.default_rng(1)
    box = np.eye(3) * 4 + draw.normal(size=(3, 3)) * 0.1 if boxes else None
    return Molecules(
        draw.normal(size=(4, 3, 3)),
        ["O", "H", "H"],
        box,
        energy=draw.normal(size=4),
        forces=draw.normal(size=(12, 3)),
    )


def assert_same(found, expected, atol=0.0):
    for name in ("positions", "species", "box", "periodic", "offsets", "energy", "forces"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("boxes", [True, False])
def test_extxyz_as_ase_writes_it(tmp_path, boxes):
    ase_io = pytest.importorskip("ase.io")
    path = tmp_path / "run.extxyz"
    ase_io.write(path, frames(boxes).to_ase(), format="extxyz")
    found = read_molecules(path)
    assert_same(found.molecules, frames(boxes), atol=1e-7)  # ASE writes eight digits
    assert_same(found.molecules, Molecules.from_ase(ase_io.read(path, ":")))
    np.testing.assert_array_equal(found.columns["energy"], found.molecules.energy)


def test_plain_xyz_and_numbers_beside_it(tmp_path):
    path = tmp_path / "a.xyz"
    path.write_text("2\nenergy=-1.5 gap=0.2 name=x\nO 0 0 0\nH 0 0 1\n1\ngap=3\nHe 1 2 3\n\n")
    found = read_molecules(path)
    assert found.molecules.species.tolist() == [8, 1, 2] and found.molecules.forces is None
    np.testing.assert_array_equal(found.columns["gap"], [0.2, 3.0])
    np.testing.assert_array_equal(found.columns["energy"], [-1.5, np.nan])
    assert found.columns["name"].tolist() == ["x", None]


def test_a_named_property_holds_forces(tmp_path):
    path = tmp_path / "a.xyz"
    path.write_text("1\nProperties=species:S:1:pos:R:3:dft:R:3\nH 0 0 0 1 2 3\n")
    assert read_molecules(path).molecules.forces is None
    assert read_molecules(path, {"forces": "dft"}).molecules.forces.tolist() == [[1, 2, 3]]
    with pytest.raises(DataError, match="no frame has a property 'qm'"):
        read_molecules(path, {"forces": "qm"})


def test_npz(tmp_path):
    path, m = tmp_path / "a.npz", frames()
    np.savez(
        path, coord=m.positions.reshape(4, 9), species=m.species[:3], box=m.box.reshape(4, 9),
        energy=m.energy, force=m.forces.reshape(4, 9), gap=np.arange(4.0),
    )  # fmt: skip
    found = read_molecules(path)
    assert_same(found.molecules, m)
    assert sorted(found.columns) == ["energy", "gap"]
    assert recognizes_molecules(path) and holds_forces(path, {})
    assert not holds_forces(path, {"target": ["gap"]})


def test_ragged_npz(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, coord=np.arange(9.0).reshape(3, 3), species=["O", "H", "He"], offsets=[0, 2, 3])
    assert read_molecules(path).molecules.sizes.tolist() == [2, 1]


def system(folder, m, name="set.000"):
    part = folder / name
    part.mkdir(parents=True)
    (folder / "type.raw").write_text("1 0 0")
    (folder / "type_map.raw").write_text("H\nO\n")
    np.save(part / "coord.npy", m.positions.reshape(len(m), -1))
    np.save(part / "box.npy", m.box.reshape(len(m), 9))
    np.save(part / "energy.npy", m.energy)
    np.save(part / "force.npy", m.forces.reshape(len(m), -1))


def test_folders_of_deepmd(tmp_path):
    m = frames()
    system(tmp_path / "a", m)
    system(tmp_path / "b", m[:2])
    assert_same(read_molecules(tmp_path / "a").molecules, m)
    both = read_molecules(tmp_path).molecules
    assert len(both) == 6 and np.unique(both.runs).tolist() == [0, 1]
    assert recognizes_molecules(tmp_path) and not recognizes_molecules(tmp_path / "a/set.000")


@pytest.mark.parametrize(
    "text, message",
    [
        ("x\n", "frame 1, line 1: expected a number of atoms, got 'x'"),
        ("2\n\nH 0 0 0\n", "frame 1: 2 atoms announced, 1 found"),
        ("1\n\nH 0 zero 0\n", "frame 1, atom 1: expected numbers, got '0 zero 0'"),
        ("1\n\nH 0 0\n", "frame 1, atom 1: expected 4 columns, got 3"),
        ("1\n\nQ 0 0 0\n", "frame 1, atom 1: 'Q' is not a chemical element"),
        ("1\n\nH 0 0 nan\n", "frame 1, atom 1: its position"),
        ('1\nLattice="1 2"\nH 0 0 0\n', "Lattice has 9 numbers, got 2"),
        ("", "the file has no frames"),
    ],
)
def test_bad_files_are_named(tmp_path, text, message):
    path = tmp_path / "bad.xyz"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        read_molecules(path)
    assert str(caught.value).startswith(str(path))


def test_bad_arrays_are_named(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, coord=np.zeros((2, 3, 3)), species=[8, 1, 1], force=np.zeros((2, 2, 3)))
    with pytest.raises(DataError, match=r"'force' has shape \(2, 2, 3\), the positions have"):
        read_molecules(path)
    np.savez(path, coord=np.array([None]), species=[1])
    with pytest.raises(DataError, match="it holds Python objects"):
        read_molecules(path)
    np.savez(path, coord=np.zeros((2, 3, 3)))
    with pytest.raises(DataError, match="need the arrays coord and species, got coord"):
        read_molecules(path)
    system(tmp_path / "s", frames())
    np.save(tmp_path / "s/set.000/force.npy", np.zeros((4, 6)))
    with pytest.raises(DataError, match=r"force.npy: expected shape \(4, 9\), got \(4, 6\)"):
        read_molecules(tmp_path / "s")
