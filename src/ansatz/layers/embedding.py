"""Embeddings of categories and of numbers."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal

import torch
from torch import Tensor, nn

from ansatz.errors import DataError
from ansatz.layers.dense import FeatureLinear
from ansatz.layers.limits import require_positive, require_whole
from ansatz.layers.schemes import draw_normal


class CategoryEmbedding(nn.Module):
    r"""Each level of each categorical column is a learned vector.

    Column c with n levels has a table of n + 1 rows: code 0 is the unknown level, whose vector
    starts at zero (no information) and is learned if unknown values occur in training; codes
    1..n are the levels. A level's vector starts with :math:`N(0, 1/K_c)` entries, of norm about
    1, as its one-hot code would have.

    Args:
        cardinalities: n for each column.
        dim: :math:`K_c`, the same for all columns; when not given
            :math:`\min(50, \mathrm{round}(1.6\, n^{0.56}))`, a rule of thumb.
        init: ``"zeros"`` starts the levels too at zero.
        generator: where the vectors are drawn from; torch's global one when not given.

    Shapes:
        - codes: ``(B, C)`` whole numbers.
        - returns: ``(B, sum of K_c)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import CategoryEmbedding
        >>> CategoryEmbedding([3, 100], dim=4)(torch.tensor([[0, 100]]))[0, :4]
        tensor([0., 0., 0., 0.], grad_fn=<SliceBackward0>)

    References:
        Guo & Berkhahn (2016), Entity embeddings of categorical variables.
        https://arxiv.org/abs/1604.06737
    """

    def __init__(
        self,
        cardinalities: Sequence[int],
        *,
        dim: int | None = None,
        init: Literal["normal", "zeros"] = "normal",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        for n in cardinalities:
            require_whole("cardinality of a column", n, low=0, high=2**31)
        if dim is not None:
            require_whole("dim of CategoryEmbedding", dim)
        self.cardinalities = tuple(cardinalities)
        dims = [rule_of_thumb(n) if dim is None else dim for n in cardinalities]
        self.out_features = sum(dims)
        self.tables = nn.ModuleList(
            _table(n + 1, k, init, generator) for n, k in zip(cardinalities, dims, strict=True)
        )

    def forward(self, codes: Tensor) -> Tensor:
        if codes.ndim != 2 or codes.shape[1] != len(self.tables):
            raise ValueError(
                f"codes must have shape (B, {len(self.tables)}), got {tuple(codes.shape)}."
            )
        try:
            parts = [table(codes[:, c]) for c, table in enumerate(self.tables)]
        except IndexError:  # torch's own says neither which code nor which column
            raise DataError(self._out_of_range(codes)) from None
        return torch.cat(parts, -1)

    def _out_of_range(self, codes: Tensor) -> str:
        top = torch.tensor(self.cardinalities, device=codes.device)
        row, column = ((codes < 0) | (codes > top)).nonzero()[0].tolist()
        return (
            f"codes of column {column} must be in 0..{self.cardinalities[column]}, "
            f"got {codes[row, column].item()} in row {row}; code an unseen level as 0."
        )


def _table(rows: int, dim: int, init: str, generator: torch.Generator | None) -> nn.Embedding:
    vectors = torch.zeros(rows, dim)
    if init == "normal":
        draw_normal(vectors[1:], dim**-0.5, generator)
    return nn.Embedding.from_pretrained(vectors, freeze=False)


def rule_of_thumb(cardinality: int) -> int:
    """The length of the embedding of a column, by its number of levels."""
    return max(1, min(50, round(1.6 * cardinality**0.56)))


class PeriodicEmbedding(nn.Module):
    r"""Each number becomes sines and cosines at learned frequencies, then a small linear layer.

    .. math:: e_j = \mathrm{ReLU}(W_j^T [\sin 2\pi c_j x_j, \; \cos 2\pi c_j x_j] + b_j), \qquad
              c_{jk} \sim N(0, \text{scale}^2) \text{ at the start}

    Args:
        features: :math:`D`.
        dim: :math:`K`, numbers per feature that come out.
        frequencies: length of :math:`c_j`.
        scale: standard deviation of the initial frequencies; the option worth tuning. For
            standardised x, 0.01 is nearly linear and 1 wiggles.
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
