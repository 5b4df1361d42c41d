"""Attention of a node to its neighbours and itself."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ansatz.errors import UsageError
from ansatz.layers.edges import Edges
from ansatz.layers.graphs.node_features import Features, as_parameter, drop, map_nodes
from ansatz.layers.init import affine
from ansatz.layers.ragged import segment_largest, segment_mean, segment_sum


class Attention(NamedTuple):
    """The weights with which a node sums its neighbours and itself; together they sum to 1.

    Args:
        edges: ``(E, H)``, of each edge and head.
        loops: ``(N, H)``, of each node to itself.
    """

    edges: Tensor
    loops: Tensor


def edge_softmax(edges: Edges, scores: Tensor, loops: Tensor) -> Attention:
    """Positive weights of the edges into each node and its loop, which sum to 1 for each head.

    The weight of an edge multiplies its exponential: an edge of weight 2 counts as two.

    Args:
        edges: of N nodes.
        scores: ``(E, H)``.
        loops: ``(N, H)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs.attention import edge_softmax
        >>> pair = Edges.of(torch.tensor([[0], [1]]), 2, undirected=True)
        >>> edge_softmax(pair, torch.zeros(2, 1), torch.zeros(2, 1)).loops.T
        tensor([[0.5000, 0.5000]])
    """
    largest = torch.maximum(segment_largest(scores, edges.offsets), loops.detach())
    each = (scores - edges.at_destination(largest)).exp()
    if edges.weight is not None:
        each = each * edges.weight.to(each.dtype).unsqueeze(1)
    own = (loops - largest).exp()
    total = segment_sum(each, edges.offsets) + own
    return Attention(each / edges.at_destination(total), own / total)


def sum_heads(edges: Edges, x: Tensor, weight: Tensor) -> Tensor:
    r"""Sums over the edges into each node for each head, :math:`y_{nh} = \sum_e w_{eh} x_{mh}`.

    Args:
        edges: of N nodes.
        x: ``(N, H, C)``.
        weight: ``(E, H)``.

    Returns:
        ``(N, H, C)``. The numbers of a node are added in the order of its edges.
    """
    if torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling():
        return segment_sum(edges.at_source(x) * weight.unsqueeze(2), edges.offsets)
    found: Tensor = _HeadSum.apply(x, weight, *edges[:6])
    return found


class _HeadSum(torch.autograd.Function):
    """The sums of all heads in one pass, and their derivatives."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, *edges: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.edges = Edges(*edges)
        return _head_bags(x, weight, ctx.edges.source, ctx.edges.offsets)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,), (x, weight), edges = grads, ctx.saved_tensors, ctx.edges
        if torch.is_grad_enabled():  # this derivative is differentiated itself
            back = sum_heads(edges.transposed(), g, weight[edges.order])
            each = (edges.at_destination(g) * edges.at_source(x)).sum(2)
        else:
            back = _head_bags(g, weight[edges.order], edges.successors, edges.out_offsets)
            each = weight.new_empty(weight.shape)
            step = max(1, 2**22 // max(x.shape[1] * x.shape[2], 1))  # 4 million numbers at once
            for first in range(0, len(each), step):
                part = slice(first, first + step)
                rows = g.index_select(0, edges.destination[part])
                rows *= x.index_select(0, edges.source[part])
                each[part] = rows.sum(2)
        return (back, each, *[None] * 6)


def _head_bags(x: Tensor, weight: Tensor, source: Tensor, offsets: Tensor) -> Tensor:
    """All heads one behind the other in one bag of embeddings."""
    (nodes, heads, features), rows = x.shape, len(offsets) - 1
    if not x.numel() or not len(source):
        return x.new_zeros(rows, heads, features)
    place = torch.arange(heads, device=x.device).unsqueeze(1)
    found = functional.embedding_bag(
        (source + place * nodes).flatten(),
        x.transpose(0, 1).reshape(-1, features),
        (offsets[:-1] + place * len(source)).flatten(),
        mode="sum",
        per_sample_weights=weight.T.flatten(),
    )
    return found.unflatten(0, (heads, rows)).transpose(0, 1)


class _AttentionConv(nn.Module):
    """What both kinds share: heads, edge features, dropout of weights, sums."""

    def __init__(self, out_features: int, heads: int, concat: bool, dropout: float) -> None:
        super().__init__()
        if concat and out_features % heads:
            raise UsageError(
                f"{heads} heads side by side need out_features that they divide, got "
                f"{out_features}."
            )
        self.heads, self.concat, self.dropout = heads, concat, dropout
        self.per_head = out_features // heads if concat else out_features
        self.bias = nn.Parameter(torch.zeros(out_features))

    def combine(self, x: Tensor, edges: Edges, attention: Attention) -> Tensor:
        """Sums the neighbours' features ``(N, H, C)``; heads stand side by side, or their mean."""
        weight, own = attention
        if self.training and self.dropout:
            weight, own = drop(weight, self.dropout), drop(own, self.dropout)
        y = sum_heads(edges, x, weight) + own.unsqueeze(2) * x  # (N, H, C)
        return (y.flatten(1) if self.concat else y.mean(1)) + self.bias


class GATConv(_AttentionConv):
    r"""Graph attention: each node sums its neighbours with weights that it computes.

    .. math:: x_n' = \sum_{m \in N(n) \cup \{n\}} a_{nm} V x_m + b, \qquad
              a_{nm} = \mathrm{softmax}_m \, \rho(u^\top [V x_n, V x_m, U e_{nm}])

    with :math:`\rho` the leaky ReLU of slope 0.2, for each of the heads; u is ``att_dst``,
    ``att_src`` and ``att_edge`` side by side. The edge from a node to itself has the mean of the
    features of the edges into it.

    Args:
        in_features: features of a node, :math:`D`.
        out_features: features that a node gets, of all heads together if they are concatenated.
        heads: :math:`H`.
        concat: heads stand side by side; otherwise their mean is taken.
        edge_features: of an edge, :math:`F`.
        dropout: share of attention weights left out in training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, D)``, or sparse rows.
        - edge_features: ``(E, F)`` in the order of the edges.
        - returns: ``(N, out_features)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import GATConv
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> GATConv(4, 6, heads=3)(torch.randn(3, 4), path).shape
        torch.Size([3, 6])

    References:
        Veličković et al. (2018), Graph attention networks, eq. 3 to 6.
        https://arxiv.org/abs/1710.10903
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        heads: int = 1,
        concat: bool = True,
        edge_features: int = 0,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(out_features, heads, concat, dropout)
        size, scale = heads * self.per_head, math.sqrt(2 / (heads + self.per_head))
        glorot, shape = "glorot_uniform", (1, heads, self.per_head)
        self.lin = affine(in_features, size, init=glorot, bias=None, generator=generator)
        self.att_src = as_parameter(*shape, scale=scale, generator=generator)
        self.att_dst = as_parameter(*shape, scale=scale, generator=generator)
        self.lin_edge = None
        if edge_features:
            self.lin_edge = affine(edge_features, size, init=glorot, bias=None, generator=generator)
            self.att_edge = as_parameter(*shape, scale=scale, generator=generator)

    def forward(self, x: Features, edges: Edges, edge_features: Tensor | None = None) -> Tensor:
        h = map_nodes(self.lin, x).unflatten(1, (self.heads, self.per_head))  # (N, H, C)
        return self.combine(h, edges, self._attention(h, edges, edge_features))

    def attention(
        self, x: Features, edges: Edges, edge_features: Tensor | None = None
    ) -> Attention:
        """The weights of the edges and of the loops."""
        h = map_nodes(self.lin, x).unflatten(1, (self.heads, self.per_head))
        return self._attention(h, edges, edge_features)

    def _attention(self, h: Tensor, edges: Edges, edge_features: Tensor | None) -> Attention:
        from_source, to_own = (h * self.att_src).sum(2), (h * self.att_dst).sum(2)  # (N, H)
        scores = edges.at_source(from_source) + edges.at_destination(to_own)
        loops = from_source + to_own
        if self.lin_edge is not None:
            assert edge_features is not None
            mapped = self.lin_edge(edge_features).unflatten(1, (self.heads, self.per_head))
            of_edge = (mapped * self.att_edge).sum(2)  # (E, H)
            scores, loops = scores + of_edge, loops + segment_mean(of_edge, edges.offsets)
        rho = functional.leaky_relu
        return edge_softmax(edges, rho(scores, 0.2), rho(loops, 0.2))


class GATv2Conv(_AttentionConv):
    r"""Graph attention whose order of neighbours may differ from node to node.

    .. math:: x_n' = \sum_{m \in N(n) \cup \{n\}} a_{nm} V_l x_m + b, \qquad
              a_{nm} = \mathrm{softmax}_m \, u^\top \rho(V_r x_n + V_l x_m + U e_{nm})

    In :class:`GATConv` the score is monotone in one number of the neighbour, so all nodes rank
    their neighbours alike; here the activation stands between two maps. :math:`V_l` and
    :math:`V_r` are affine.

    Args:
        in_features: features of a node, :math:`D`.
        out_features: features that a node gets, of all heads together if they are concatenated.
        heads: :math:`H`.
        concat: heads stand side by side; otherwise their mean is taken.
        edge_features: of an edge, :math:`F`.
        dropout: share of attention weights left out in training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, D)``, or sparse rows; edge_features: ``(E, F)``.
        - returns: ``(N, out_features)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import GATv2Conv
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> GATv2Conv(4, 6, heads=3)(torch.randn(3, 4), path).shape
        torch.Size([3, 6])

    References:
        Brody, Alon & Yahav (2022), How attentive are graph attention networks? eq. 7.
        https://arxiv.org/abs/2105.14491
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        heads: int = 1,
        concat: bool = True,
        edge_features: int = 0,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(out_features, heads, concat, dropout)
        size, glorot = heads * self.per_head, "glorot_uniform"
        self.lin_l = affine(in_features, size, init=glorot, generator=generator)
        self.lin_r = affine(in_features, size, init=glorot, generator=generator)
        scale = math.sqrt(2 / (heads + self.per_head))
        self.att = as_parameter(1, heads, self.per_head, scale=scale, generator=generator)
        self.lin_edge = None
        if edge_features:
            self.lin_edge = affine(edge_features, size, init=glorot, bias=None, generator=generator)

    def forward(self, x: Features, edges: Edges, edge_features: Tensor | None = None) -> Tensor:
        h = map_nodes(self.lin_l, x)
        found = self._attention(h, x, edges, edge_features)
        return self.combine(h.unflatten(1, (self.heads, self.per_head)), edges, found)

    def attention(
        self, x: Features, edges: Edges, edge_features: Tensor | None = None
    ) -> Attention:
        """The weights of the edges and of the loops."""
        return self._attention(map_nodes(self.lin_l, x), x, edges, edge_features)

    def _attention(
        self, h: Tensor, x: Features, edges: Edges, edge_features: Tensor | None
    ) -> Attention:
        own = map_nodes(self.lin_r, x)
        scores, loops = edges.at_source(h) + edges.at_destination(own), h + own
        if self.lin_edge is not None:
            assert edge_features is not None
            mapped = self.lin_edge(edge_features)
            scores, loops = scores + mapped, loops + segment_mean(mapped, edges.offsets)
        return edge_softmax(edges, self._score(scores), self._score(loops))

    def _score(self, z: Tensor) -> Tensor:
        parts = functional.leaky_relu(z, 0.2).unflatten(1, (self.heads, self.per_head))
        return (parts * self.att).sum(2)
