"""Affine layers: of all features, and one for each feature."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.norm import Norm, normalize
from ansatz.layers.registry import activations
from ansatz.layers.schemes import draw_normal


class Dense(nn.Module):
    r"""A fully connected hidden layer.

    .. math:: y = \phi(N(W x + b))

    with :math:`\phi` the activation and N the normalisation (the identity by default).

    Args:
        in_features: :math:`D`.
        out_features: :math:`K`.
        activation: a name from ``ansatz.layers.activations``.
        activation_options: its options, such as ``{"beta": 0.4}`` for swish.
        norm: ``"batch"``, ``"layer"``, ``"rms"``, ``"weight"`` or None.
        dropout: probability that an output unit is dropped while training.
        init: name of the initialisation of W.
        bias: the value that b starts at.
        generator: where W is drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, D)``; returns ``(B, K)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Dense
        >>> Dense(3, 8, activation="gelu", norm="layer")(torch.randn(2, 3)).shape
        torch.Size([2, 8])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        activation: str = "silu",
        activation_options: Mapping[str, Any] | None = None,
        norm: Norm | None = None,
        dropout: float = 0.0,
        init: str = "he_normal",
        bias: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.linear = affine(in_features, out_features, init=init, bias=bias, generator=generator)
        self.norm = normalize(self.linear, norm)
        self.activation = activations.create(activation, **(activation_options or {}))
        self.dropout = drop(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.activation(self.norm(self.linear(x))))


def drop(p: float) -> nn.Module:
    """``torch.nn.Dropout(p)``, or the identity for p = 0, which costs nothing."""
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p < 1:
        raise UsageError(f"dropout must be a number in [0, 1), got {p!r}.")
    return nn.Dropout(p) if p else nn.Identity()


class FeatureLinear(nn.Module):
    r"""A separate affine map for each of D features.

    .. math:: y_{bj} = W_j^T x_{bj} + b_j, \qquad W_j \in \mathbb{R}^{T \times K}

    Args:
        features: :math:`D`.
        in_features: :math:`T`, numbers that describe a feature.
        out_features: :math:`K`, numbers that it is mapped to.
        generator: where the weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, D, T)``; returns ``(B, D, K)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import FeatureLinear
        >>> FeatureLinear(5, 3, 2)(torch.randn(4, 5, 3)).shape
        torch.Size([4, 5, 2])
    """

    def __init__(
        self,
        features: int,
        in_features: int,
        out_features: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        W = torch.empty(features, in_features, out_features)  # (D, T, K)
        # LeCun's scheme for each feature's own map.
        self.weight = nn.Parameter(draw_normal(W, in_features**-0.5, generator))
        self.bias = nn.Parameter(torch.zeros(features, out_features))

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("bjt,jtk->bjk", x, self.weight) + self.bias
