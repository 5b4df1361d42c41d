"""Trains the last map of a network whose other layers are frozen, on states computed once."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.data import Batch
from ansatz.data.source import Source
from ansatz.layers.mode import evaluation_mode
from ansatz.networks.transfer import head_names


class LastMap(nn.Module):
    """The last map of a network alone; the network has the same map in it.

    Args:
        network: whose only trained part is its last map.

    Example:
        >>> import torch
        >>> from ansatz.fitting.frozen_body import LastMap
        >>> network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
        >>> states = LastMap(network).states(torch.ones(5, 3))
        >>> torch.equal(LastMap(network)(states), network(torch.ones(5, 3)))
        True
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        object.__setattr__(self, "whole", network)  # not a part: its weights are not trained
        (name,) = head_names(network)
        self.head = network.get_submodule(name)

    def forward(self, states: Tensor) -> Tensor:
        answer: Tensor = self.head(states)
        return answer

    def states(self, *inputs: Tensor) -> Tensor:
        """What the network gives to its last map."""
        found: list[Tensor] = []
        hook = self.head.register_forward_pre_hook(lambda _, given: found.append(given[0]))
        try:
            with torch.no_grad(), evaluation_mode(self.whole):  # type: ignore[arg-type]
                self.whole(*inputs)  # type: ignore[operator]
        finally:
            hook.remove()
        return found[0]


class StateSource:
    """The batches of a source with states in the place of their inputs.

    Args:
        source: of the rows.
        network: computes the states.
        plain: the same rows in any order, each once.
    """

    def __init__(self, source: Source, network: LastMap, plain: Source) -> None:
        self.source = source
        parts = [(batch.index, network.states(*batch.inputs)) for batch in plain.batches(0)]
        index = torch.cat([each for each, _ in parts])
        self.index, order = index.sort()
        self.states = torch.cat([states for _, states in parts])[order]

    def __len__(self) -> int:
        return len(self.source)

    def __getattr__(self, name: str) -> Any:
        if name == "source":
            raise AttributeError(name)
        return getattr(self.source, name)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        for batch in self.source.batches(epoch, start):
            rows = torch.searchsorted(self.index, batch.index)
            yield batch._replace(inputs=(self.states[rows],))
