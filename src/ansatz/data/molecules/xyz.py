"""Files of atoms as text: .xyz and .extxyz."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.data.molecules.elements import atomic_numbers
from ansatz.data.molecules.molecules import Molecules
from ansatz.errors import DataError

_PAIR = re.compile(r"""([^\s=]+)\s*=\s*("[^"]*"|'[^']*'|\{[^}]*\}|\S+)""")
_PLAIN = [("species", "S", 1), ("pos", "R", 3)]
_TRUE = {"T", "TRUE", "1"}
FORCES = ("forces", "force")
ENERGY = ("energy", "Energy", "total_energy")


class XyzFile(NamedTuple):
    """The frames of a file, and the numbers of each frame by name."""

    molecules: Molecules
    columns: dict[str, NDArray[Any]]


def read_xyz(path: str | Path, forces: str | None = None) -> XyzFile:
    """Reads all frames of a file; ``forces`` names the property that holds forces.

    The second line of a frame may be free text, or pairs like ``energy=-1.5``,
    ``Lattice="9 0 0 0 9 0 0 0 9"``, ``Properties=species:S:1:pos:R:3:forces:R:3``, ``pbc="T T F"``.
    """
    frames: list[tuple[Any, ...]] = []
    infos: list[dict[str, str]] = []
    for where, comment, rows in _frames(Path(path)):
        info = {k: v[1:-1] if v[0] in "\"'{" else v for k, v in _PAIR.findall(comment)}
        properties = _properties(info.pop("Properties", ""), where)
        frames.append(_frame(rows, properties, info, where, forces))
        infos.append(info)
    if not frames:
        raise DataError(f"{path}: the file has no frames.")
    species, positions, boxes, periodic, found = zip(*frames, strict=True)
    has_forces = any(each is not None for each in found)
    if forces is not None and not has_forces:
        raise DataError(f"{path}: no frame has a property '{forces}' with forces.")
    filled = [
        np.full_like(x, np.nan) if f is None else f for x, f in zip(positions, found, strict=True)
    ]
    columns = _columns(infos)
    energy = next((columns[name] for name in ENERGY if name in columns), None)
    numeric = energy is not None and energy.dtype.kind == "f"
    try:
        molecules = Molecules(
            np.concatenate(positions),
            np.concatenate(species),
            np.stack(boxes),
            offsets=np.append(0, np.cumsum([len(x) for x in positions])),
            energy=energy if numeric else None,
            forces=np.concatenate(filled) if has_forces else None,
            periodic=np.stack(periodic),
        )
    except DataError as error:
        raise DataError(f"{path}, {error}") from None
    return XyzFile(molecules, columns)


def _frames(path: Path) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Where each frame stands, its second line, and the words of its atoms."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as text: {error}") from None
    line, number = 0, 0
    while line < len(lines):
        if not lines[line].strip():
            line += 1
            continue
        number += 1
        where = f"{path}, frame {number}"
        word = lines[line].strip()
        if not word.isdigit():
            raise DataError(
                f"{where}, line {line + 1}: expected a number of atoms, got {word[:40]!r}."
            )
        count = int(word)
        rows = [each.split() for each in lines[line + 2 : line + 2 + count]]
        if len(rows) < count:
            raise DataError(f"{where}: {count} atoms announced, {len(rows)} found.")
        yield where, lines[line + 1], rows
        line += 2 + count


def _properties(text: str, where: str) -> list[tuple[str, str, int]]:
    if not text:
        return _PLAIN
    words = text.split(":")
    if len(words) % 3 or not all(w.isdigit() for w in words[2::3]):
        raise DataError(f"{where}: Properties={text} is not name:kind:columns, repeated.")
    counts = map(int, words[2::3])
    return list(zip(words[::3], words[1::3], counts, strict=True))


def _frame(
    rows: list[list[str]],
    properties: list[tuple[str, str, int]],
    info: dict[str, str],
    where: str,
    forces: str | None,
) -> tuple[Any, ...]:
    place, first = {}, 0
    for name, _, count in properties:
        place[name] = (first, count)
        first += count
    short = next((k for k, row in enumerate(rows) if len(row) < first), None)
    if short is not None:
        raise DataError(
            f"{where}, atom {short + 1}: expected {first} columns, got {len(rows[short])}."
        )
    kind = next((n for n in ("species", "Z", "numbers") if n in place), None)
    if kind is None or place.get("pos", (0, 0))[1] != 3:
        raise DataError(f"{where}: Properties must name species and pos:R:3.")
    column = place[kind][0]
    species = atomic_numbers(np.array([row[column] for row in rows], dtype=str), where)
    positions = _numbers(rows, *place["pos"], where)
    names = (forces,) if forces is not None else FORCES
    found = next((_numbers(rows, *place[n], where) for n in names if n in place), None)
    if found is not None and found.shape[1] != 3:
        raise DataError(f"{where}: forces have 3 columns, got {found.shape[1]}.")
    box = np.zeros((3, 3))
    if "Lattice" in info:
        numbers = _floats(info.pop("Lattice"), where, "Lattice")
        if len(numbers) != 9:
            raise DataError(f"{where}: Lattice has 9 numbers, got {len(numbers)}.")
        box = numbers.reshape(3, 3)
    flags = info.pop("pbc", None)
    repeats = [box.any()] * 3 if flags is None else [w.upper() in _TRUE for w in flags.split()]
    if len(repeats) != 3:
        raise DataError(f"{where}: pbc has three values, got {flags!r}.")
    return species, positions, box, np.array(repeats, dtype=bool), found


def _numbers(rows: list[list[str]], first: int, count: int, where: str) -> NDArray[np.float64]:
    try:
        found = np.array([row[first : first + count] for row in rows], dtype=np.float64)
        return found.reshape(len(rows), count)
    except ValueError:
        for k, row in enumerate(rows):
            _floats(" ".join(row[first : first + count]), where, f"atom {k + 1}")
        raise


def _floats(text: str, where: str, what: str) -> NDArray[np.float64]:
    try:
        return np.array(text.replace(",", " ").split(), dtype=np.float64)
    except ValueError:
        raise DataError(f"{where}, {what}: expected numbers, got {text!r}.") from None


def _columns(infos: list[dict[str, str]]) -> dict[str, NDArray[Any]]:
    """What all frames say beside their atoms; numbers where all of it are."""
    names = dict.fromkeys(name for info in infos for name in info)
    found: dict[str, NDArray[Any]] = {}
    for name in names:
        words = [info.get(name) for info in infos]
        try:
            found[name] = np.array([np.nan if w is None else float(w) for w in words])
        except ValueError:
            found[name] = np.array(words, dtype=object)
    return found
