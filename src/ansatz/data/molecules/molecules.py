"""Frames of atoms, one behind the other."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.data.keys import cell_keys, mix
from ansatz.data.molecules.elements import SYMBOLS, atomic_numbers
from ansatz.data.molecules.neighbours import checked_box
from ansatz.errors import DataError

Array = NDArray[np.float64]
BLOCKS = 20  # into which the frames of a run are cut, so that near frames are split together


class Molecules:
    """B frames of atoms, molecules or crystals, with energies and forces where they are known.

    The atoms of frame b are ``offsets[b]:offsets[b + 1]``; nothing is padded. Lengths and energies
    may have any unit: predictions have the same.

    Args:
        positions: ``(N, 3)``, or ``(B, A, 3)`` for frames of A atoms each.
        species: ``(N,)`` symbols or atomic numbers; ``(A,)`` where all frames have the same.
        box: ``(B, 3, 3)`` vectors of periodic boxes as rows, one of them, or None; all zero where
            a frame has none.
        offsets: ``(B + 1,)``; not given with ``(B, A, 3)``, nor for a single frame.
        energy: ``(B,)``, nan where unknown; None for none.
        forces: like the positions, nan where unknown; None for none.
        periodic: ``(B, 3)`` whether the box repeats along each of its vectors. Default: where
            there is a box.
        runs: ``(B,)`` the trajectory of each frame. Default: consecutive frames with the same atoms
            are one run.

    Example:
        >>> import numpy as np
        >>> from ansatz.data import Molecules
        >>> x = np.random.default_rng(0).normal(size=(10, 3, 3))
        >>> molecules = Molecules(x, ["O", "H", "H"], energy=np.zeros(10))
        >>> molecules, molecules[2:4].offsets
        (10 frames: 3 atoms (H2O), energies, array([0, 3, 6]))
    """

    spec = None
    has_features = True

    def __init__(
        self,
        positions: ArrayLike,
        species: Sequence[Any] | NDArray[Any],
        box: ArrayLike | None = None,
        *,
        offsets: ArrayLike | None = None,
        energy: ArrayLike | None = None,
        forces: ArrayLike | None = None,
        periodic: ArrayLike | None = None,
        runs: ArrayLike | None = None,
    ) -> None:
        x = np.array(positions, dtype=np.float64)
        kinds = np.asarray(species)
        if x.ndim == 3 and x.shape[2] == 3 and offsets is None:
            offsets = np.arange(len(x) + 1) * x.shape[1]
            kinds = np.tile(kinds, len(x)) if kinds.ndim == 1 else kinds.reshape(-1)
            x = x.reshape(-1, 3)
        if x.ndim != 2 or x.shape[1] != 3:
            raise DataError(f"positions must have shape (N, 3) or (B, A, 3), got {x.shape}.")
        self.positions: Array = x
        self.offsets = _offsets(offsets, len(x))
        self.species = atomic_numbers(kinds, "species")
        if self.species.shape != (len(x),):
            raise DataError(f"{len(x)} atoms need {len(x)} species, got {self.species.shape}.")
        frames = len(self.offsets) - 1
        self.box, self.periodic = _boxes(box, periodic, frames)
        self.energy = None if energy is None else np.array(energy, dtype=np.float64).reshape(-1)
        if self.energy is not None and len(self.energy) != frames:
            raise DataError(f"{frames} frames need {frames} energies, got {len(self.energy)}.")
        self.forces = None if forces is None else _forces(forces, len(x))
        self._check_finite()
        self._check_apart()
        self.runs = self._runs() if runs is None else np.asarray(runs)

    @classmethod
    def concatenate(cls, parts: "Iterable[Molecules]") -> "Molecules":
        """All frames of several, each of them runs of its own; what some lack is nan."""
        every = list(parts)
        if not every:
            raise DataError("there are no frames.")
        energy = forces = None
        if any(p.energy is not None for p in every):
            energy = np.concatenate(
                [np.full(len(p), np.nan) if p.energy is None else p.energy for p in every]
            )
        if any(p.forces is not None for p in every):
            forces = np.concatenate(
                [np.full_like(p.positions, np.nan) if p.forces is None else p.forces for p in every]
            )
        runs, first = [], 0
        for part in every:
            number = np.unique(part.runs, return_inverse=True)[1].reshape(-1)
            runs.append(number + first)
            first += int(number.max()) + 1 if len(number) else 0
        return cls(
            np.concatenate([p.positions for p in every]),
            np.concatenate([p.species for p in every]),
            np.concatenate([p.box for p in every]),
            offsets=np.append(0, np.cumsum(np.concatenate([p.sizes for p in every]))),
            energy=energy,
            forces=forces,
            periodic=np.concatenate([p.periodic for p in every]),
            runs=np.concatenate(runs),
        )

    @classmethod
    def from_ase(cls, frames: Any) -> "Molecules":
        """Frames of ASE, with the energies and forces that their calculators have stored."""
        listed = [frames] if hasattr(frames, "get_positions") else list(frames)
        if not listed:
            raise DataError("there are no frames.")
        energy, forces = [], []
        for atoms in listed:
            kept = {} if atoms.calc is None else dict(getattr(atoms.calc, "results", {}))
            found = kept.get("energy", atoms.info.get("energy", np.nan))
            energy.append(float(found))
            forces.append(kept.get("forces", np.full((len(atoms), 3), np.nan)))
        every, known = np.concatenate(forces), np.array(energy)
        return cls(
            np.concatenate([atoms.get_positions() for atoms in listed]),
            np.concatenate([atoms.get_atomic_numbers() for atoms in listed]),
            np.stack([np.asarray(atoms.cell[:]) for atoms in listed]),
            offsets=np.append(0, np.cumsum([len(atoms) for atoms in listed])),
            energy=known if np.isfinite(known).any() else None,
            forces=every if np.isfinite(every).any() else None,
            periodic=np.stack([np.asarray(atoms.pbc) for atoms in listed]),
        )

    def to_ase(self) -> list[Any]:
        """The frames as ASE's ``Atoms``, with energies and forces where they are known."""
        from ase import Atoms
        from ase.calculators.singlepoint import SinglePointCalculator

        found = []
        for b in range(len(self)):
            part = slice(self.offsets[b], self.offsets[b + 1])
            atoms = Atoms(
                numbers=self.species[part],
                positions=self.positions[part],
                cell=self.box[b],
                pbc=self.periodic[b],
            )
            results: dict[str, Any] = {}
            if self.energy is not None and np.isfinite(self.energy[b]):
                results["energy"] = float(self.energy[b])
            if self.forces is not None and np.isfinite(self.forces[part]).all():
                results["forces"] = self.forces[part]
            if results:
                atoms.calc = SinglePointCalculator(atoms, **results)
            found.append(atoms)
        return found

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        sizes = self.sizes
        size = "no" if not len(self) else f"{sizes.min()} to {sizes.max()}"
        size = str(sizes[0]) if len(self) and sizes.min() == sizes.max() else size
        kinds = np.unique(self.species)
        counts = self.counts(kinds)
        if len(self) and (counts == counts[0]).all():
            pairs = zip(kinds, counts[0].astype(int), strict=True)
            names = "".join(SYMBOLS[z] + (str(n) if n > 1 else "") for z, n in pairs)
        else:
            names = " ".join(SYMBOLS[z] for z in kinds)
        more = ", energies" * (self.energy is not None) + ", forces" * (self.forces is not None)
        return f"{len(self):,} frame{'s' * (len(self) != 1)}: {size} atoms ({names}){more}"

    def __getitem__(self, index: Any) -> "Molecules":
        rows = np.arange(len(self))[index if isinstance(index, slice) else np.asarray(index)]
        rows = np.atleast_1d(rows)
        sizes = self.sizes[rows]
        offsets = np.append(0, np.cumsum(sizes)).astype(np.int64)
        atoms = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], sizes)
        found = object.__new__(Molecules)
        found.positions, found.species = self.positions[atoms], self.species[atoms]
        found.offsets, found.box, found.periodic = offsets, self.box[rows], self.periodic[rows]
        found.energy = None if self.energy is None else self.energy[rows]
        found.forces = None if self.forces is None else self.forces[atoms]
        found.runs = self.runs[rows]
        return found

    def with_outcomes(self, energy: ArrayLike | None, forces: ArrayLike | None) -> "Molecules":
        """The same frames with other energies and forces; None for those that they have."""
        return Molecules(
            self.positions,
            self.species,
            self.box,
            offsets=self.offsets,
            energy=self.energy if energy is None else energy,
            forces=self.forces if forces is None else forces,
            periodic=self.periodic,
            runs=self.runs,
        )

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of atoms of each frame."""
        return np.diff(self.offsets)

    @property
    def blocks(self) -> NDArray[np.int64]:
        """Some twenty blocks of consecutive frames of each run, ``(B,)``; single frames are one."""
        run = np.unique(self.runs, return_inverse=True)[1].reshape(-1)
        found, first = np.zeros(len(self), dtype=np.int64), 0
        for number in range(int(run.max()) + 1 if len(run) else 0):
            mine = np.flatnonzero(run == number)
            block = np.arange(len(mine)) * min(BLOCKS, len(mine)) // max(1, len(mine))
            found[mine] = first + block
            first += int(block[-1]) + 1
        return found

    def counts(self, kinds: NDArray[np.int64]) -> Array:
        """The number of atoms of each of these elements in each frame, ``(B, S)``."""
        frame = np.repeat(np.arange(len(self)), self.sizes)
        found = np.zeros((len(self), len(kinds)))
        for place, kind in enumerate(kinds):
            found[:, place] = np.bincount(frame[self.species == kind], minlength=len(self))
        return found

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of each frame's atoms and box, whatever the order of the atoms."""
        atoms = np.column_stack([self.positions, self.species])
        keys = mix(cell_keys(atoms, seed, 0))
        total = np.append(np.uint64(0), np.cumsum(keys, dtype=np.uint64))
        every = total[self.offsets[1:]] - total[self.offsets[:-1]]  # modulo 2^64
        found: NDArray[np.uint64] = every + cell_keys(self.box.reshape(len(self), 9), seed, 1)
        return found

    def describe(self) -> dict[str, Any]:
        """Three coordinates for each atom."""
        return {"names": None, "count": 3, "columns": None}

    def _runs(self) -> NDArray[np.int64]:
        """A new run begins where the atoms are others than before."""
        parts = [self.species[a:b] for a, b in pairwise(self.offsets)]
        same = [np.array_equal(a, b) for a, b in pairwise(parts)]
        begins = np.append(np.zeros(min(1, len(self)), dtype=bool), ~np.array(same, dtype=bool))
        return np.cumsum(begins).astype(np.int64)

    def _check_finite(self) -> None:
        bad = np.flatnonzero(~np.isfinite(self.positions).all(1))
        if len(bad):
            frame = int(np.searchsorted(self.offsets, bad[0], side="right")) - 1
            atom = bad[0] - self.offsets[frame] + 1
            raise DataError(
                f"frame {frame + 1}, atom {atom}: its position "
                f"{self.positions[bad[0]].tolist()} is not finite."
            )

    def _check_apart(self) -> None:
        """Rejects atoms of one frame at one place."""
        frame = np.repeat(np.arange(len(self)), self.sizes)
        x = self.positions
        order = np.lexsort((x[:, 2], x[:, 1], x[:, 0], frame))
        near = x[order[1:]] == x[order[:-1]]
        same = np.flatnonzero(near.all(1) & (frame[order[1:]] == frame[order[:-1]]))
        if len(same):
            i, j = sorted(order[same[0] : same[0] + 2].tolist())
            first = self.offsets[frame[i]]
            raise DataError(
                f"frame {frame[i] + 1}: atoms {i - first + 1} and {j - first + 1} are at the same "
                f"place: {x[i].tolist()}."
            )


