"""Convolutions with a weight of their own for the node itself and one for its neighbours."""

from typing import Literal

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.edges import Edges
from ansatz.layers.graphs.gcn import smooth
from ansatz.layers.graphs.node_features import Features, map_nodes
from ansatz.layers.init import affine
from ansatz.layers.ragged import segment_max

Aggregation = Literal["basic", "self_loop", "mean", "symmetric"]
AGGREGATIONS = ("basic", "self_loop", "mean", "symmetric")


def neighbour_mean(edges: Edges, x: Tensor) -> Tensor:
    """The mean over the neighbours of each node, weighted by the edges; 0 where there are none."""
    degree = edges.degree.to(x.dtype)
    share = torch.where(degree == 0, 1.0, degree).reciprocal()
    if 2 * len(edges.source) > x.numel():  # otherwise weights of edges are the shorter way
        return edges.sum(x) * share.unsqueeze(1)
    share = share[edges.destination]
    return edges.sum(x, share if edges.weight is None else share * edges.weight)


def neighbour_max(edges: Edges, x: Tensor) -> Tensor:
    """The largest number over the neighbours of each node, for each feature; 0 without any."""
    return segment_max(edges.at_source(x), edges.offsets)


class GraphConv(nn.Module):
    r"""The basic layer of a graph network, with a choice of how neighbours are summed.

    .. math:: x_n' = W_{self} x_n + W_{neigh} \sum_{m \in N(n)} c_{nm} x_m + b

    ============= ====================================================================
    aggregation   :math:`c_{nm}`
    ============= ====================================================================
    ``basic``     1
    ``self_loop`` 1, with :math:`W_{self} = W_{neigh}`: the matrix A + I
    ``mean``      :math:`1 / |N(n)|`
    ``symmetric`` :math:`1 / \sqrt{|N(n)| |N(m)|}`
    ============= ====================================================================

    Args:
        in_features: features of a node, :math:`D`.
        out_features: features that a node gets.
        aggregation: one of the four.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, D)``, or sparse rows; returns ``(N, out_features)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import GraphConv
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> GraphConv(4, 2, aggregation="mean")(torch.randn(3, 4), path).shape
        torch.Size([3, 2])

    References:
        Morris et al. (2019), Weisfeiler and Leman go neural, section 3: ``basic``.
        https://arxiv.org/abs/1810.02244
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        aggregation: Aggregation = "basic",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if aggregation not in AGGREGATIONS:
            raise UsageError(
                f"aggregation must be one of {', '.join(AGGREGATIONS)}, got {aggregation!r}."
            )
        self.aggregation = aggregation
        self.lin_rel = affine(in_features, out_features, init="glorot_uniform", generator=generator)
        self.lin_root = None
        if aggregation != "self_loop":
            self.lin_root = affine(
                in_features, out_features, init="glorot_uniform", bias=None, generator=generator
            )

    def forward(self, x: Features, edges: Edges) -> Tensor:
        linear = self.lin_rel
        if isinstance(x, Tensor) and x.shape[1] < linear.out_features:
            y = linear(self.aggregate(x, edges))
        else:
            rows = x if isinstance(x, Tensor) else None
            mapped = x @ linear.weight.T.contiguous() if rows is None else rows @ linear.weight.T
            y = self.aggregate(mapped, edges) + linear.bias
        return y if self.lin_root is None else y + map_nodes(self.lin_root, x)

    def aggregate(self, x: Tensor, edges: Edges) -> Tensor:
        """The weighted sums over neighbours, ``(N, D)``."""
        if self.aggregation == "mean":
            return neighbour_mean(edges, x)
        if self.aggregation == "symmetric":
            return smooth(edges, x, loops=0.0)
        return edges.sum(x) + x if self.aggregation == "self_loop" else edges.sum(x)


class SAGEConv(nn.Module):
    r"""The layer of GraphSAGE: a map of the neighbours' summary, and one of the node itself.

    .. math:: x_n' = W_l \, \mathrm{agg}_{m \in N(n)} x_m + b + W_r x_n

    Args:
        in_features: features of a node, :math:`D`.
        out_features: features that a node gets.
        aggregation: ``"mean"``, ``"sum"`` or ``"max"`` over the neighbours; 0 without any.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, D)``, or sparse rows; ``max`` needs dense ones.
        - returns: ``(N, out_features)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import SAGEConv
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> SAGEConv(4, 2)(torch.randn(3, 4), path).shape
        torch.Size([3, 2])

    References:
        Hamilton, Ying & Leskovec (2017), Inductive representation learning on large graphs,
        algorithm 1. https://arxiv.org/abs/1706.02216
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        aggregation: Literal["mean", "sum", "max"] = "mean",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if aggregation not in ("mean", "sum", "max"):
            raise UsageError(f"aggregation must be mean, sum or max, got {aggregation!r}.")
        self.aggregation = aggregation
        self.lin_l = affine(in_features, out_features, init="glorot_uniform", generator=generator)
        self.lin_r = affine(
            in_features, out_features, init="glorot_uniform", bias=None, generator=generator
        )

    def forward(self, x: Features, edges: Edges) -> Tensor:
        linear = self.lin_l
        aggregate = neighbour_mean if self.aggregation == "mean" else Edges.sum
        if self.aggregation == "max":  # a maximum does not commute with the map
            dense = x if isinstance(x, Tensor) else x.dense()
            return torch.addmm(linear(neighbour_max(edges, dense)), dense, self.lin_r.weight.T)
        if isinstance(x, Tensor) and x.shape[1] <= linear.out_features:
            return torch.addmm(linear(aggregate(edges, x)), x, self.lin_r.weight.T)
        weight, own = linear.weight.T, map_nodes(self.lin_r, x)
        mapped = x @ weight if isinstance(x, Tensor) else x @ weight.contiguous()
        return aggregate(edges, mapped) + linear.bias + own
