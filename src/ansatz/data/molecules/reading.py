"""Molecules from files: .xyz, .extxyz, .npz, and folders of DeePMD."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.data.molecules.elements import atomic_numbers
from ansatz.data.molecules.molecules import Molecules
from ansatz.data.molecules.xyz import ENERGY, FORCES, read_xyz
from ansatz.errors import DataError

ENDS = (".xyz", ".extxyz")
COORDINATES = ("coord", "coordinates", "positions", "R")
SPECIES = ("species", "numbers", "type", "z", "Z")
BOXES = ("box", "cell", "lattice")


class MoleculeFile(NamedTuple):
    """Frames, and what is known of each beside its atoms."""

    origin: str
    molecules: Molecules
    columns: dict[str, NDArray[Any]]  # energies and other numbers by name


def read_molecules(data: Any, reader: Mapping[str, Any] | None = None) -> MoleculeFile:
    """Reads frames of atoms; ``reader["forces"]`` names the property that holds forces.

    Args:
        data: a path of ``.xyz``, ``.extxyz`` or ``.npz``, a folder of DeePMD or of such folders,
            :class:`Molecules`, or ASE's ``Atoms``, one or a list.
        reader: options.

    Example:
        >>> from ansatz.data import Molecules
        >>> from ansatz.data.molecules import read_molecules
        >>> read_molecules(Molecules([[0, 0, 0]], ["He"], energy=[-2.9])).columns
        {'energy': array([-2.9])}
    """
    forces = (reader or {}).get("forces")
    if isinstance(data, MoleculeFile):
        return data
    if not isinstance(data, str | Path):
        return _held("the molecules", as_molecules(data))
    path = Path(data)
    if path.is_dir():
        return _held(str(path), _read_folders(path))
    if not path.exists():
        raise DataError(f"{path}: no such file or folder.")
    if path.suffix.lower() == ".npz":
        molecules, columns = _read_npz(path, forces)
        return MoleculeFile(str(path), molecules, columns)
    found = read_xyz(path, forces)
    return MoleculeFile(str(path), found.molecules, found.columns)


def _held(origin: str, molecules: Molecules) -> MoleculeFile:
    columns = {} if molecules.energy is None else {"energy": molecules.energy}
    return MoleculeFile(origin, molecules, columns)


def as_molecules(X: Any) -> Molecules:
    """Molecules from what a user has: themselves, or ASE's frames."""
    if isinstance(X, Molecules):
        return X
    if isinstance(X, MoleculeFile):
        return X.molecules
    if isinstance(X, str | Path):
        return read_molecules(X).molecules
    if is_ase(X):
        return Molecules.from_ase(X)
    raise DataError(
        f"molecules are given as Molecules, ASE's Atoms or a path, got {type(X).__name__}."
    )


def is_ase(X: Any) -> bool:
    """Tests for ASE's frames without importing ASE."""
    first = X[0] if isinstance(X, list | tuple) and len(X) else X
    return hasattr(first, "get_positions") and hasattr(first, "get_atomic_numbers")


def _one_of(names: tuple[str, ...], known: Any) -> str | None:
    return next((name for name in names if name in known), None)


