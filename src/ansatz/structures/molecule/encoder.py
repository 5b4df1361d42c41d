"""From frames of atoms to the batches of a network: codes of elements and pairs of near atoms."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.data import Column, Molecules
from ansatz.data.molecules import neighbours
from ansatz.data.molecules.elements import SYMBOLS
from ansatz.errors import DataError, ModelError
from ansatz.layers import MoleculeBatch
from ansatz.spec import InputSpec

CUTOFF = 4.5


class MoleculeEncoder:
    """Codes of the elements that training saw, and all pairs within the cut-off.

    Args:
        kinds: ``(S,)`` atomic numbers, rising.
        cutoff: in the unit of the positions.
    """

    dtype = torch.float64

    def __init__(self, kinds: NDArray[np.int64], cutoff: float) -> None:
        self.kinds, self.cutoff = kinds, float(cutoff)

    @classmethod
    def fit(cls, rows: Molecules, cutoff: float) -> "MoleculeEncoder":
        """The elements of the training rows."""
        return cls(np.unique(rows.species), cutoff)

    @property
    def spec(self) -> InputSpec:
        """The number of elements and the cut-off."""
        return InputSpec.molecule(self.kinds.tolist(), self.cutoff)

    @property
    def notes(self) -> list[str]:
        """None."""
        return []

    @property
    def columns(self) -> list[Column]:
        """None: atoms are not columns."""
        return []

    def inputs(self, rows: Any, *, notes: list[str] | None = None) -> Any:
        """All frames as one batch, in float64; an element without a code is an error."""
        code = self.codes(rows)
        parts = [_pairs(rows, code, b, self.cutoff) for b in range(len(rows))]
        counts = [0, *(len(part[0]) for part in parts)]
        pair_offsets = np.cumsum(counts)
        center, neighbour, shift, back = (
            np.concatenate([part[k] for part in parts]) if parts else np.zeros(0, dtype=np.int64)
            for k in range(4)
        )
        back = back + np.repeat(pair_offsets[:-1], np.diff(pair_offsets))
        return (
            MoleculeBatch(
                torch.from_numpy(np.array(rows.positions)),
                torch.from_numpy(code),
                torch.from_numpy(np.array(rows.offsets)),
                torch.from_numpy(center),
                torch.from_numpy(neighbour),
                torch.from_numpy(shift.reshape(-1, 3).astype(np.float64)),
                torch.from_numpy(back),
                torch.from_numpy(pair_offsets),
            ),
        )

    def codes(self, rows: Any) -> NDArray[np.int64]:
        """The code of the element of each atom; an element without one is an error."""
        found = np.searchsorted(self.kinds, rows.species)
        code: NDArray[np.int64] = np.minimum(found, len(self.kinds) - 1)
        unseen = np.flatnonzero(self.kinds[code] != rows.species)
        if len(unseen):
            frame = int(np.searchsorted(rows.offsets, unseen[0], side="right"))
            known = " ".join(SYMBOLS[z] for z in self.kinds)
            raise DataError(
                f"frame {frame}, atom {unseen[0] - rows.offsets[frame - 1] + 1}: the model never "
                f"saw the element {SYMBOLS[rows.species[unseen[0]]]}. It knows {known}."
            )
        return code

    def state(self) -> dict[str, Any]:
        """Atomic numbers and cut-off, as JSON."""
        return {"kinds": self.kinds.tolist(), "cutoff": self.cutoff}


def load_encoder(state: Mapping[str, Any]) -> MoleculeEncoder:
    """The encoder of a saved model."""
    kinds = np.array(state.get("kinds", ()), dtype=np.int64)
    if not len(kinds) or not float(state.get("cutoff", 0)) > 0:
        raise ModelError("encoder: expected kinds, atomic numbers, and a positive cutoff.")
    return MoleculeEncoder(kinds, float(state["cutoff"]))


def _pairs(
    rows: Molecules, code: NDArray[np.int64], b: int, cutoff: float
) -> tuple[NDArray[Any], ...]:
    """Centers, neighbours, shifts and the places of the pairs (j, i) of one frame, in order."""
    part = slice(rows.offsets[b], rows.offsets[b + 1])
    periodic = rows.periodic[b]
    box = rows.box[b] if periodic.any() else None
    try:
        found = neighbours(rows.positions[part], cutoff, box, periodic)
    except DataError as error:
        raise DataError(f"frame {b + 1}: {error}") from None
    own = code[part]
    order = np.argsort(
        found.center * (own.max(initial=0) + 1) + own[found.neighbour], kind="stable"
    )
    center, neighbour, S = found.center[order], found.neighbour[order], found.shift[order]
    reach = int(np.abs(S).max(initial=0))
    wide = 2 * reach + 1
    images = ((S + reach) * np.array([wide * wide, wide, 1])).sum(1)
    opposite = ((reach - S) * np.array([wide * wide, wide, 1])).sum(1)
    atoms = len(own)
    here = (center * atoms + neighbour) * wide**3 + images
    there = (neighbour * atoms + center) * wide**3 + opposite
    back = np.empty(len(center), dtype=np.int64)
    back[np.argsort(here)] = np.argsort(there)
    shift = S @ rows.box[b] if box is not None else np.zeros((len(S), 3))
    first = rows.offsets[b]
    return center + first, neighbour + first, shift, back
