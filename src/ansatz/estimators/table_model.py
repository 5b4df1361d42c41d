"""A fitted model of a table: preprocessing, network and likelihood in one piece."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.data.batch import take_rows
from ansatz.likelihoods import Distribution
from ansatz.training import Supervised

CHUNK = 65_536  # rows predicted at once


class TableModel:
    """Rows of a table in, the likelihood's parameters out.

    Predictions are computed in float64, whatever the training used, so that a row alone and the
    same row among others give the same number.

    Args:
        preprocessor: turns rows into the network's inputs.
        network: gives the raw numbers before shift and scale.
        objective: holds likelihood, shift and scale.
        network_name: as the registry spells it.
        network_options: the options that remake the network; None for one of the user's own.

    Example:
        >>> import numpy as np
        >>> from ansatz.estimators import Regressor
        >>> model = Regressor().fit(np.arange(20.0).reshape(-1, 1), np.arange(20.0)).model_
        >>> model.raw(np.ones((3, 1))).shape
        torch.Size([3, 1])
    """

    dtype = torch.float64  # of the network

    def __init__(
        self,
        preprocessor: Any,
        network: nn.Module,
        objective: Supervised,
        network_name: str,
        network_options: dict[str, Any] | None,
    ) -> None:
        self.preprocessor = preprocessor
        self.network = copy.deepcopy(network).to("cpu", self.dtype).eval()
        self.objective = copy.deepcopy(objective).to("cpu", torch.float64).eval()
        self.objective.requires_grad_(False)  # a constant dispersion is no longer learned
        self.network_name = network_name
        self.network_options = network_options

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        modules = (self.network, self.objective)
        return sum(p.numel() for module in modules for p in module.parameters())

    @property
    def answering(self) -> nn.Module:
        """What answers: the network, or one made of it."""
        return self.network

    def tensors(self) -> dict[str, Tensor]:
        """Weights and state by name, as they are saved."""
        return {
            **{f"network.{name}": value for name, value in self.network.state_dict().items()},
            **{f"objective.{name}": value for name, value in self.objective.state_dict().items()},
        }

    def raw(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Tensor:
        """The likelihood's parameters at each row, ``(N, P)`` or ``(N, K, P)``.

        Levels never seen are told in ``notes``, or as warnings without it.
        """
        return self.raw_of(self.prepare(rows, notes=notes), offset)

    def prepare(self, rows: Any, *, notes: list[str] | None = None) -> tuple[Tensor, ...]:
        """The network's inputs, in float64."""
        inputs = self.preprocessor.transform(rows, clip=True, notes=notes)
        return tuple(t.double() if t.is_floating_point() else t for t in inputs)

    def raw_of(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        """The likelihood's parameters at inputs that are prepared."""
        with torch.no_grad():
            parts = [
                self.objective.raw(self.network, take_rows(inputs, rows), extra)
                for rows, extra in _chunks(len(inputs[0]), offset)
            ]
        return torch.cat(parts)

    def distribution(self, rows: Any, offset: Tensor | None = None) -> Distribution:
        """The predictive distribution at each row."""
        raw = self.raw(rows, offset)
        with torch.no_grad():
            return self.objective.likelihood.distribution(raw)


def _chunks(count: int, offset: Tensor | None) -> Iterator[tuple[slice, Tensor | None]]:
    for first in range(0, max(count, 1), CHUNK):
        rows = slice(first, first + CHUNK)
        yield rows, None if offset is None else offset[rows]
