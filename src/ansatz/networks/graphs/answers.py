"""From the features of nodes to one answer per row: graphs, nodes or pairs."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ansatz.errors import UsageError
from ansatz.layers.graph_batch import GraphBatch
from ansatz.layers.graphs.node_features import Features
from ansatz.layers.graphs.readout import Kind, Readout
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.layers.ragged import spread
from ansatz.spec import Inputs, InputSpec

RELATION_WIDTH = 16  # numbers that stand for the kind of an edge


def read_graph(owner: str, inputs: Inputs) -> InputSpec:
    """The spec of graphs; a graph whose nodes have no features has a constant one."""
    spec = InputSpec.of(inputs)
    if spec.structure != "graph":
        raise UsageError(
            f"{owner} takes graphs, got inputs of structure '{spec.structure}'; say "
            "InputSpec.graph(nodes=D)."
        )
    if spec.rows not in ("graphs", "nodes", "pairs"):
        raise UsageError(f"rows of {owner} must be graphs, nodes or pairs, got {spec.rows!r}.")
    require_whole(f"features of {owner}", spec.features, low=0)
    return spec


def check_graph(owner: str, spec: InputSpec, batch: GraphBatch) -> None:
    """Refuses a batch that is not of the graphs that a network was built for."""
    if not isinstance(batch, GraphBatch):
        raise UsageError(f"{owner} needs a GraphBatch, got {type(batch).__name__}.")
    if batch.x.shape[-1] != spec.features:
        raise UsageError(
            f"{owner} needs nodes of {spec.features} features, got {batch.x.shape[-1]}."
        )
    edge = 0 if batch.edge_features is None else batch.edge_features.shape[1]
    if edge != spec.edge_features:
        raise UsageError(f"{owner} needs edges of {spec.edge_features} features, got {edge}.")
    if (batch.relations is None) != (spec.relations == 0):
        need = "codes of the kinds of edges" if spec.relations else "edges of one kind"
        raise UsageError(f"{owner} was built for {need}; InputSpec.graph(relations=...) sets it.")
    axes = {"graphs": None, "nodes": 1, "pairs": 2}[spec.rows]
    found = None if batch.targets is None else batch.targets.ndim
    if found != axes:
        raise UsageError(
            f"{owner} answers {spec.rows}: targets must be "
            f"{'absent' if axes is None else ('(B,)', '(B, 2)')[axes - 1]}."
        )


class EdgeInputs(nn.Module):
    """Features of edges with the code of their kind beside them, embedded.

    Args:
        spec: of graphs.
        generator: where weights are drawn from.
        kinds: whether the kinds are embedded.
    """

    def __init__(
        self, spec: InputSpec, generator: torch.Generator | None, *, kinds: bool = True
    ) -> None:
        super().__init__()
        kinds = kinds and spec.relations > 0
        self.features = spec.edge_features + (RELATION_WIDTH if kinds else 0)
        self.kinds = None
        if kinds:
            start = torch.empty(spec.relations, RELATION_WIDTH)
            if not start.is_meta:
                start.normal_(generator=generator)
            self.kinds = nn.Embedding(spec.relations, RELATION_WIDTH, _weight=start)

    def forward(self, batch: GraphBatch) -> Tensor | None:
        if self.kinds is None:
            return batch.edge_features
        codes = self.kinds(batch.relations)
        if batch.edge_features is None:
            return codes
        return torch.cat([batch.edge_features.to(codes.dtype), codes], 1)


def node_inputs(batch: GraphBatch, like: Tensor) -> Features:
    """The features of the nodes; a constant where they have none."""
    if batch.x.shape[-1]:
        return batch.x
    return torch.ones(batch.nodes, 1, dtype=like.dtype, device=like.device)


class Answer(nn.Module):
    r"""The outputs of graphs, nodes or pairs from the features h of nodes.

    A graph's are those of a perceptron of its readout and its own features; a node's a linear map
    of h; those of a pair a linear map of :math:`[h_u \odot h_v, h_u + h_v]`, whichever stands
    first, or with ``directed`` of :math:`[h_u \odot h_v, h_u, h_v]`.

    Args:
        spec: of graphs.
        features: of h.
        outputs: :math:`P`.
        readout: of graphs.
        directed: whether the order of a pair counts.
        dropout: in training, of what the maps take.
        generator: where weights are drawn from.
    """

    def __init__(
        self,
        spec: InputSpec,
        features: int,
        outputs: int,
        *,
        readout: Kind = "sum",
        directed: bool = False,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.rows, self.directed, self.dropout = spec.rows, directed, dropout
        size = features
        if spec.rows == "graphs":
            self.readout = Readout(features, readout, generator=generator)
            self.hidden = affine(features + spec.graph_features, features, generator=generator)
        elif spec.rows == "pairs":
            size = (3 if directed else 2) * features
        self.output = affine(size, outputs, init="lecun_normal", gain=0.1, generator=generator)

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        if self.rows == "graphs":
            h = self.readout(h, batch.offsets)
            if batch.graph_features is not None:
                h = torch.cat([h, batch.graph_features.to(h.dtype)], 1)
            h = functional.relu(self.hidden(h))
        else:
            assert batch.targets is not None
            h = h[batch.targets]
            if self.rows == "pairs":
                one, other = h.unbind(1)
                both = (one, other) if self.directed else (one + other,)
                h = torch.cat([one * other, *both], 1)
        found: Tensor = self.output(functional.dropout(h, self.dropout, self.training))
        return found


def graph_inputs(batch: GraphBatch, features: int) -> Tensor | None:
    """The features of each node's graph, ``(N, U)``."""
    if not features or batch.graph_features is None:
        return None
    return spread(batch.graph_features, batch.offsets, batch.nodes)
