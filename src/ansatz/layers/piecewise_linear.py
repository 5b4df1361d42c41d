"""Numbers by the bin they fall in and how far: a soft thermometer code."""

import math
from collections.abc import Sequence
from statistics import NormalDist

import torch
from torch import Tensor, nn

from ansatz.layers.feature_linear import FeatureLinear
from ansatz.layers.limits import require_whole


class PiecewiseLinearEmbedding(nn.Module):
    r"""Each number becomes its position in every bin, then a small linear layer.

    .. math:: e_{jt} = \mathrm{clamp}\Big(\frac{x_j - b_{j,t-1}}{b_{jt} - b_{j,t-1}}, 0, 1\Big),
              \qquad t = 1..T

    where the first bin is open below and the last one above, so that extrapolation stays linear;
    the output is :math:`W_j^T e_j + c_j`. What follows is then piecewise linear in each column
    with knots at the edges :math:`b_j`, like a linear spline or a soft decision tree.

    The edges are quantiles of the training rows: give them, or call ``observe(x)`` before
    training. Until then they are those of N(0, 1), right for columns that were standardised and
    are roughly normal. They are saved with the weights.

    Args:
        features: :math:`D`.
        dim: :math:`K`, numbers per feature that come out.
        bins: :math:`T`; a column with fewer distinct quantiles uses fewer.
        edges: ascending edges per column, up to T + 1 numbers each.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, D)``; returns ``(B, D * K)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import PiecewiseLinearEmbedding
        >>> layer = PiecewiseLinearEmbedding(1, bins=2, edges=[torch.tensor([0.0, 1.0, 3.0])])
        >>> layer.encode(torch.tensor([[2.0], [4.0]]))
        tensor([[[1.0000, 0.5000]],
        <BLANKLINE>
                [[1.0000, 1.5000]]])

    References:
        Gorishniy, Rubachev & Babenko (2022), On embeddings for numerical features in tabular deep
        learning, eq. 1. https://arxiv.org/abs/2203.05556
    """

    edges: Tensor

    def __init__(
        self,
        features: int,
        *,
        dim: int = 12,
        bins: int = 16,
        edges: Sequence[Tensor] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_whole("dim of PiecewiseLinearEmbedding", dim)
        require_whole("bins of PiecewiseLinearEmbedding", bins, high=4096)
        self.features, self.bins, self.out_features = features, bins, features * dim
        quantiles = [NormalDist().inv_cdf((t + 0.5) / (bins + 1)) for t in range(bins + 1)]
        edges_of_all = torch.tensor(quantiles).expand(features, -1).clone()  # (D, T + 1)
        self.register_buffer("edges", edges_of_all)
        self.linear = FeatureLinear(features, bins, dim, generator=generator)
        if edges is not None:
            self._set_edges(edges)

    def _set_edges(self, edges: Sequence[Tensor]) -> None:
        if len(edges) != self.features:
            raise ValueError(f"edges are needed for {self.features} columns, got {len(edges)}.")
        for row, given in zip(self.edges, edges, strict=True):
            column = torch.as_tensor(given).to(row).unique()  # ascending
            if not 1 <= len(column) <= self.bins + 1 or not column.isfinite().all():
                raise ValueError(
                    f"edges of a column must be 1 to {self.bins + 1} finite numbers, got {given}."
                )
            # Bins of width zero at the end stand for "no such bin".
            row.copy_(torch.cat([column, column[-1:].expand(len(row) - len(column))]))

    @torch.no_grad()
    def observe(self, x: Tensor) -> None:
        """Sets the edges to the quantiles of each column of x, ``(N, D)``."""
        if x.ndim != 2 or x.shape[1] != self.features or not len(x):
            raise ValueError(f"observe needs x of shape (N, {self.features}), got {x.shape}.")
        levels = torch.linspace(0, 1, self.bins + 1, dtype=torch.float64)
        # Sorting, not torch.quantile, which refuses more than 16 million numbers.
        place = (levels * (len(x) - 1)).round().long().to(x.device)
        self._set_edges(list(x.sort(0).values[place].T))

    def encode(self, x: Tensor) -> Tensor:
        """The code e before the linear layer, ``(B, D, T)``."""
        left, width = self.edges[:, :-1], self.edges.diff()  # (D, T)
        real = width > 0
        last = real & (real.cumsum(-1) == real.sum(-1, keepdim=True))
        low, high = torch.zeros_like(width), torch.ones_like(width)
        low[:, 0] = -math.inf
        high = high.masked_fill(last, math.inf)
        place = (x.unsqueeze(-1) - left) / torch.where(real, width, 1)  # (B, D, T)
        return torch.where(real, torch.clamp(place, low, high), 0)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.encode(x)).flatten(-2)
