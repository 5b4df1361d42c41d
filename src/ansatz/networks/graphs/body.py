"""The body that networks of graph convolutions share."""

import inspect
from itertools import pairwise
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from ansatz.errors import UsageError
from ansatz.layers.graph_batch import GraphBatch
from ansatz.layers.graphs.node_features import Features, drop, drop_features, node_norm
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
from ansatz.networks.graphs.jumping import JUMPS, Jump, JumpingKnowledge
from ansatz.spec import Inputs


class GraphNetwork(nn.Module):
    r"""Convolutions above one another, with norm, ReLU and dropout between them.

    .. math:: H^{(l)} = \mathrm{dropout}(\mathrm{ReLU}(\mathrm{norm}(
              \mathrm{conv}^{(l)}(H^{(l-1)})))), \qquad H^{(0)} = X

    Where nodes are answered, the last convolution gives the outputs, or with ``jumping`` a linear
    map of all layers. Graphs and pairs have maps of their own behind ``depth`` layers of ``width``.
    Features of edges, kinds of edges and features of graphs that a convolution does not take itself
    are added to the first layer: the mean of those of the edges into a node, and those of its
    graph, by linear maps.

    The parameters have the names that the model of the same name has in ``torch_geometric``, so
    that its ``state_dict`` loads strictly where no features of edges and graphs are added.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows=...)``.
        outputs: :math:`P`.
        width: features of a node between layers.
        depth: number of convolutions; by default 2, or 3 where graphs are answered.
        dropout: in training, between layers, and of x where nodes are answered.
        norm: ``"batch"``, ``"layer"`` or None.
        skip: ``"residual"`` adds a layer's input to its output where both are of one width.
        jumping: ``"last"``, ``"cat"``, ``"max"`` or ``"lstm"``: how all layers are joined; None
            for the last alone.
        readout: ``"sum"``, ``"mean"``, ``"max"`` or ``"attention"`` of a graph's nodes.
        directed: whether the order of a pair counts.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - batch: a ``GraphBatch``; returns ``(B, P)``.
    """

    name: ClassVar[str]
    takes_edges: ClassVar[bool] = False  # whether its convolutions take features of edges
    takes_kinds: ClassVar[bool] = False  # whether they take the kinds of edges

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Writes the options that a network shares into its signature, beside its own."""
        super().__init_subclass__(**kwargs)
        own = inspect.signature(cls.__init__).parameters.values()
        shared = inspect.signature(GraphNetwork.__init__).parameters.values()
        kept = {each.name: each for each in own if each.kind is not each.VAR_KEYWORD}
        merged = kept | {each.name: each for each in shared if each.name not in kept}
        cls.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [each for each in merged.values() if each.name != "self"]
        )

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 64,
        depth: int | None = None,
        dropout: float = 0.5,
        norm: Literal["batch", "layer"] | None = None,
        skip: Literal["residual"] | None = None,
        jumping: Jump | None = None,
        readout: Kind = "sum",
        directed: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        name, spec = self.name, read_graph(self.name, inputs)
        of_nodes = spec.rows == "nodes"
        depth = (2 if of_nodes else 3) if depth is None else depth
        require_whole(f"width of {name}", width)
        require_whole(f"depth of {name}", depth, high=1000)
        if not 0 <= dropout < 1:
            raise UsageError(f"dropout of {name} must be in [0, 1), got {dropout}.")
        if skip not in (None, "residual"):
            raise UsageError(f"skip of {name} must be residual or none, got {skip!r}.")
        if jumping not in (None, *JUMPS):
            raise UsageError(f"jumping of {name} must be one of {', '.join(JUMPS)} or none.")
        self.spec, self.dropout, self.skip, self.norm = spec, dropout, skip, norm
        self.edge_inputs = EdgeInputs(spec, generator, kinds=not self.takes_kinds)
        last = outputs if of_nodes and jumping is None else width
        sizes = [max(spec.features, 1), *[width] * (depth - 1), last]
        self.convs = nn.ModuleList(
            self.conv(a, b, is_answer=of_nodes and jumping is None and i == depth - 1,
                      generator=generator)
            for i, (a, b) in enumerate(pairwise(sizes))
        )  # fmt: skip
        norms: list[nn.Module] = [node_norm(name, norm, width) for _ in range(depth - 1)]
        norms.append(nn.Identity() if jumping is None else node_norm(name, norm, width))
        self.norms = nn.ModuleList(norms)
        self.jk = self.lin = self.answer = self.first_edges = self.first_graph = None
        if jumping is not None:
            if jumping != "last":
                self.jk = JumpingKnowledge(jumping, width, depth, generator=generator)
            joined = depth * width if jumping == "cat" else width
            self.lin = affine(
                joined, outputs if of_nodes else width, init="lecun_normal", generator=generator
            )
        if not of_nodes:
            self.answer = Answer(
                spec, width, outputs, readout=readout, directed=directed, dropout=dropout,
                generator=generator,
            )  # fmt: skip
        first = sizes[1]
        if self.edge_inputs.features and not self.takes_edges:
            self.first_edges = affine(
                self.edge_inputs.features, first, init="glorot_uniform", generator=generator
            )
        if spec.graph_features and spec.rows != "graphs":
            self.first_graph = affine(
                spec.graph_features, first, init="glorot_uniform", generator=generator
            )

    def conv(
        self, inputs: int, outputs: int, *, is_answer: bool, generator: torch.Generator | None
    ) -> nn.Module:
        """One convolution; ``is_answer`` says that its outputs are those of the network."""
        raise NotImplementedError

    @property
    def heads(self) -> tuple[str, ...]:
        """The modules that belong to the outcome."""
        if self.answer is not None:
            return ("answer",)
        return ("lin",) if self.lin is not None else (f"convs.{len(self.convs) - 1}",)

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome."""
        groups: list[list[nn.Module]] = [
            [conv, norm] for conv, norm in zip(self.convs, self.norms, strict=True)
        ]
        first = (self.edge_inputs, self.first_edges, self.first_graph)
        groups[0] = [*(part for part in first if part is not None), *groups[0]]
        last: list[nn.Module] = [part for part in (self.jk, self.lin) if part is not None]
        groups += [last] if last else []
        return groups if self.answer is None else [*groups, [self.answer]]

    def context(self, batch: GraphBatch, edge: Tensor | None) -> tuple[Any, ...]:
        """What a convolution takes beside the features of nodes, the same for all layers."""
        return (batch.edges, edge) if self.takes_edges else (batch.edges,)

    def hidden(self, batch: GraphBatch) -> list[Tensor]:
        """The features of the nodes after each layer, ``depth`` of ``(N, width)``.

        The last is what the answer is computed from, or where nodes are answered by the last
        convolution, the answer of every node.
        """
        check_graph(self.name, self.spec, batch)
        edge, depth = self.edge_inputs(batch), len(self.convs)
        context = self.context(batch, edge)
        h: Features = node_inputs(batch, next(self.parameters()))
        if self.spec.rows == "nodes":
            h = drop_features(h, self.dropout, self.training)
        found: list[Tensor] = []
        for number, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            before = h
            y: Tensor = conv(h, *context)
            if number == 0:
                y = self._first(y, batch, edge)
            if number < depth - 1 or self.lin is not None:
                y = functional.relu(norm(y))
                if self.skip and isinstance(before, Tensor) and before.shape == y.shape:
                    y = y + before
                y = drop(y, self.dropout) if self.training and self.dropout else y
            found.append(y)
            h = y
        return found

    def _first(self, y: Tensor, batch: GraphBatch, edge: Tensor | None) -> Tensor:
        """What the first convolution gives, with the features that it does not take itself."""
        if self.first_edges is not None:
            assert edge is not None
            y = y + self.first_edges(segment_mean(edge, batch.edges.offsets))
        if self.first_graph is not None:
            own = graph_inputs(batch, self.spec.graph_features)
            assert own is not None
            y = y + self.first_graph(own)
        return y

    def embed(self, batch: GraphBatch) -> Tensor:
        """What the answer is computed from, for every node."""
        layers = self.hidden(batch)
        h = layers[-1] if self.jk is None else self.jk(layers)
        return h if self.lin is None else self.lin(h)

    def forward(self, batch: GraphBatch) -> Tensor:
        h = self.embed(batch)
        if self.answer is None:
            assert batch.targets is not None
            return h[batch.targets]
        found: Tensor = self.answer(h, batch)
        return found
