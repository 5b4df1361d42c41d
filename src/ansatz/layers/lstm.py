"""Long short-term memory and its variants."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from ansatz.errors import UsageError
from ansatz.layers.recurrent import State, keep, last_present
from ansatz.layers.schemes import draw_uniform
from ansatz.layers.torch_weights import TorchRecurrent

Output = Literal["tanh", "plain", "matrix"]
_FAR = 1e4  # a gate there is 0 or 1 exactly


class LSTM(TorchRecurrent):
    r"""Long short-term memory; by default ``torch.nn.LSTM`` with the names of its weights.

    .. math::
        i_t, f_t, o_t &= \sigma(W_{i,f,o}\, x_t + U_{i,f,o} h_{t-1} + b_{i,f,o}) \\
        c_t &= f_t \odot c_{t-1} + i_t \odot \tanh(W_g x_t + U_g h_{t-1} + b_g) \\
        h_t &= o_t \odot \tanh(c_t)

    With a forget gate of one and an input gate of zero, c stays as it is for any number of steps.

    Args:
        in_features: :math:`D`.
        out_features: :math:`H`.
        output: h from c: ``"tanh"`` as above; ``"plain"``, :math:`o \odot c`; or ``"matrix"``,
            :math:`o \odot \tanh(V c)` with one more matrix. Textbooks print all three.
        norm: ``"layer"`` normalises W x and U h, each over its 4H numbers, and c before the output.
        peephole: gates see c as well: i and f have :math:`p \odot c_{t-1}` added, o has
            :math:`p \odot c_t`.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, T, D)``; mask: ``(B, T)``; state: (h, c), each ``(B, H)``.
        - returns: y ``(B, T, H)``, the h of all steps, and the state.

    Example:
        >>> import torch
        >>> from ansatz.layers import LSTM
        >>> y, (h, c) = LSTM(3, 8)(torch.randn(2, 5, 3))
        >>> y.shape, c.shape
        (torch.Size([2, 5, 8]), torch.Size([2, 8]))

    References:
        Hochreiter & Schmidhuber (1997), Long short-term memory; Gers, Schmidhuber & Cummins (2000),
        Learning to forget; Gers, Schraudolph & Schmidhuber (2002), Learning precise timing with
        LSTM recurrent networks (peepholes); Ba, Kiros & Hinton (2016), Layer normalization,
        eqs. 20 to 22. https://arxiv.org/abs/1607.06450
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        output: Output = "tanh",
        norm: Literal["layer"] | None = None,
        peephole: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(in_features, out_features, 4, generator)
        if output not in get_args(Output):
            raise UsageError(f"output of LSTM must be tanh, plain or matrix, got {output!r}.")
        if norm not in (None, "layer"):
            raise UsageError(f"norm of LSTM must be None or layer, got {norm!r}.")
        H = self.out_features
        self.output, self.is_torchs = output, output == "tanh" and not norm and not peephole
        self.peephole = nn.Parameter(torch.empty(3, H)) if peephole else None  # of i, f, o
        self.readout = nn.Parameter(torch.empty(H, H)) if output == "matrix" else None
        for extra in (self.peephole, self.readout):
            if extra is not None:
                draw_uniform(extra, (3 * H) ** -0.5, generator)
        self.norm_x, self.norm_h, self.norm_c = (
            nn.LayerNorm(n) if norm else None for n in (4 * H, 4 * H, H)
        )

    def initial(self, x: Tensor) -> State:
        return super().initial(x), super().initial(x)

    def step(self, state: State, x: Tensor) -> tuple[State, Tensor]:
        if self.is_torchs:
            state = torch.lstm_cell(x, state, *self.weights)
        else:
            state = self._variant(self._inputs(x), self.weight_hh_l0.t(), *state)
        return state, state[0]

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        if self.is_torchs:
            return self._run_torchs(x, state, mask)
        outputs, U = [], self.weight_hh_l0.t()
        for t, inputs in enumerate(self._inputs(x).unbind(1)):
            new = self._variant(inputs, U, *state)
            state = new if mask is None else keep(mask[:, t], new, state)
            outputs.append(new[0])
        return torch.stack(outputs, 1), state

    def _run_torchs(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        weights = self.weights
        if mask is not None:
            # One more input, 1 where a step is absent, shuts the gate i and opens f: c stays.
            x = torch.cat([x, ~mask.unsqueeze(-1)], -1)
            gates = weights[0].new_tensor([-_FAR, _FAR, 0, 0]).repeat_interleave(self.out_features)
            weights[0] = torch.cat([weights[0], gates.unsqueeze(1)], 1)
        start = [s.unsqueeze(0) for s in state]
        y, _, c = torch.lstm(x, start, weights, True, 1, 0.0, False, False, True)
        return y, (last_present(y, mask, state[0]), c.squeeze(0))

    def _inputs(self, x: Tensor) -> Tensor:
        if self.norm_x is None:
            return linear(x, self.weight_ih_l0, self.bias)
        return self.norm_x(linear(x, self.weight_ih_l0)) + self.bias

    def _variant(self, inputs: Tensor, U: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.addmm(inputs, h, U) if self.norm_h is None else inputs + self.norm_h(h @ U)
        gates, g, o = z.split((2 * self.out_features, self.out_features, self.out_features), 1)
        if self.peephole is None:
            i, f = torch.sigmoid(gates).chunk(2, 1)
        else:
            gates = torch.addcmul(gates.unflatten(1, (2, -1)), self.peephole[:2], c.unsqueeze(1))
            i, f = torch.sigmoid(gates).unbind(1)
        c = torch.addcmul(f * c, i, torch.tanh(g))
        if self.peephole is not None:
            o = torch.addcmul(o, self.peephole[2], c)
        out = c if self.norm_c is None else self.norm_c(c)
        if self.readout is not None:
            out = linear(out, self.readout)
        return torch.sigmoid(o) * (out if self.output == "plain" else torch.tanh(out)), c
