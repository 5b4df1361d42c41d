"""A trained network with the objective that makes its outputs a likelihood's parameters."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from ansatz.fitting.contracts.encoder import Encoder
from ansatz.fitting.contracts.inference import Composition, Predictive
from ansatz.fitting.contracts.structure import Structure
from ansatz.likelihoods import Likelihood
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
        """The likelihood whose parameters these are."""
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


class PointPosterior:
    """All mass on one weight vector.

    Args:
        structure: of x.
        encoder: from rows to inputs.
        trained: the network with its objective.
        options: of the fit; the structure may have some about predictions.
    """

    name: ClassVar[str] = "point"
    keeps_rows: ClassVar[bool] = False

    def __init__(
        self,
        structure: Structure,
        encoder: Encoder,
        trained: Trained,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.structure, self.encoder, self.trained = structure, encoder, trained
        self.options = dict(options or {})

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of the predictive."""
        likelihood: Likelihood = self.trained.likelihood
        return likelihood

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        return self.trained.parameters

    @property
    def networks(self) -> Sequence[Trained]:
        """The one network."""
        return [self.trained]

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        """The likelihood at the one weight vector."""
        chunks = self.structure.raws(
            [self.trained], self.encoder, rows, offset, notes=notes, options=self.options
        )
        return Predictive(self.likelihood, torch.cat([raw for each in chunks for raw in each]))

    def answer(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        """The likelihood's parameters at encoded inputs."""
        return self.trained(inputs, offset)

    def components(self, rows: Any, offset: Tensor | None = None) -> list[tuple[float, Predictive]]:
        """The predictive itself."""
        return [(1.0, self.predictive(rows, offset))]

    def without_recalibration(self) -> Self:
        """The same: one network is not recalibrated."""
        return self

    def composition(self, kind: torch.dtype) -> Composition:
        """The one network."""
        return Composition([(self.encoder, self.trained)])

    def tensors(self) -> dict[str, Tensor]:
        """Weights and state by name."""
        return self.trained.tensors()

    def record(self) -> dict[str, Any]:
        """Nothing besides the tensors."""
        return {}
