"""One small affine map per feature."""

import torch
from torch import Tensor, nn

from ansatz.layers.schemes import draw_normal


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
