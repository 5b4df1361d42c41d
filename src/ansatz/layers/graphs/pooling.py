"""Coarser graphs: of the best nodes, and of clusters."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.edges import Edges
from ansatz.layers.graphs.node_features import as_parameter
from ansatz.layers.ragged import places, segment_sum


class Selected(NamedTuple):
    """The nodes of graphs that a pooling keeps.

    Args:
        x: their features, ``(N', D)``.
        edges: between them.
        offsets: ``(G + 1,)``, the first node of each graph.
        nodes: ``(N',)``, which nodes they were.
    """

    x: Tensor
    edges: Edges
    offsets: Tensor
    nodes: Tensor


class TopKPooling(nn.Module):
    r"""Keeps the nodes of each graph with the highest scores.

    .. math:: s_n = \tanh(w^\top x_n / \|w\|), \qquad x_n' = s_n x_n \quad
              \text{for the } \lceil \rho N \rceil \text{ largest } s_n

    Args:
        features: of a node, :math:`D`.
        ratio: :math:`\rho`, the share of nodes kept, in (0, 1].
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, D)``; offsets: ``(G + 1,)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import TopKPooling
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> kept = TopKPooling(2)(torch.randn(3, 2), path, torch.tensor([0, 3]))
        >>> kept.x.shape
        torch.Size([2, 2])

    References:
        Gao & Ji (2019), Graph U-Nets, eq. 2. https://arxiv.org/abs/1905.05178
    """

    def __init__(
        self, features: int, *, ratio: float = 0.5, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        if not 0 < ratio <= 1:
            raise UsageError(f"ratio of TopKPooling must be in (0, 1], got {ratio}.")
        self.ratio = ratio
        self.weight = as_parameter(1, features, scale=features**-0.5, generator=generator)

    def forward(self, x: Tensor, edges: Edges, offsets: Tensor) -> Selected:
        score = ((x @ self.weight.T) / self.weight.norm()).tanh()  # (N, 1)
        nodes, kept = top_nodes(score.detach().squeeze(1), offsets, self.ratio)
        found, _ = edges.take(nodes)
        return Selected(x[nodes] * score[nodes], found, kept, nodes)


def top_nodes(score: Tensor, offsets: Tensor, ratio: float) -> tuple[Tensor, Tensor]:
    """The nodes of each graph with the highest scores, rising, and the offsets of what is kept.

    Example:
        >>> import torch
        >>> from ansatz.layers.graphs import top_nodes
        >>> top_nodes(torch.tensor([3.0, 1.0, 2.0, 5.0]), torch.tensor([0, 3, 4]), 0.5)
        (tensor([0, 2, 3]), tensor([0, 2, 3]))
    """
    sizes = offsets.diff()
    graph = torch.arange(len(sizes), device=score.device).repeat_interleave(sizes)
    order = score.argsort(descending=True, stable=True)
    order = order[graph[order].argsort(stable=True)]  # graph by graph, best first
    rank = torch.arange(len(order), device=score.device) - offsets[:-1].repeat_interleave(sizes)
    counts = (ratio * sizes).ceil().long()
    kept = order[rank < counts[graph]].sort().values
    return kept, torch.nn.functional.pad(counts.cumsum(0), (1, 0))


def two_steps(edges: Edges) -> Edges:
    """The edges of (A + I)^2 without loops: neighbours, and neighbours of neighbours.

    The weight is the number of ways to go there in two steps, of which one may be a rest.
    """
    place, offsets = places(edges.offsets, edges.source)  # the edges into each edge's source
    ends = edges.destination.repeat_interleave(offsets.diff())
    weight = edges.weight
    if weight is None:
        weight = torch.ones(len(edges.source), device=edges.source.device)
    ways = weight[place] * weight.repeat_interleave(offsets.diff())
    pairs = torch.cat([torch.stack([edges.source[place], ends]), edges.edge_index], 1)
    return Edges.of(pairs, edges.nodes, torch.cat([ways, 2 * weight]))


class Clusters(NamedTuple):
    r"""A graph of C clusters for each graph, and two terms for the loss.

    Args:
        x: features of the clusters, ``(G, C, D)``.
        adjacency: weights between them, ``(G, C, C)``.
        link_loss: :math:`\|A - S S^\top\|_F` of each graph, ``(G,)``.
        entropy: the mean entropy of a node's assignment, ``(G,)``.
    """

    x: Tensor
    adjacency: Tensor
    link_loss: Tensor
    entropy: Tensor


def diff_pool(x: Tensor, scores: Tensor, edges: Edges, offsets: Tensor) -> Clusters:
    r"""Pools the nodes of each graph into clusters, each node with a share in every one.

    .. math:: S = \mathrm{softmax}(\text{scores}), \qquad X' = S^\top X, \qquad A' = S^\top A S

    Nothing dense of size N x N is made: :math:`\|A - S S^\top\|^2 = \|A\|^2 -
    2 \, \mathrm{tr}(S^\top A S) + \|S^\top S\|^2`.

    Args:
        x: ``(N, D)``.
        scores: ``(N, C)``, as another graph network computes them.
        edges: of all graphs.
        offsets: ``(G + 1,)``, the first node of each.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import diff_pool
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> pooled = diff_pool(torch.ones(3, 1), torch.zeros(3, 2), path, torch.tensor([0, 3]))
        >>> pooled.adjacency
        tensor([[[1., 1.],
                 [1., 1.]]])

    References:
        Ying et al. (2018), Hierarchical graph representation learning with differentiable pooling,
        eq. 3 and 4. https://arxiv.org/abs/1806.08804
    """
    S = scores.softmax(1)
    pooled = segment_sum(S.unsqueeze(2) * x.unsqueeze(1), offsets)
    adjacency = segment_sum(S.unsqueeze(2) * edges.sum(S).unsqueeze(1), offsets)
    gram = segment_sum(S.unsqueeze(2) * S.unsqueeze(1), offsets)
    weight = edges.weight
    if weight is None:
        weight = torch.ones_like(edges.source, dtype=S.dtype)
    squares = segment_sum(weight.to(S.dtype).square(), edges.offsets[offsets])
    traces = adjacency.diagonal(dim1=1, dim2=2).sum(1)
    link = squares - 2 * traces + gram.square().sum((1, 2))
    entropy = segment_sum(-(S * S.clamp(min=1e-15).log()).sum(1), offsets)
    link_loss = link.clamp(min=torch.finfo(S.dtype).tiny).sqrt()
    return Clusters(pooled, adjacency, link_loss, entropy / offsets.diff().clamp(min=1))
