"""The plain recurrent layer."""

from typing import Literal, get_args

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.layers.recurrent import State, last_present
from ansatz.layers.torch_weights import TorchRecurrent

Activation = Literal["tanh", "relu"]


class Elman(TorchRecurrent):
    r"""Elman's recurrent layer; ``torch.nn.RNN`` with the names of its weights.

    .. math:: h_t = \phi(W x_t + b + U h_{t-1} + d)

    The derivative of :math:`h_t` in an earlier state is a product of
    :math:`\mathrm{diag}(\phi') U`. It vanishes if the largest singular value of U is
    below :math:`1 / \max \phi'`; it can explode only if that is above.

    Args:
        in_features: :math:`D`.
        out_features: :math:`H`.
        activation: :math:`\phi`.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, T, D)``; mask: ``(B, T)``; state: ``(B, H)``; returns y ``(B, T, H)`` and state.

    Example:
        >>> import torch
        >>> from ansatz.layers import Elman
        >>> y, state = Elman(3, 8)(torch.randn(2, 5, 3))
        >>> y.shape, bool((y[:, -1] == state).all())
        (torch.Size([2, 5, 8]), True)

    References:
        Elman (1990), Finding structure in time.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        activation: Activation = "tanh",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(in_features, out_features, 1, generator)
        if activation not in get_args(Activation):
            raise UsageError(f"activation of Elman must be tanh or relu, got {activation!r}.")
        self.activation = activation

    def step(self, state: State, x: Tensor) -> tuple[State, Tensor]:
        cell = torch.rnn_tanh_cell if self.activation == "tanh" else torch.rnn_relu_cell
        h = cell(x, state, *self.weights)
        return h, h

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        layer = torch.rnn_tanh if self.activation == "tanh" else torch.rnn_relu
        y, _ = layer(x, state.unsqueeze(0), self.weights, True, 1, 0.0, False, False, True)
        return y, last_present(y, mask, state)
