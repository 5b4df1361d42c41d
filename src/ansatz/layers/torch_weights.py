"""Weights of torch's recurrent layers, under torch's names."""

import torch
from torch import Tensor, nn

from ansatz.layers.recurrent import Recurrent
from ansatz.layers.schemes import draw_uniform


class TorchRecurrent(Recurrent):
    """A recurrent layer with ``gates`` blocks of weights, named and drawn as torch does."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        gates: int,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(in_features, out_features)
        rows = gates * self.out_features
        self.weight_ih_l0 = nn.Parameter(torch.empty(rows, self.in_features))
        self.weight_hh_l0 = nn.Parameter(torch.empty(rows, self.out_features))
        self.bias_ih_l0 = nn.Parameter(torch.empty(rows))
        self.bias_hh_l0 = nn.Parameter(torch.empty(rows))
        for parameter in self.parameters():  # U[-1/sqrt(H), 1/sqrt(H)]
            draw_uniform(parameter, (3 * self.out_features) ** -0.5, generator)

    @property
    def weights(self) -> list[Tensor]:
        """As torch's functions take them."""
        return [self.weight_ih_l0, self.weight_hh_l0, self.bias_ih_l0, self.bias_hh_l0]

    @property
    def bias(self) -> Tensor:
        """The sum of the two biases."""
        return self.bias_ih_l0 + self.bias_hh_l0
