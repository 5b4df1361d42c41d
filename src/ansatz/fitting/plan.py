"""The plan of a network's fit: everything that decides it besides the rows and the law."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import nn

from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.recipe import Recipe


class Plan(NamedTuple):
    """How a network is made and trained.

    Args:
        structure: what x looks like.
        network: by name, or a module.
        network_options: of the network's factory.
        recipe: of the training.
        seed: of everything random.
        options: other options of the fit, by name; each belongs to who asks for it.
        trainer_options: of :class:`~ansatz.training.Trainer`.
    """

    structure: Structure
    network: str | nn.Module
    network_options: dict[str, Any]
    recipe: Recipe
    seed: int
    options: Mapping[str, Any] = {}  # never changed
    trainer_options: Mapping[str, Any] = {}  # never changed

    @property
    def network_name(self) -> str:
        """As the registry spells it, or the class of a network of the user's own."""
        return str(self.network) if isinstance(self.network, str) else type(self.network).__name__

    @property
    def saved_options(self) -> dict[str, Any] | None:
        """The options that make the network anew; None for one of the user's own."""
        return self.network_options if isinstance(self.network, str) else None
