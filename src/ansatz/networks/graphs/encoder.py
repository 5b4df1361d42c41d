"""What networks share whose layers keep one width: the entrance of nodes, and the answer."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ansatz.errors import UsageError
from ansatz.layers.graph_batch import GraphBatch
from ansatz.layers.graphs.node_features import drop_features, map_nodes
from ansatz.layers.graphs.readout import Kind
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.layers.ragged import segment_mean
from ansatz.networks.graphs.answers import (
    Answer,
    EdgeInputs,
    check_graph,
    graph_inputs,
    node_inputs,
    read_graph,
)
from ansatz.spec import Inputs, InputSpec


class GraphEncoder(nn.Module):
    """An affine map of the features to ``width``, layers of that width, and the answer.

    A network of this kind defines ``layers(h, batch, edge)``. Features of edges and graphs that its
    layers do not take are added to the entrance.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows=...)``.
        outputs: :math:`P`.
        width: features of a node in the layers.
        depth: number of layers.
        dropout: in training, of x where nodes are answered and of what the answer takes.
        readout: ``"sum"``, ``"mean"``, ``"max"`` or ``"attention"`` of a graph's nodes.
        directed: whether the order of a pair counts.
        answered: features of a node that the answer takes; by default ``width``.
        answer_spec: the spec of what is answered; by default that of the inputs.
        generator: where weights are drawn from; torch's global one when not given.
    """

    name: ClassVar[str]
    takes_edges: ClassVar[bool] = False
    takes_graph: ClassVar[bool] = False
    heads: tuple[str, ...] = ("answer",)

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int,
        depth: int,
        dropout: float,
        readout: Kind,
        directed: bool,
        generator: torch.Generator | None,
        answered: int | None = None,
        answer_spec: InputSpec | None = None,
    ) -> None:
        super().__init__()
        name, self.spec = self.name, read_graph(self.name, inputs)
        require_whole(f"width of {name}", width)
        require_whole(f"depth of {name}", depth, high=1000)
        if not 0 <= dropout < 1:
            raise UsageError(f"dropout of {name} must be in [0, 1), got {dropout}.")
        self.dropout, spec = dropout, self.spec
        self.edge_inputs = EdgeInputs(spec, generator)
        self.entrance = affine(
            max(spec.features, 1), width, init="glorot_uniform", generator=generator
        )
        self.first_edges = self.first_graph = None
        if self.edge_inputs.features and not self.takes_edges:
            self.first_edges = affine(
                self.edge_inputs.features, width, init="glorot_uniform", generator=generator
            )
        if spec.graph_features and spec.rows != "graphs" and not self.takes_graph:
            self.first_graph = affine(
                spec.graph_features, width, init="glorot_uniform", generator=generator
            )
        self.answer = Answer(
            answer_spec or spec, answered or width, outputs, readout=readout, directed=directed,
            dropout=dropout, generator=generator,
        )  # fmt: skip

    def layers(self, h: Tensor, batch: GraphBatch, edge: Tensor | None) -> Tensor:
        """The features of nodes after all layers, from those before the first."""
        raise NotImplementedError

    def enter(self, batch: GraphBatch) -> tuple[Tensor, Tensor | None]:
        """The features of nodes before the first layer, and those of edges."""
        check_graph(self.name, self.spec, batch)
        edge = self.edge_inputs(batch)
        x = node_inputs(batch, self.entrance.weight)
        if self.spec.rows == "nodes":
            x = drop_features(x, self.dropout, self.training)
        h = map_nodes(self.entrance, x)
        if self.first_edges is not None:
            assert edge is not None
            h = h + self.first_edges(segment_mean(edge, batch.edges.offsets))
        if self.first_graph is not None:
            own = graph_inputs(batch, self.spec.graph_features)
            h = h + self.first_graph(own)
        return h, edge

    def embed(self, batch: GraphBatch) -> Tensor:
        """What the answer is computed from, for every node."""
        h, edge = self.enter(batch)
        return self.layers(h, batch, edge)

    def forward(self, batch: GraphBatch) -> Tensor:
        found: Tensor = self.answer(self.embed(batch), batch)
        return found


class Perceptron(nn.Module):
    """Two affine maps with ReLU between them, of normalised features.

    Args:
        in_features: of the input.
        features: hidden ones, and of the output.
        generator: where weights are drawn from.
    """

    def __init__(
        self, in_features: int, features: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(in_features)
        self.first = affine(in_features, features, generator=generator)
        self.second = affine(features, features, init="lecun_normal", generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(functional.relu(self.first(self.norm(x))))
