"""The plan of a network's fit: everything that decides it besides the rows and the law."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ansatz.data import Column, Preprocessor
from ansatz.data.grids import GridPreprocessor
from ansatz.estimators.fitting import Fitted
from ansatz.estimators.grid_model import GridModel
from ansatz.estimators.recipe import Recipe
from ansatz.estimators.table_model import TableModel


class Plan(NamedTuple):
    """How a network is made and trained.

    Args:
        network: by name, or a module.
        options: of the network's factory.
        recipe: of the training.
        seed: of everything random.
        trainer_options: of :class:`~ansatz.training.Trainer`.
        quantile: True, or the columns, whose heavy tails are mapped to normal scores.
        pretrained: a file of weights that the network begins with.
        freeze: what of it stays as it is.

    Example:
        >>> from torch import nn
        >>> from ansatz.estimators.plan import Plan
        >>> from ansatz.estimators.recipe import Recipe
        >>> Plan(nn.Linear(3, 1), {}, Recipe(), seed=0).network_name
        'Linear'
    """

    network: str | nn.Module
    options: dict[str, Any]
    recipe: Recipe
    seed: int
    trainer_options: Mapping[str, Any] = {}  # never changed
    quantile: bool | Sequence[str] = False
    pretrained: str | Path | None = None
    freeze: str | int | Sequence[int] | None = None

    @property
    def network_name(self) -> str:
        """As the registry spells it, or the class of a network of the user's own."""
        return str(self.network) if isinstance(self.network, str) else type(self.network).__name__

    def preprocessor(
        self, rows: Any, columns: list[Column] | None, weight: NDArray[np.float64]
    ) -> Preprocessor:
        """What the rows teach about scales and levels."""
        quantile = self.quantile if isinstance(self.quantile, bool) else list(self.quantile)
        bins = self.recipe.bins
        return Preprocessor.fit(rows, columns, weight=weight, quantile=quantile, bins=bins)

    def model(self, preprocessor: Preprocessor, fitted: Fitted) -> TableModel:
        """The trained network in one piece with its preprocessing and its law."""
        return TableModel(preprocessor, *self._parts(fitted))

    def grid_model(self, preprocessor: GridPreprocessor, fitted: Fitted) -> GridModel:
        """The same of a network on grids."""
        return GridModel(preprocessor, *self._parts(fitted), symmetry=self.recipe.symmetry)

    def _parts(self, fitted: Fitted) -> tuple[Any, ...]:
        options = self.options if isinstance(self.network, str) else None
        return fitted.network, fitted.objective, self.network_name, options
