"""Graph convolution with weights for each kind of edge."""

import torch
from torch import Tensor, nn

from ansatz.layers.edges import Edges
from ansatz.layers.graphs.node_features import Features, as_parameter
from ansatz.layers.limits import require_whole


class RGCNConv(nn.Module):
    r"""A convolution whose weights depend on the kind of an edge, through a few bases.

    .. math:: x_n' = W_0 x_n + \sum_r \frac{1}{|N_r(n)|} \sum_{m \in N_r(n)} W_r x_m + b, \qquad
              W_r = \sum_k a_{rk} V_k

    Args:
        in_features: features of a node, :math:`D`.
        out_features: features that a node gets.
        relations: number of kinds of edges, :math:`R`.
        bases: number of matrices :math:`V_k` that all kinds share.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, D)``, or sparse rows.
        - relations: ``(E,)`` codes in the order of the edges.
        - returns: ``(N, out_features)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import RGCNConv
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> layer = RGCNConv(4, 2, relations=2, bases=1)
        >>> layer(torch.randn(3, 4), path, torch.tensor([0, 0, 1, 1])).shape
        torch.Size([3, 2])

    References:
        Schlichtkrull et al. (2018), Modeling relational data with graph convolutional networks,
        eq. 2 and 3. https://arxiv.org/abs/1703.06103
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        relations: int,
        bases: int = 4,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.relations = require_whole("relations of RGCNConv", relations)
        bases = require_whole("bases of RGCNConv", bases)
        scale = (2 / (in_features + out_features)) ** 0.5
        self.weight = as_parameter(
            bases, in_features, out_features, scale=scale, generator=generator
        )
        self.comp = as_parameter(relations, bases, scale=bases**-0.5, generator=generator)
        self.root = as_parameter(in_features, out_features, scale=scale, generator=generator)
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x: Features, edges: Edges, relations: Tensor) -> Tensor:
        share = self.shares(edges, relations, self.root.dtype)
        found = x @ self.root + self.bias
        for basis, a in zip(self.weight, self.comp.T, strict=True):
            weight = a[relations] * share  # (E,)
            if isinstance(x, Tensor) and x.shape[1] < basis.shape[1]:
                found = found + edges.sum(x, weight) @ basis
            else:
                found = found + edges.sum(x @ basis, weight)
        return found

    def shares(self, edges: Edges, relations: Tensor, dtype: torch.dtype) -> Tensor:
        """One over the number of edges of its kind into the same node, for each edge, ``(E,)``."""
        _, group = (edges.destination * self.relations + relations).unique(return_inverse=True)
        ones = torch.ones(len(group), dtype=dtype, device=group.device)
        weight = ones if edges.weight is None else edges.weight.to(dtype)
        total = weight.new_zeros(int(group.max()) + 1 if len(group) else 0)
        return weight / total.index_add(0, group, weight)[group]
