"""A fitted ensemble of a table: several models, mixed."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.data.grids import Grids
from ansatz.estimators.grid_model import GridModel
from ansatz.estimators.table_model import TableModel
from ansatz.inference import Ensemble
from ansatz.inference.combination import Combination
from ansatz.training import Supervised


class EnsembleModel(TableModel):
    """Rows of a table in, the parameters of the members' mixture out.

    Args:
        members: fitted models of one likelihood; networks share one preprocessor, a linear model
            among them has its own.
        weights: ``(S,)``.
        factor: of recalibration.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> x = np.linspace(-1, 1, 60).reshape(-1, 1)
        >>> model = Regressor(inference="ensemble", members=5, epochs=5).fit(x, x[:, 0]).model_
        >>> len(model.members) >= 5
        True
    """

    def __init__(self, members: Sequence[TableModel], weights: Tensor, factor: float = 1.0) -> None:
        first = members[0]
        self.members, self.preprocessor = list(members), first.preprocessor
        laws = [member.objective.likelihood for member in members]
        self.combination = Combination(laws, weights, factor)
        self.network = nn.ModuleList(member.network for member in members)
        self.objective = Supervised(self.combination.likelihood)
        self.network_name, self.network_options = first.network_name, first.network_options

    @property
    def parameters(self) -> int:
        """How many numbers were learned, by all members."""
        return sum(member.parameters for member in self.members)

    @property
    def weights(self) -> Tensor:
        """How much each member counts."""
        return self.combination.weights

    @property
    def factor(self) -> float:
        """What recalibration found; 1 for none."""
        return self.combination.factor

    @property
    def networks(self) -> list[TableModel]:
        """The members that are networks and not the linear model."""
        return [member for member in self.members if member.preprocessor is self.preprocessor]

    @property
    def posterior(self) -> Ensemble:
        """The networks as a posterior on tensors, without the linear model."""
        pairs = [(member.network, member.objective) for member in self.networks]
        return Ensemble(pairs, self.weights[: len(pairs)], self.factor)

    def without_recalibration(self) -> "EnsembleModel":
        """The same members with a factor of 1."""
        return EnsembleModel(self.members, self.weights)

    def raw(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Tensor:
        """What the mixture's law takes: see :meth:`~ansatz.inference.combination.Combination`."""
        first = self.members[0]
        if isinstance(first, GridModel) and first.is_dense:
            return self._by_pieces(rows, lambda member, piece: member.raw(piece))
        return self.combination.serve(self.member_raws(rows, offset, notes=notes))

    def raw_in_tiles(self, rows: Grids, tile: int | None = None) -> Tensor:
        """The mixture's at every cell: see :meth:`~ansatz.estimators.grid_model.GridModel`."""
        return self._by_pieces(rows, lambda member, piece: member.raw_in_tiles(piece, tile))

    def _by_pieces(self, rows: Grids, raw: Callable[[GridModel, Grids], Tensor]) -> Tensor:
        """Few examples and one member at a time: K numbers for every cell are many."""
        members = [member for member in self.members if isinstance(member, GridModel)]
        first = members[0]
        parts = [
            self.combination.serve_in_turn(raw(member, rows[piece]) for member in members)
            for piece in first.pieces(rows)
        ]
        return torch.cat(parts) if parts else first.raw(rows)

    def member_raws(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> list[Tensor]:
        """The parameters of each member's law at each row, ``(N, P)`` or ``(N, K, P)``."""
        if isinstance(self.members[0], GridModel):  # piece by piece: not all inputs at once
            return [member.raw(rows, offset) for member in self.members]
        inputs = self.prepare(rows, notes=notes)
        found = []
        for member in self.members:
            if member.preprocessor is self.preprocessor:
                found.append(member.raw_of(inputs, offset))
            else:
                found.append(member.raw(rows, offset, notes=[]))
        return found

    def raw_of(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        """Of inputs alone, which only networks take."""
        with torch.no_grad():
            return self.combination.serve([m.raw_of(inputs, offset) for m in self.members])
