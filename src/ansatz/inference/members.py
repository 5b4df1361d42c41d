"""Several networks of one shape as one: parameters with a leading axis."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ansatz.networks import MLP


class Members(nn.Module):
    """S plain multilayer perceptrons side by side, all products of a layer in one call.

    Args:
        networks: the members, of one shape; their weights are copied.

    Attributes:
        weights: ``(S, out, in)`` for each layer, the output layer's last.
        biases: ``(S, out)`` for each layer.

    Shapes:
        - x: ``(B, D)`` for all members, or ``(S, B, D)``, rows of its own for each.
        - returns: ``(S, B, P)``.
    """

    def __init__(self, networks: Sequence[MLP]) -> None:
        super().__init__()
        layers = [_linears(network) for network in networks]
        self.activation = networks[0].activation
        self.weights = nn.ParameterList(
            torch.stack([layer.weight.detach() for layer in same])
            for same in zip(*layers, strict=True)
        )
        self.biases = nn.ParameterList(
            torch.stack([layer.bias.detach() for layer in same])
            for same in zip(*layers, strict=True)
        )

    def __len__(self) -> int:
        return len(self.biases[0])

    def forward(self, x: Tensor) -> Tensor:
        h = x.expand(len(self), *x.shape) if x.ndim == 2 else x
        last = len(self.weights) - 1
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = torch.baddbmm(bias.unsqueeze(1), h, weight.transpose(1, 2))
            if place < last:
                h = self.activation(h)
        return h

    def select(self, chosen: Tensor) -> "Members":
        """The members with these numbers, as copies."""
        some = copy.copy(self)
        some._modules = dict(self._modules)
        some.weights = nn.ParameterList(weight.detach()[chosen] for weight in self.weights)
        some.biases = nn.ParameterList(bias.detach()[chosen] for bias in self.biases)
        return some

    def member(self, number: int, like: MLP) -> MLP:
        """Member ``number`` as a network by itself, a copy of ``like`` with its weights."""
        network = copy.deepcopy(like)
        with torch.no_grad():
            for linear, weight, bias in zip(
                _linears(network), self.weights, self.biases, strict=True
            ):
                linear.weight.copy_(weight[number])
                linear.bias.copy_(bias[number])
        return network


def _linears(network: MLP) -> list[nn.Linear]:
    return [*network.hidden, network.output]
