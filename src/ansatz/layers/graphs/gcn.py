"""Graph convolutions whose matrix is normalised on both sides."""

import torch
from torch import Tensor, nn

from ansatz.layers.edges import Edges
from ansatz.layers.graphs.node_features import Features, map_nodes
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole


def root_degrees(edges: Edges, dtype: torch.dtype, loops: float = 1.0) -> Tensor:
    """One over the root of each node's degree with ``loops`` added, ``(N, 1)``; 0 of degree 0."""
    degree = edges.degree.to(dtype) + loops
    found = torch.where(degree > 0, degree, 1.0).rsqrt()
    return torch.where(degree > 0, found, 0.0).unsqueeze(1)


def smooth(edges: Edges, x: Tensor, loops: float = 1.0) -> Tensor:
    r"""The product :math:`D^{-1/2} (A + \ell I) D^{-1/2} x`, without writing the matrix down.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs.gcn import smooth
        >>> pair = Edges.of(torch.tensor([[0], [1]]), 2, undirected=True)
        >>> smooth(pair, torch.tensor([[1.0], [3.0]]))
        tensor([[2.0000],
                [2.0000]])
    """
    scale = root_degrees(edges, x.dtype, loops)
    scaled = scale * x
    found = edges.sum(scaled)
    return scale * (found + loops * scaled if loops else found)


class GCNConv(nn.Module):
    r"""The graph convolution.

    .. math:: X' = \bar A X W^\top + b, \qquad
              \bar A = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}, \quad
              \tilde D = \mathrm{diag}((A + I) 1)

    The degrees count the loop that is added to each node, so :math:`\|\bar A\|_2 = 1` and a node
    without neighbours keeps its own features. Rows of :math:`\bar A` do not sum to 1.

    Args:
        in_features: features of a node, :math:`D`.
        out_features: features that a node gets.
        bias: whether b is added.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, D)``, or sparse rows.
        - edges: of N nodes; their weights are entries of A.
        - returns: ``(N, out_features)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import GCNConv
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> GCNConv(4, 2)(torch.randn(3, 4), path).shape
        torch.Size([3, 2])

    References:
        Kipf & Welling (2017), Semi-supervised classification with graph convolutional networks,
        eq. 2. https://arxiv.org/abs/1609.02907
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.lin = affine(
            in_features, out_features, init="glorot_uniform", bias=None, generator=generator
        )
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x: Features, edges: Edges) -> Tensor:
        if isinstance(x, Tensor) and x.shape[1] < self.lin.out_features:
            y = self.lin(smooth(edges, x))  # the narrower side has the shorter sums
        else:
            y = smooth(edges, map_nodes(self.lin, x))
        return y if self.bias is None else y + self.bias


class SGConv(nn.Module):
    r"""A linear map of features that were smoothed K times.

    .. math:: X' = \bar A^K X W^\top + b

    It is a graph convolution of K layers without activations between them: linear in W, so its
    likelihood is as convex as that of a generalised linear model.

    Args:
        in_features: features of a node, :math:`D`.
        out_features: features that a node gets.
        steps: :math:`K`.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, D)``, or sparse rows; returns ``(N, out_features)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import SGConv
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> SGConv(4, 2, steps=2)(torch.randn(3, 4), path).shape
        torch.Size([3, 2])

    References:
        Wu et al. (2019), Simplifying graph convolutional networks.
        https://arxiv.org/abs/1902.07153
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        steps: int = 2,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.steps = require_whole("steps of SGConv", steps, low=0, high=1000)
        self.lin = affine(in_features, out_features, init="glorot_uniform", generator=generator)

    def forward(self, x: Features, edges: Edges) -> Tensor:
        early = isinstance(x, Tensor) and x.shape[1] <= self.lin.out_features
        # The constant is added last: smoothing would change it.
        y = x if early and isinstance(x, Tensor) else _without_bias(self.lin, x)
        for _ in range(self.steps):
            y = smooth(edges, y)
        return self.lin(y) if early else y + self.lin.bias


def _without_bias(linear: nn.Linear, x: Features) -> Tensor:
    if isinstance(x, Tensor):
        return x @ linear.weight.T
    return x @ linear.weight.T.contiguous()
