"""A trained network with the objective that makes its outputs a law's parameters."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.training import Supervised


class Trained:
    """Encoded inputs in, the likelihood's parameters out.

    Args:
        network: trained; copied.
        objective: likelihood, shift and scale; copied.
        name: the network as the registry spells it, or its class.
        options: of its factory; None for a network of the user's own.
        dtype: the floating-point type in which the network predicts.
    """

    def __init__(
        self,
        network: nn.Module,
        objective: Supervised,
        name: str,
        options: dict[str, Any] | None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.network = copy.deepcopy(network).to("cpu", dtype).eval()
        self.objective = copy.deepcopy(objective).to("cpu", torch.float64).eval()
        self.objective.requires_grad_(False)  # a constant dispersion is no longer learned
        self.name, self.options = name, options
        self.answering: nn.Module = self.network  # or a network made of it, averaged over a group

    @property
    def likelihood(self) -> Any:
        """The law whose parameters these are."""
        return self.objective.likelihood

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        modules = (self.network, self.objective)
        return sum(p.numel() for module in modules for p in module.parameters())

    def __call__(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        with torch.no_grad():
            return self.objective.raw(self.answering, inputs, offset).double()

    def tensors(self) -> dict[str, Tensor]:
        """Weights and state by name, as they are saved."""
        return {
            **{f"network.{name}": value for name, value in self.network.state_dict().items()},
            **{f"objective.{name}": value for name, value in self.objective.state_dict().items()},
        }
