"""The weights of a network and of its likelihood as one vector."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from ansatz.data.batch import count_rows
from ansatz.fitting.model import Trained
from ansatz.likelihoods import Likelihood
from ansatz.networks import MLP, Linear

AT_ONCE = 2**23  # numbers that the widest layer of some draws and rows may hold together


def flatten(network: nn.Module, objective: nn.Module) -> Tensor:
    """The weights of a network and the parameters of its likelihood as one vector, ``(D,)``."""
    parts = [*network.parameters(), *objective.parameters()]
    return torch.cat([p.detach().reshape(-1) for p in parts])


class WeightVector(nn.Module):
    r"""Reads D numbers as the weights of a network and the parameters of its likelihood.

    .. math:: \theta = (\text{weights of the network}, \text{parameters of the likelihood})

    in the order of ``named_parameters``. Called with inputs it gives the raw numbers at the weights
    that the network has; :meth:`raws` gives them at other vectors.

    Args:
        trained: whose buffers, shift and scale all vectors share.
    """

    def __init__(self, trained: Trained) -> None:
        super().__init__()
        self.answering, self.objective = trained.answering, trained.objective
        self.names = [name for name, _ in self.named_parameters()]
        self.shapes = [parameter.shape for parameter in self.parameters()]
        self.sizes = [parameter.numel() for parameter in self.parameters()]
        # A map of a few units is asked for many draws at once; a convolution fills the cores alone.
        self.stacks = isinstance(trained.answering, MLP | Linear)

    def forward(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        return self.objective.raw(self.answering, inputs, offset)

    @property
    def vector(self) -> Tensor:
        """The weights as they are, ``(D,)``."""
        return flatten(self.answering, self.objective).double()

    @property
    def size(self) -> int:
        """D."""
        return sum(self.sizes)

    @property
    def of_likelihood(self) -> int:
        """How many of the last numbers are parameters of the likelihood."""
        return sum(p.numel() for p in self.objective.parameters())

    def named(self, vectors: Tensor) -> dict[str, Tensor]:
        """Cuts vectors ``(..., D)`` into tensors of the shapes of the weights, by name."""
        parts = vectors.split(self.sizes, -1)
        own = zip(self.parameters(), parts, strict=True)
        return {
            name: part.reshape(vectors.shape[:-1] + like.shape).to(like.dtype)
            for name, (like, part) in zip(self.names, own, strict=True)
        }

    def raws(
        self, vectors: Tensor, inputs: tuple[Tensor, ...], offset: Tensor | None = None
    ) -> Tensor:
        """The raw numbers at every vector ``(S, D)``: ``(S, B, ..., P)``."""
        if not self.stacks:
            each = [functional_call(self, self.named(one), (inputs, offset)) for one in vectors]
            return torch.stack(each)
        rows = max(1, count_rows(inputs))
        widest = max([shape[0] for shape in self.shapes if len(shape)] + [1])
        together = max(1, AT_ONCE // (rows * widest))

        def one(weights: dict[str, Tensor]) -> Tensor:
            found: Tensor = functional_call(self, weights, (inputs, offset))
            return found

        found: Tensor = vmap(one, chunk_size=together)(self.named(vectors))
        return found

    def likelihood(self, vector: Tensor) -> Likelihood:
        """The likelihood with its part of a vector as parameters."""
        if not self.of_likelihood:
            same: Likelihood = self.objective.likelihood
            return same
        found = copy.deepcopy(self.objective.likelihood)
        prefix = "objective.likelihood."
        own = {n.removeprefix(prefix): t for n, t in self.named(vector).items() if prefix in n}
        with torch.no_grad():
            for name, parameter in found.named_parameters():
                parameter.copy_(own[name])
        return found

    def load(self, vector: Tensor) -> None:
        """Gives the network and the likelihood the weights of a vector, ``(D,)``."""
        with torch.no_grad():
            for parameter, value in zip(
                self.parameters(), self.named(vector).values(), strict=True
            ):
                parameter.copy_(value)


def at_weights(trained: Trained, vector: Tensor) -> Trained:
    """A copy of a trained network with the weights of a vector, ``(D,)``."""
    found = copy.copy(trained)
    found.network, found.objective = (
        copy.deepcopy(trained.network),
        copy.deepcopy(trained.objective),
    )
    if trained.answering is trained.network:
        found.answering = found.network
    else:  # it has the network inside
        found.answering = copy.deepcopy(trained.answering)
        found.network = _same(trained, found.answering)
    WeightVector(found).load(vector)
    return found


def _same(trained: Trained, answering: nn.Module) -> nn.Module:
    """The network inside a copy of what answers."""
    places = dict(trained.answering.named_modules())
    name = next(place for place, part in places.items() if part is trained.network)
    return answering.get_submodule(name)


class Draw:
    """One draw of the weights as a trained network; several of them share one network in turn.

    The weights are loaded when the network is asked: only one draw may be in use at a time.
    """

    def __init__(self, shared: Trained, weights: WeightVector, vector: Tensor) -> None:
        self._shared, self._weights, self._vector = shared, weights, vector

    def _loaded(self) -> Trained:
        self._weights.load(self._vector)
        return self._shared

    @property
    def network(self) -> nn.Module:
        return self._loaded().network

    @property
    def answering(self) -> nn.Module:
        return self._loaded().answering

    @property
    def objective(self) -> Any:
        return self._loaded().objective

    def __call__(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        return self._loaded()(inputs, offset)


def in_turn(trained: Trained, vectors: Tensor) -> Iterator[Draw]:
    """The draws one by one, of one copy of the network."""
    shared = at_weights(trained, vectors[0])
    weights = WeightVector(shared)
    for vector in vectors:
        yield Draw(shared, weights, vector)
