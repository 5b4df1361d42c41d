"""Numbers as waves, so that a network can bend quickly along one column."""

import math

import torch
from torch import Tensor, nn

from ansatz.layers.feature_linear import FeatureLinear
from ansatz.layers.limits import require_positive, require_whole
from ansatz.layers.schemes import draw_normal


class PeriodicEmbedding(nn.Module):
    r"""Each number becomes sines and cosines at learned frequencies, then a small linear layer.

    .. math:: e_j = \mathrm{ReLU}(W_j^T [\sin 2\pi c_j x_j, \; \cos 2\pi c_j x_j] + b_j), \qquad
              c_{jk} \sim N(0, \text{scale}^2) \text{ at the start}

    Args:
        features: :math:`D`.
        dim: :math:`K`, numbers per feature that come out.
        frequencies: length of :math:`c_j`.
        scale: spread of the initial frequencies; the option worth tuning. For standardised x,
            0.01 is nearly linear and 1 wiggles.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, D)``; returns ``(B, D * K)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import PeriodicEmbedding
        >>> PeriodicEmbedding(3, dim=4)(torch.randn(2, 3)).shape
        torch.Size([2, 12])

    References:
        Gorishniy, Rubachev & Babenko (2022), On embeddings for numerical features in tabular deep
        learning, section 3.3. https://arxiv.org/abs/2203.05556
    """

    def __init__(
        self,
        features: int,
        *,
        dim: int = 12,
        frequencies: int = 24,
        scale: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_whole("dim of PeriodicEmbedding", dim)
        require_whole("frequencies of PeriodicEmbedding", frequencies)
        require_positive("scale of PeriodicEmbedding", scale)
        self.out_features = features * dim
        start = draw_normal(torch.empty(features, frequencies), scale, generator)
        self.frequencies = nn.Parameter(start)
        self.linear = FeatureLinear(features, 2 * frequencies, dim, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        angle = 2 * math.pi * self.frequencies * x.unsqueeze(-1)  # (B, D, F)
        waves = torch.cat([angle.sin(), angle.cos()], -1)  # (B, D, 2F)
        return self.linear(waves).relu().flatten(-2)
