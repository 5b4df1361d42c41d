"""Dense connectivity: each layer sees all that came before it."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.layers.dense import Dense
from ansatz.layers.norm import Norm


class DenseBlock(nn.Module):
    r"""Layers that append to their input instead of replacing it.

    .. math:: x^{\ell + 1} = [x^\ell, \; \phi(N(W^\ell x^\ell + b^\ell))], \qquad x^0 = x

    so layer :math:`\ell` reads :math:`D + \ell G` features and the block returns D + L G.

    Args:
        in_features: :math:`D`.
        growth: :math:`G`, features that each layer appends.
        depth: :math:`L`, number of layers.
        activation: a name from ``ansatz.layers.activations``.
        activation_options: its options.
        norm: ``"batch"``, ``"layer"``, ``"rms"``, ``"weight"`` or None.
        dropout: probability that a new feature is dropped while training.
        init: name of the initialisation.
        bias: the value that the biases start at.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, D)``; returns ``(B, D + L * G)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import DenseBlock
        >>> DenseBlock(3, 4, depth=2)(torch.randn(2, 3)).shape
        torch.Size([2, 11])

    References:
        Huang et al. (2017), Densely connected convolutional networks, eq. 2.
        https://arxiv.org/abs/1608.06993
    """

    def __init__(
        self,
        in_features: int,
        growth: int,
        *,
        depth: int = 1,
        activation: str = "silu",
        activation_options: Mapping[str, Any] | None = None,
        norm: Norm | None = None,
        dropout: float = 0.0,
        init: str = "he_normal",
        bias: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, in_features + depth * growth
        self.layers = nn.ModuleList(
            Dense(
                in_features + i * growth,
                growth,
                activation=activation,
                activation_options=activation_options,
                norm=norm,
                dropout=dropout,
                init=init,
                bias=bias,
                generator=generator,
            )
            for i in range(depth)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], -1)
        return x
