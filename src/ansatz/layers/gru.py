"""The gated recurrent unit, in both of its forms."""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import linear

from ansatz.errors import UsageError
from ansatz.layers.recurrent import State, keep, last_present
from ansatz.layers.torch_weights import TorchRecurrent

Reset = Literal["after", "before"]


class GRU(TorchRecurrent):
    r"""The gated recurrent unit; ``torch.nn.GRU`` with the names of its weights.

    .. math::
        r_t, z_t &= \sigma(W_{r,z}\, x_t + U_{r,z} h_{t-1} + b_{r,z}) \\
        h_t &= z_t \odot h_{t-1} + (1 - z_t) \odot \tilde h_t

    The candidate resets the state after the matrix product (torch; Keras' default) or before it
    (the paper; Keras' ``reset_after=False``). They are equal only for a diagonal matrix:

    .. math::
        \text{after: } \tilde h_t &= \tanh(W_n x_t + b_n + r_t \odot (U_n h_{t-1} + d_n)) \\
        \text{before: } \tilde h_t &= \tanh(W_n x_t + b_n + U_n (r_t \odot h_{t-1}) + d_n)

    Args:
        in_features: :math:`D`.
        out_features: :math:`H`.
        reset: where the reset gate acts.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, T, D)``; mask: ``(B, T)``; state: ``(B, H)``; returns y ``(B, T, H)`` and state.

    Example:
        >>> import torch
        >>> from ansatz.layers import GRU
        >>> y, state = GRU(3, 8, reset="before")(torch.randn(2, 5, 3))
        >>> y.shape
        torch.Size([2, 5, 8])

    References:
        Cho et al. (2014), Learning phrase representations using RNN encoder-decoder, eqs. 5 to 8.
        https://arxiv.org/abs/1406.1078
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        reset: Reset = "after",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(in_features, out_features, 3, generator)
        if reset not in get_args(Reset):
            raise UsageError(f"reset of GRU must be after or before, got {reset!r}.")
        self.reset = reset

    def step(self, state: State, x: Tensor) -> tuple[State, Tensor]:
        if self.reset == "after":
            h = torch.gru_cell(x, state, *self.weights)
        else:
            h = self._reset_before(linear(x, self.weight_ih_l0, self.bias), state)
        return h, h

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        if self.reset == "after":
            start = state.unsqueeze(0)
            y, _ = torch.gru(x, start, self.weights, True, 1, 0.0, False, False, True)
            return y, last_present(y, mask, state)
        outputs = []
        for t, inputs in enumerate(linear(x, self.weight_ih_l0, self.bias).unbind(1)):
            h = self._reset_before(inputs, state)
            state = h if mask is None else keep(mask[:, t], h, state)
            outputs.append(h)
        return torch.stack(outputs, 1), state

    def _reset_before(self, inputs: Tensor, h: Tensor) -> Tensor:
        U, split = self.weight_hh_l0, 2 * self.out_features
        r, z = torch.sigmoid(torch.addmm(inputs[:, :split], h, U[:split].t())).chunk(2, 1)
        candidate = torch.tanh(torch.addmm(inputs[:, split:], r * h, U[split:].t()))
        return torch.lerp(candidate, h, z)
