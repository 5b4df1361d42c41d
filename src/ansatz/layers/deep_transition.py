"""A recurrent layer whose step is a network of several layers."""

import torch
from torch import Tensor, nn

from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.layers.recurrent import Recurrent, State, keep


class DeepTransition(Recurrent):
    r"""A recurrent layer whose transition from state to state is an MLP.

    .. math:: u_1 = \tanh(W x_t + U h_{t-1} + b), \qquad u_l = \tanh(U_l u_{l-1} + b_l), \qquad
              h_t = u_L

    With L = 1 it is ``Elman``. A step applies L layers, so a gradient over k steps passes L k.

    Args:
        in_features: :math:`D`.
        out_features: :math:`H`.
        depth: :math:`L`.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, T, D)``; mask: ``(B, T)``; state: ``(B, H)``; returns y ``(B, T, H)`` and state.

    Example:
        >>> import torch
        >>> from ansatz.layers import DeepTransition
        >>> y, state = DeepTransition(3, 8, depth=3)(torch.randn(2, 5, 3))
        >>> y.shape
        torch.Size([2, 5, 8])

    References:
        Pascanu, Gulcehre, Cho & Bengio (2014), How to construct deep recurrent neural networks,
        section 3.1. https://arxiv.org/abs/1312.6026
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        depth: int = 2,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(in_features, out_features)
        require_whole("depth of DeepTransition", depth, high=1024)
        H, start = self.out_features, {"init": "glorot_uniform", "generator": generator}
        self.inputs = affine(self.in_features, H, **start)  # type: ignore[arg-type]
        self.state = affine(H, H, bias=None, **start)  # type: ignore[arg-type]
        self.deeper = nn.ModuleList(
            affine(H, H, **start)  # type: ignore[arg-type]
            for _ in range(depth - 1)
        )

    def step(self, state: State, x: Tensor) -> tuple[State, Tensor]:
        h = self._transit(self.inputs(x), state)
        return h, h

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        outputs = []
        for t, inputs in enumerate(self.inputs(x).unbind(1)):
            h = self._transit(inputs, state)
            state = h if mask is None else keep(mask[:, t], h, state)
            outputs.append(h)
        return torch.stack(outputs, 1), state

    def _transit(self, inputs: Tensor, h: Tensor) -> Tensor:
        h = torch.tanh(torch.addmm(inputs, h, self.state.weight.t()))
        for layer in self.deeper:
            h = torch.tanh(layer(h))
        return h