def _read_npz(path: Path, forces: str | None) -> tuple[Molecules, dict[str, NDArray[Any]]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        reason = "it holds Python objects" if "allow_pickle" in str(error) else str(error)
        raise DataError(f"{path}: {reason}.") from None
    coordinates, kinds = _one_of(COORDINATES, arrays), _one_of(SPECIES, arrays)
    if coordinates is None or kinds is None:
        raise DataError(
            f"{path}: molecules need the arrays coord and species, got {', '.join(arrays)}."
        )
    x, species = arrays[coordinates], arrays[kinds]
    if x.ndim == 2 and "offsets" not in arrays and x.shape[1] != 3:
        x = x.reshape(len(x), -1, 3)  # (B, 3 A), as DeePMD has them
    box, energy = _one_of(BOXES, arrays), _one_of(ENERGY, arrays)
    named = _one_of(FORCES, arrays) if forces is None else forces
    if forces is not None and forces not in arrays:
        raise DataError(f"{path}: no array '{forces}' with forces. Arrays: {', '.join(arrays)}.")
    given = None if named is None else arrays[named]
    if given is not None and given.size != x.size:
        raise DataError(
            f"{path}: '{named}' has shape {given.shape}, the positions have "
            f"{arrays[coordinates].shape}."
        )
    try:
        molecules = Molecules(
            x,
            species,
            None if box is None else arrays[box],
            offsets=arrays.get("offsets"),
            energy=None if energy is None else arrays[energy],
            forces=None if given is None else given.reshape(-1, 3),
        )
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    used = {coordinates, kinds, box, named, "offsets"}
    rest = {
        name: array.reshape(-1) if name == energy else array
        for name, array in arrays.items()
        if name not in used and array.size == len(molecules)
    }
    return molecules, {name: array.reshape(-1) for name, array in rest.items()}


def is_deepmd(path: Path) -> bool:
    """Tests whether a folder is a system of DeePMD."""
    return (path / "type.raw").is_file() and any(path.glob("set.*/coord.npy"))


def _read_folders(path: Path) -> Molecules:
    """A system of DeePMD, or all those below a folder; each of their sets is a run."""
    found = sorted(p.parent for p in path.rglob("type.raw") if is_deepmd(p.parent))
    if not found:
        raise DataError(
            f"{path}: no system of DeePMD, a folder with type.raw and set.000/coord.npy."
        )
    return Molecules.concatenate(part for folder in found for part in _read_system(folder))


def _read_system(folder: Path) -> list[Molecules]:
    codes = np.array((folder / "type.raw").read_text(encoding="utf-8").split(), dtype=np.int64)
    names = folder / "type_map.raw"
    if not names.is_file():
        raise DataError(
            f"{folder}: type_map.raw is missing, which names the elements of its types."
        )
    kinds = np.array(names.read_text(encoding="utf-8").split(), dtype=str)
    if len(codes) and (codes.min() < 0 or codes.max() >= len(kinds)):
        raise DataError(f"{folder}: type.raw has type {codes.max()}, type_map.raw {len(kinds)}.")
    species, parts = atomic_numbers(kinds[codes], str(folder)), []
    for part in sorted(folder.glob("set.*")):
        x = _array(part, "coord", 3 * len(codes))
        assert x is not None
        box = None if (folder / "nopbc").exists() else _array(part, "box", 9, len(x))
        energy, force = _array(part, "energy", 1, len(x)), _array(part, "force", x.shape[1], len(x))
        try:
            parts.append(
                Molecules(
                    x.reshape(len(x), -1, 3),
                    species,
                    box,
                    energy=energy,
                    forces=None if force is None else force.reshape(-1, 3),
                    runs=np.zeros(len(x), dtype=np.int64),
                )
            )
        except DataError as error:
            raise DataError(f"{part}, {error}") from None
    return parts


def _array(part: Path, name: str, columns: int, frames: int | None = None) -> Any:
    """One array of a set, ``(B, columns)`` float64; None where it is not there."""
    path = part / f"{name}.npy"
    if not path.is_file() and frames is not None:
        return None
    try:
        found = np.load(path, allow_pickle=False).astype(np.float64)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {error}") from None
    found = found.reshape(len(found), -1)
    if found.shape[1] != columns or (frames is not None and len(found) != frames):
        expected = f"({'B' if frames is None else frames}, {columns})"
        raise DataError(f"{path}: expected shape {expected}, got {found.shape}.")
    return found


def recognizes_molecules(data: Any) -> bool:
    """Tests whether data are molecules: a quick look at names, never at contents."""
    if isinstance(data, Molecules | MoleculeFile) or is_ase(data):
        return True
    if not isinstance(data, str | Path):
        return False
    path = Path(data)
    if path.is_dir():
        near = [path, *(p for p in path.iterdir() if p.is_dir())]
        return any(is_deepmd(each) for each in near)
    if path.suffix.lower() == ".npz" and path.is_file():
        try:
            with np.load(path, allow_pickle=False) as file:
                names = file.files
        except (OSError, ValueError):
            return False
        return _one_of(COORDINATES, names) is not None and _one_of(SPECIES, names) is not None
    return path.suffix.lower() in ENDS and path.is_file()


def holds_forces(data: Any, given: Mapping[str, Any]) -> bool:
    """Tests whether molecules come with energies and forces and nothing else was asked for."""
    asked = any(given.get(name) is not None for name in ("target", "likelihood", "lower"))
    if asked or not recognizes_molecules(data):
        return False
    molecules = read_molecules(data).molecules
    return molecules.energy is not None and molecules.forces is not None
