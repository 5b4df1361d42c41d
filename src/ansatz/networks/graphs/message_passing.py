"""Message passing that updates edges, nodes and the graph, and gated message passing."""

from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ansatz.layers.graph_batch import GraphBatch
from ansatz.layers.graphs import GatedGraphConv
from ansatz.layers.graphs.readout import Kind
from ansatz.layers.init import affine
from ansatz.layers.ragged import segment_mean, segment_sum, spread
from ansatz.networks.graphs.answers import read_graph
from ansatz.networks.graphs.encoder import GraphEncoder, Perceptron
from ansatz.spec import Inputs


class MessageBlock(nn.Module):
    """Updates edges, then nodes, then graphs, each by a perceptron of what it touches.

    Args:
        width: features of each.
        updates_graph: whether the graph is updated too.
        generator: where weights are drawn from.
    """

    def __init__(
        self,
        width: int,
        *,
        updates_graph: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.edge = Perceptron(4 * width, width, generator=generator)
        self.node = Perceptron(3 * width, width, generator=generator)
        self.graph = None
        if updates_graph:
            self.graph = Perceptron(3 * width, width, generator=generator)

    def forward(
        self, h: Tensor, e: Tensor, u: Tensor, batch: GraphBatch
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Features of nodes, edges and graphs after one round."""
        edges, offsets = batch.edges, batch.offsets
        of_node = spread(u, offsets, batch.nodes)
        ends = (edges.at_source(h), edges.at_destination(h), edges.at_source(of_node))
        e = e + self.edge(torch.cat([e, *ends], 1))
        message = e
        if edges.weight is not None:
            message = e * edges.weight.to(e.dtype).unsqueeze(1)
        h = h + self.node(torch.cat([h, segment_sum(message, edges.offsets), of_node], 1))
        if self.graph is None:
            return h, e, u
        means = (segment_mean(h, offsets), segment_mean(e, edges.offsets[offsets]))
        return h, e, u + self.graph(torch.cat([u, *means], 1))


class MPNN(GraphEncoder):
    r"""Message passing with states of edges, nodes and the graph.

    .. math::
        e_{nm} &\leftarrow e_{nm} + \phi_e(e_{nm}, h_m, h_n, u) \\
        h_n &\leftarrow h_n + \phi_h(h_n, \textstyle\sum_m e_{nm}, u) \\
        u &\leftarrow u + \phi_u(u, \mathrm{mean}_n h_n, \mathrm{mean}_{nm} e_{nm})

    with perceptrons :math:`\phi` of normalised features, one set for each layer. Nodes far apart
    read each other through the state of the graph.

    Args:
        inputs: ``InputSpec.graph(nodes=D, edges=F, graph=U, rows=...)``.
        outputs: :math:`P`.
        width: features of nodes, edges and the graph.
        depth: number of rounds.
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
        >>> network = networks.create("mpnn", InputSpec.graph(3), 2, width=16)
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> network(GraphBatch.of(torch.randn(4, 3), path, undirected=True)).shape
        torch.Size([1, 2])

    References:
        Battaglia et al. (2018), Relational inductive biases, deep learning, and graph networks,
        algorithm 1. https://arxiv.org/abs/1806.01261
    """

    name = "mpnn"
    takes_edges: ClassVar[bool] = True
    takes_graph: ClassVar[bool] = True

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 64,
        depth: int = 3,
        dropout: float = 0.0,
        readout: Kind = "sum",
        directed: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        spec = read_graph(self.name, inputs)
        answer = replace(spec, features=width, graph_features=width)
        super().__init__(
            spec, outputs, width=width, depth=depth, dropout=dropout, readout=readout,
            directed=directed, generator=generator, answer_spec=answer,
        )  # fmt: skip
        sizes = (max(self.edge_inputs.features, 1), max(spec.graph_features, 1))
        self.edge_entrance, self.graph_entrance = (
            affine(size, width, init="glorot_uniform", generator=generator) for size in sizes
        )
        # What the last round would write to the graph, only the answer of a graph reads.
        self.blocks = nn.ModuleList(
            MessageBlock(
                width,
                updates_graph=spec.rows == "graphs" or number < depth - 1,
                generator=generator,
            )
            for number in range(depth)
        )

    def states(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """Features of nodes and of graphs after all rounds."""
        h, edge = self.enter(batch)
        if edge is None:
            edge = h.new_ones(len(batch.edges.source), 1)
        u = batch.graph_features
        u = self.graph_entrance(h.new_ones(batch.graphs, 1) if u is None else u.to(h.dtype))
        e = self.edge_entrance(edge.to(h.dtype))
        for block in self.blocks:
            h, e, u = block(h, e, u, batch)
        return h, u

    def embed(self, batch: GraphBatch) -> Tensor:
        """What the answer is computed from, for every node."""
        return self.states(batch)[0]

    def forward(self, batch: GraphBatch) -> Tensor:
        h, u = self.states(batch)
        found: Tensor = self.answer(h, batch._replace(graph_features=u))
        return found


class GatedGraph(GraphEncoder):
    r"""Message passing through a gated recurrent unit, with the same unit in all steps.

    Its layer is ``ansatz.layers.graphs.GatedGraphConv``.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows=...)``.
        outputs: :math:`P`.
        width: features of a node.
        depth: number of steps.
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
        >>> network = networks.create("gated_graph", InputSpec.graph(3), 2, width=16)
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> network(GraphBatch.of(torch.randn(4, 3), path, undirected=True)).shape
        torch.Size([1, 2])

    References:
        Li et al. (2016), Gated graph sequence neural networks. https://arxiv.org/abs/1511.05493
    """

    name = "gated_graph"

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 64,
        depth: int = 4,
        dropout: float = 0.0,
        readout: Kind = "sum",
        directed: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            inputs, outputs, width=width, depth=depth, dropout=dropout, readout=readout,
            directed=directed, generator=generator,
        )  # fmt: skip
        self.conv = GatedGraphConv(width, steps=depth, generator=generator)

    def layers(self, h: Tensor, batch: GraphBatch, edge: Tensor | None) -> Tensor:
        """The features of nodes after all steps."""
        return functional.relu(self.conv(h, batch.edges))