def _offsets(given: ArrayLike | None, atoms: int) -> NDArray[np.int64]:
    if given is None:
        return np.array([0, atoms], dtype=np.int64)
    found = np.asarray(given)
    whole = found.ndim == 1 and found.dtype.kind in "iu" and len(found) > 0
    if not whole or found[0] != 0 or found[-1] != atoms or (np.diff(found) < 0).any():
        raise DataError(f"offsets must rise from 0 to the number of atoms, {atoms}.")
    return found.astype(np.int64)


def _forces(given: ArrayLike, atoms: int) -> Array:
    found = np.array(given, dtype=np.float64)
    if found.ndim == 3 and found.shape[2] == 3:
        found = found.reshape(-1, 3)
    if found.shape != (atoms, 3):
        raise DataError(
            f"forces must have the shape of the positions, ({atoms}, 3), got {np.shape(given)}."
        )
    return found


def _boxes(
    box: ArrayLike | None, periodic: ArrayLike | None, frames: int
) -> tuple[Array, NDArray[np.bool_]]:
    if box is None:
        return np.zeros((frames, 3, 3)), np.zeros((frames, 3), dtype=bool)
    h = np.array(box, dtype=np.float64)
    if h.shape == (9,) or h.shape == (3, 3):
        h = np.tile(h.reshape(1, 3, 3), (frames, 1, 1))
    elif h.shape == (frames, 9):
        h = h.reshape(frames, 3, 3)
    elif h.shape == (3,) or (h.shape == (frames, 3) and frames != 3):
        h = np.broadcast_to(h, (frames, 3))[:, :, None] * np.eye(3)
    if h.shape != (frames, 3, 3):
        raise DataError(f"boxes must have shape ({frames}, 3, 3), got {np.shape(box)}.")
    there = np.array(h.reshape(frames, 9) != 0).any(1).reshape(-1, 1)
    given = there if periodic is None else np.asarray(periodic, dtype=bool)
    repeats = np.array(np.broadcast_to(given, (frames, 3)))
    for b in np.flatnonzero(repeats.any(1)):
        try:
            checked_box(h[b])
        except DataError as error:
            raise DataError(f"frame {b + 1}: {error}") from None
    return h, repeats
