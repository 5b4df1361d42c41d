"""Gated layers that are linear in their state, so that a scan computes all steps at once."""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ansatz.layers.init import affine
from ansatz.layers.recurrent import Recurrent, State
from ansatz.layers.scan import scan


class _Gated(Recurrent):
    """h_t = a_t h_{t-1} + (1 - a_t) c_t, with a and c from x_t alone."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        blocks: int,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(in_features, out_features)
        self.linear = affine(
            self.in_features,
            blocks * self.out_features,
            init="lecun_normal",
            generator=generator,
        )

    def gate(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The factor a of the state, and what is added."""
        raise NotImplementedError

    def step(self, state: State, x: Tensor) -> tuple[State, Tensor]:
        a, b = self.gate(x)
        h = torch.addcmul(b, a, state)
        return h, h

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        a, b = self.gate(x)
        if mask is not None:
            present = mask.unsqueeze(-1)
            a, b = torch.where(present, a, 1), torch.where(present, b, 0)
        h = scan(a, b, state)
        return h, h[:, -1]


class MinGRU(_Gated):
    r"""A GRU whose gate and candidate do not see the state.

    .. math:: h_t = (1 - z_t) \odot h_{t-1} + z_t \odot \tilde h_t, \qquad
              z_t = \sigma(W_z x_t + b_z), \quad \tilde h_t = W_h x_t + b_h

    It is linear in the state, so ``scan`` computes all steps at once. It is not an LRU, whose
    factors do not depend on x.

    Args:
        in_features: :math:`D`.
        out_features: :math:`H`.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, T, D)``; mask: ``(B, T)``; state: ``(B, H)``; returns y ``(B, T, H)`` and state.

    Example:
        >>> import torch
        >>> from ansatz.layers import MinGRU
        >>> y, state = MinGRU(3, 8)(torch.randn(2, 1000, 3))
        >>> y.shape
        torch.Size([2, 1000, 8])

    References:
        Feng et al. (2024), Were RNNs all we needed?, section 3.1. https://arxiv.org/abs/2410.01201
    """

    def __init__(
        self, in_features: int, out_features: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(in_features, out_features, 2, generator)

    def gate(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z, candidate = self.linear(x).chunk(2, -1)
        z = torch.sigmoid(z)
        return 1 - z, z * candidate


class MinLSTM(_Gated):
    r"""An LSTM whose gates do not see the state, and sum to one.

    .. math:: h_t = \frac{f_t}{f_t + i_t} \odot h_{t-1} + \frac{i_t}{f_t + i_t} \odot \tilde h_t,
              \qquad f_t, i_t = \sigma(W_{f,i}\, x_t + b_{f,i}), \quad \tilde h_t = W_h x_t + b_h

    Without the normalisation of the gates the scale of h would depend on the length.

    Args:
        in_features: :math:`D`.
        out_features: :math:`H`.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, T, D)``; mask: ``(B, T)``; state: ``(B, H)``; returns y ``(B, T, H)`` and state.

    Example:
        >>> import torch
        >>> from ansatz.layers import MinLSTM
        >>> y, state = MinLSTM(3, 8)(torch.randn(2, 1000, 3))
        >>> y.shape
        torch.Size([2, 1000, 8])

    References:
        Feng et al. (2024), Were RNNs all we needed?, section 3.2. https://arxiv.org/abs/2410.01201
    """

    def __init__(
        self, in_features: int, out_features: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(in_features, out_features, 3, generator)

    def gate(self, x: Tensor) -> tuple[Tensor, Tensor]:
        f, i, candidate = self.linear(x).chunk(3, -1)
        # f / (f + i) = sigma(log f - log i), finite even where both gates are shut.
        kept = torch.sigmoid(logsigmoid(f) - logsigmoid(i))
        return kept, (1 - kept) * candidate
