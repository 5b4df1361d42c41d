"""A U-Net on graphs: convolutions on ever fewer nodes, and back."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ansatz.layers.graph_batch import GraphBatch
from ansatz.layers.graphs import GCNConv, TopKPooling
from ansatz.layers.graphs.pooling import two_steps
from ansatz.layers.graphs.readout import Kind
from ansatz.networks.graphs.encoder import GraphEncoder
from ansatz.spec import Inputs


class GraphUNet(GraphEncoder):
    r"""Graph convolutions on ever fewer nodes, and back to all of them.

    Each level keeps the nodes with the highest scores (``ansatz.layers.graphs.TopKPooling``), which
    are joined where they were at most two steps apart. On the way back a level's features return
    to their nodes and are added to what that level had before.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows=...)``.
        outputs: :math:`P`.
        width: features of a node.
        depth: number of levels below all nodes.
        ratio: share of the nodes that a level keeps.
        dropout: in training, of what the answer takes, and of x where nodes are answered.
        readout: ``"sum"``, ``"mean"``, ``"max"`` or ``"attention"`` of a graph's nodes.
        directed: whether the order of a pair counts.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - batch: a ``GraphBatch``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("graph_unet", InputSpec.graph(3), 2, width=16)
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> network(GraphBatch.of(torch.randn(4, 3), path, undirected=True)).shape
        torch.Size([1, 2])

    References:
        Gao & Ji (2019), Graph U-Nets. https://arxiv.org/abs/1905.05178
    """

    name = "graph_unet"

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 64,
        depth: int = 2,
        ratio: float = 0.5,
        dropout: float = 0.0,
        readout: Kind = "sum",
        directed: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            inputs, outputs, width=width, depth=depth, dropout=dropout, readout=readout,
            directed=directed, generator=generator,
        )  # fmt: skip
        self.down = nn.ModuleList(
            GCNConv(width, width, generator=generator) for _ in range(depth + 1)
        )
        self.pools = nn.ModuleList(
            TopKPooling(width, ratio=ratio, generator=generator) for _ in range(depth)
        )
        self.up = nn.ModuleList(GCNConv(width, width, generator=generator) for _ in range(depth))

    def layers(self, h: Tensor, batch: GraphBatch, edge: Tensor | None) -> Tensor:
        """Down, and up again."""
        relu, edges, offsets = functional.relu, batch.edges, batch.offsets
        h = relu(self.down[0](relu(h), edges))
        above: list[tuple[Tensor, Tensor, object]] = []
        for pool, conv in zip(self.pools, list(self.down)[1:], strict=True):
            kept = pool(h, two_steps(edges), offsets)
            above.append((h, kept.nodes, edges))
            edges, offsets = kept.edges, kept.offsets
            h = relu(conv(kept.x, edges))
        for (before, nodes, wider), conv in zip(reversed(above), self.up, strict=True):
            h = relu(conv(torch.index_add(before, 0, nodes, h), wider))
        return h
