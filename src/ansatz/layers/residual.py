"""Layers with a skip connection: residual and highway."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.dense import Dense, drop
from ansatz.layers.init import affine
from ansatz.layers.norm import Norm


class Residual(nn.Module):
    r"""A residual layer: it adds to its input.

    .. math:: y = P x + \phi(N(W x + b)) - \phi(0)

    The offset :math:`\phi(0)` (1/2 for the sigmoid, log 2 for softplus, 0 for most) makes W = 0,
    b = 0 the identity for *every* activation. P is the identity where the sizes agree, else a
    learned projection that starts orthogonal, so that it too keeps norms where it can.

    ``Residual(module)`` adds any module to the identity, :math:`y = x + m(x)`.

    Args:
        in_features: :math:`D`; or a module that keeps the shape of x, with ``dropout`` as the only
            option.
        out_features: :math:`K`; D when not given.
        activation: a name from ``ansatz.layers.activations``.
        activation_options: its options.
        norm: ``"batch"``, ``"layer"``, ``"rms"``, ``"weight"`` or None; on the added part only.
        dropout: probability that a unit of the added part is dropped while training.
        init: name of the initialisation of W.
        bias: the value that b starts at.
        generator: where W and P are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, D)``; returns ``(B, K)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Residual
        >>> Residual(2, activation="sigmoid", init="zeros")(torch.tensor([[3.0, -1.0]]))
        tensor([[ 3., -1.]], grad_fn=<AddBackward0>)

    References:
        He et al. (2016), Deep residual learning for image recognition.
        https://arxiv.org/abs/1512.03385
    """

    def __init__(
        self,
        in_features: int | nn.Module,
        out_features: int | None = None,
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
        self.dropout, self.given = drop(dropout), isinstance(in_features, nn.Module)
        if isinstance(in_features, nn.Module):
            others = (out_features, activation, activation_options, norm, init, bias, generator)
            if others != (None, "silu", None, None, "he_normal", 0.0, None):
                raise UsageError("Residual(module) takes dropout and no other option.")
            self.branch: Any = in_features
            self.skip: nn.Module = nn.Identity()
            return
        self.in_features, self.out_features = in_features, out_features or in_features
        self.branch = Dense(
            in_features,
            self.out_features,
            activation=activation,
            activation_options=activation_options,
            norm=norm,
            init=init,
            bias=bias,
            generator=generator,
        )
        self.skip = projection(in_features, self.out_features, generator)

    def forward(self, x: Tensor) -> Tensor:
        if self.given:
            added = self.branch(x)
            if added.shape != x.shape:
                raise ValueError(
                    f"Residual(module) needs a module that keeps the shape of x, "
                    f"{tuple(x.shape)}, got {tuple(added.shape)}."
                )
            return x + self.dropout(added)
        origin = self.branch.activation(x.new_zeros(self.out_features))  # phi(0), (K,)
        return self.skip(x) + self.dropout(self.branch(x) - origin)


def projection(
    in_features: int, out_features: int, generator: torch.Generator | None = None
) -> nn.Module:
    """The identity where the sizes agree, else an orthogonal linear map to be learned."""
    if in_features == out_features:
        return nn.Identity()
    return affine(in_features, out_features, init="orthogonal", bias=None, generator=generator)


class Highway(nn.Module):
    r"""A layer with a learned gate between the plain layer and the identity.

    .. math:: y = T \odot \phi(N(W x + b)) + (1 - T) \odot P x, \qquad
              T = \sigma(V x + c + c_0)

    T = 0 is the identity, T = 1 the plain layer. The gate starts at :math:`\sigma(c_0)`, mostly
    carrying. P is the identity where the sizes agree, else a learned projection.

    Args:
        in_features: :math:`D`.
        out_features: :math:`K`; D when not given.
        activation: a name from ``ansatz.layers.activations``.
        activation_options: its options.
        norm: ``"batch"``, ``"layer"``, ``"rms"``, ``"weight"`` or None; inside phi only.
        dropout: probability that a unit of the transformed part is dropped while training.
        init: name of the initialisation of W and V.
        bias: the value that b starts at; c starts at 0.
        gate_bias: :math:`c_0`.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, D)``; returns ``(B, K)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Highway
        >>> Highway(2, gate_bias=-100.0)(torch.tensor([[3.0, -1.0]]))
        tensor([[ 3., -1.]], grad_fn=<LerpBackward1>)

    References:
        Srivastava, Greff & Schmidhuber (2015), Highway networks, eq. 3.
        https://arxiv.org/abs/1505.00387
    """

    def __init__(
        self,
        in_features: int,
        out_features: int | None = None,
        *,
        activation: str = "silu",
        activation_options: Mapping[str, Any] | None = None,
        norm: Norm | None = None,
        dropout: float = 0.0,
        init: str = "he_normal",
        bias: float = 0.0,
        gate_bias: float = -1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features or in_features
        self.branch = Dense(
            in_features,
            self.out_features,
            activation=activation,
            activation_options=activation_options,
            norm=norm,
            dropout=dropout,
            init=init,
            bias=bias,
            generator=generator,
        )
        self.gate = affine(in_features, self.out_features, init=init, generator=generator)
        self.gate_bias = gate_bias
        self.skip = projection(in_features, self.out_features, generator)

    def forward(self, x: Tensor) -> Tensor:
        T = torch.sigmoid(self.gate(x) + self.gate_bias)  # (B, K)
        return torch.lerp(self.skip(x), self.branch(x), T)
