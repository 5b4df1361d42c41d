"""Molecules as the input of a network: atoms, and who is near whom."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.layers.ragged import places, rows_of, segment_sum


class MoleculeBatch(NamedTuple):
    """Frames of atoms side by side, with both directions of every pair of near atoms.

    Frame b has the atoms ``offsets[b]:offsets[b + 1]`` and the pairs
    ``pair_offsets[b]:pair_offsets[b + 1]``. Pairs are sorted by their center, and those of a center
    by the element of the neighbour.

    Args:
        positions: ``(N, 3)``.
        species: ``(N,)`` codes of elements, 0 to S - 1.
        offsets: ``(B + 1,)``.
        center: ``(E,)`` the atom i of each pair.
        neighbour: ``(E,)`` the atom j.
        shift: ``(E, 3)``, by which a box moves the neighbour; 0 inside the box.
        back: ``(E,)`` the place of the pair (j, i).
        pair_offsets: ``(B + 1,)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import MoleculeBatch
        >>> x = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        >>> one = MoleculeBatch.of(x, torch.zeros(2, dtype=torch.long), torch.tensor([[0, 1]]).T)
        >>> one.vectors[:, 2], one.back
        (tensor([ 1., -1.]), tensor([1, 0]))
    """

    positions: Tensor
    species: Tensor
    offsets: Tensor
    center: Tensor
    neighbour: Tensor
    shift: Tensor
    back: Tensor
    pair_offsets: Tensor

    @classmethod
    def of(
        cls, positions: Tensor, species: Tensor, pairs: Tensor, shift: Tensor | None = None
    ) -> "MoleculeBatch":
        """One frame from pairs (i, j), ``(2, E)``, of which one direction is given.

        ``shift`` moves the neighbour j of each, ``(E, 3)``.
        """
        if shift is None:
            shift = positions.new_zeros(pairs.shape[1], 3)
        count = pairs.shape[1]
        center, neighbour = torch.cat([pairs, pairs.flip(0)], 1)
        shift = torch.cat([shift, -shift])
        back = torch.arange(2 * count, device=pairs.device).roll(count)
        kinds = int(species.max()) + 1 if len(species) else 1
        order = (center * kinds + species[neighbour]).argsort(stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device=order.device)
        ends = torch.tensor([0, len(positions)]), torch.tensor([0, 2 * count])
        return cls(
            positions,
            species,
            ends[0],
            center[order],
            neighbour[order],
            shift[order],
            place[back[order]],
            ends[1],
        )

    @property
    def vectors(self) -> Tensor:
        """From each center to its neighbour, ``(E, 3)``."""
        x = self.positions
        return x.index_select(0, self.neighbour) - x.index_select(0, self.center) + self.shift

    @property
    def atoms(self) -> Tensor:
        """The number of atoms of each frame, ``(B,)``."""
        return self.offsets.diff()

    def sum(self, values: Tensor) -> Tensor:
        """The sum over the atoms of each frame, ``(N, ...)`` to ``(B, ...)``."""
        return segment_sum(values, self.offsets)

    def sum_pairs(self, values: Tensor) -> Tensor:
        """The sum over the pairs of each center, ``(E, ...)`` to ``(N, ...)``."""
        counts = torch.bincount(self.center, minlength=len(self.positions))
        offsets = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
        return segment_sum(values, offsets)

    def count_rows(self) -> int:
        """The number of frames, B."""
        return len(self.offsets) - 1

    def take_rows(self, rows: slice | Tensor) -> "MoleculeBatch":
        """Some of the frames, in their order."""
        atoms, offsets = places(self.offsets, rows)
        pairs, pair_offsets = places(self.pair_offsets, rows)
        frame = rows_of(pair_offsets, len(pairs))
        move = (offsets[:-1] - self.offsets[:-1][rows])[frame]
        move_pairs = (pair_offsets[:-1] - self.pair_offsets[:-1][rows])[frame]
        return MoleculeBatch(
            self.positions[atoms],
            self.species[atoms],
            offsets,
            self.center[pairs] + move,
            self.neighbour[pairs] + move,
            self.shift[pairs],
            self.back[pairs] + move_pairs,
            pair_offsets,
        )
