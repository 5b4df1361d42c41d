"""Filters of the eigenvalues of the Laplacian, by polynomials and by eigenvectors."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.edges import Edges
from ansatz.layers.graphs.gcn import root_degrees, smooth
from ansatz.layers.graphs.node_features import Features
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole

MAX_NODES = 3000  # of a graph whose eigenvectors are computed: n^3 operations


class ChebConv(nn.Module):
    r"""A polynomial filter of the Laplacian, in Chebyshev's polynomials.

    .. math:: X' = \sum_{k=0}^K T_k(\hat L) X W_k^\top + b, \qquad
              \hat L = L - I = -D^{-1/2} A D^{-1/2}

    with :math:`T_0 = 1, T_1 = \hat L, T_k = 2 \hat L T_{k-1} - T_{k-2}`: K + 1 coefficients for
    each pair of channels, and neighbours up to K steps away. The largest eigenvalue of the
    normalised Laplacian L is taken to be 2, its bound. The sum is computed by Clenshaw's
    recurrence, on the outputs.

    Args:
        in_features: features of a node, :math:`D`.
        out_features: features that a node gets.
        order: :math:`K`.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, D)``, or sparse rows; returns ``(N, out_features)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import ChebConv
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> ChebConv(4, 2, order=2)(torch.randn(3, 4), path).shape
        torch.Size([3, 2])

    References:
        Defferrard, Bresson & Vandergheynst (2016), Convolutional neural networks on graphs with
        fast localized spectral filtering, eq. 4. https://arxiv.org/abs/1606.09375
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        order: int = 2,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_whole("order of ChebConv", order, low=0, high=100)
        self.lins = nn.ModuleList(
            affine(
                in_features, out_features, init="glorot_uniform", gain=(order + 1) ** -0.5,
                bias=None, generator=generator,
            )
            for _ in range(order + 1)
        )  # fmt: skip
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x: Features, edges: Edges) -> Tensor:
        weight = torch.cat([lin.get_parameter("weight") for lin in self.lins])  # all orders
        mapped = x @ weight.T if isinstance(x, Tensor) else x @ weight.T.contiguous()
        parts = mapped.chunk(len(self.lins), 1)
        later = last = torch.zeros_like(parts[0])
        for part in parts[:0:-1]:  # b_k = c_k + 2 L b_{k+1} - b_{k+2}
            later, last = part - 2 * smooth(edges, later, loops=0.0) - last, later
        return parts[0] - smooth(edges, later, loops=0.0) - last + self.bias


class Spectrum(NamedTuple):
    """Eigenvalues and eigenvectors of the normalised Laplacians of graphs side by side.

    Args:
        values: of each graph, rising, ``(n,)``, between 0 and 2.
        vectors: of each graph, columns of ``(n, n)``.
    """

    values: list[Tensor]
    vectors: list[Tensor]


def spectrum(edges: Edges, offsets: Tensor, dtype: torch.dtype) -> Spectrum:
    """Decomposes the normalised Laplacian of each graph; its edges must lead both ways.

    Args:
        edges: of all graphs, symmetric.
        offsets: ``(G + 1,)``, the first node of each.
        dtype: of the result; the computation is in float64.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import spectrum
        >>> pair = Edges.of(torch.tensor([[0], [1]]), 2, undirected=True)
        >>> spectrum(pair, torch.tensor([0, 2]), torch.float32).values
        [tensor([0., 2.])]
    """
    sizes = offsets.diff()
    if len(sizes) and int(sizes.max()) > MAX_NODES:
        raise UsageError(
            f"spectral filters need the eigenvectors of a graph: up to {MAX_NODES} nodes, got "
            f"{int(sizes.max())}; chebnet filters without them."
        )
    scale = root_degrees(edges, torch.float64, loops=0.0).squeeze(1)
    weight = torch.ones_like(edges.source, dtype=torch.float64)
    weight = weight if edges.weight is None else edges.weight.double()
    values, vectors = [], []
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        own = slice(int(edges.offsets[start]), int(edges.offsets[end]))
        matrix = torch.zeros(end - start, end - start, dtype=torch.float64, device=scale.device)
        place = (edges.destination[own] - start, edges.source[own] - start)
        matrix.index_put_(place, weight[own], accumulate=True)
        if not torch.allclose(matrix, matrix.T):
            raise UsageError("spectral filters need edges that lead both ways, of one weight.")
        root = scale[start:end]  # of a node without edges 0, and so is its row of L
        found = torch.linalg.eigh(torch.diag((root > 0).double()) - root[:, None] * matrix * root)
        values.append(found.eigenvalues.to(dtype))
        vectors.append(found.eigenvectors.to(dtype))
    return Spectrum(values, vectors)


class SpectralConv(nn.Module):
    r"""A filter of the eigenvalues of the Laplacian, for each pair of channels.

    .. math:: X' = U \Bigl(\sum_{k=1}^K \mathrm{diag}(h_k(\lambda)) \, U^\top X \, W_k^\top \Bigr)
              + b, \qquad L = U \, \mathrm{diag}(\lambda) \, U^\top

    The filter :math:`\sum_k W_k h_k(\lambda)` is a continuous function of the eigenvalue, linear
    between K places in [0, 2], so it means the same on every graph and does not depend on how the
    eigenvectors of a repeated eigenvalue were chosen. It is not local.

    Args:
        in_features: features of a node, :math:`D`.
        out_features: features that a node gets.
        knots: :math:`K`, from 2.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, D)``, or sparse rows.
        - basis: what :func:`~ansatz.layers.graphs.spectrum` returns.
        - returns: ``(N, out_features)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.layers.graphs import SpectralConv, spectrum
        >>> path = GraphBatch.of(
        ...     torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]]), undirected=True
        ... )
        >>> basis = spectrum(path.edges, path.offsets, torch.float32)
        >>> SpectralConv(4, 2)(path.x, basis).shape
        torch.Size([3, 2])

    References:
        Bruna et al. (2014), Spectral networks and locally connected networks on graphs, eq. 3.2.
        https://arxiv.org/abs/1312.6203
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        knots: int = 5,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.knots = require_whole("knots of SpectralConv", knots, low=2, high=1000)
        self.lin = affine(
            in_features, knots * out_features, init="glorot_uniform", bias=None, generator=generator
        )
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x: Features, basis: Spectrum) -> Tensor:
        mapped = x @ self.lin.weight.T if isinstance(x, Tensor) else x @ self.lin.weight.T.clone()
        sizes = [len(values) for values in basis.values]
        found = [
            vectors @ (self.hats(values) * (vectors.T @ own).unflatten(1, (self.knots, -1))).sum(1)
            for values, vectors, own in zip(*basis, mapped.split(sizes), strict=True)
        ]
        return torch.cat([mapped.new_zeros(0, len(self.bias)), *found]) + self.bias

    def hats(self, values: Tensor) -> Tensor:
        """The share of each knot at each eigenvalue, ``(n, K, 1)``; those of a value sum to 1."""
        knots = torch.arange(self.knots, dtype=values.dtype, device=values.device)
        place = values.clamp(0, 2) * ((self.knots - 1) / 2)
        return (1 - (place.unsqueeze(1) - knots).abs()).clamp(min=0).unsqueeze(2)
