"""Recurrent networks over time on the nodes of a fixed graph."""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from ansatz.layers.graph_batch import GraphBatch
from ansatz.layers.graphs import GraphRecurrent
from ansatz.layers.graphs.readout import Kind
from ansatz.networks.graphs.answers import check_graph
from ansatz.networks.graphs.encoder import GraphEncoder
from ansatz.spec import Inputs


class GraphGRU(GraphEncoder):
    r"""A gated recurrent unit over time at each node, which also reads the node's neighbours.

    Its layer is ``ansatz.layers.graphs.GraphRecurrent``. The answer is computed from the state
    after the last time.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows=...)``, D numbers of a node and a time.
        outputs: :math:`P`.
        width: features of a node's state.
        depth: number of layers.
        dropout: in training, of what the answer takes.
        readout: ``"sum"``, ``"mean"``, ``"max"`` or ``"attention"`` of a graph's nodes.
        directed: whether the order of a pair counts.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - batch: a ``GraphBatch`` whose x is ``(N, T, D)``, or ``(N, D)`` for a single time.
        - returns: ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("graph_gru", InputSpec.graph(2, rows="nodes"), 1, width=8)
        >>> weeks = GraphBatch.of(
        ...     torch.randn(3, 10, 2), torch.tensor([[0, 1], [1, 2]]),
        ...     targets=torch.arange(3), undirected=True,
        ... )
        >>> network(weeks).shape
        torch.Size([3, 1])

    References:
        Seo et al. (2018), Structured sequence modeling with graph convolutional recurrent networks.
        https://arxiv.org/abs/1612.07659
    """

    name = "graph_gru"
    kind: ClassVar[Literal["gru", "lstm"]] = "gru"

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 32,
        depth: int = 1,
        dropout: float = 0.0,
        readout: Kind = "sum",
        directed: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            inputs, outputs, width=width, depth=depth, dropout=dropout, readout=readout,
            directed=directed, generator=generator,
        )  # fmt: skip
        self.recurrent = nn.ModuleList(
            GraphRecurrent(width, width, kind=self.kind, generator=generator) for _ in range(depth)
        )

    def embed(self, batch: GraphBatch) -> Tensor:
        """The state of each node after the last time."""
        check_graph(self.name, self.spec, batch)
        x = batch.x if isinstance(batch.x, Tensor) else batch.x.dense()
        times = x.unsqueeze(1) if x.ndim == 2 else x  # (N, T, D)
        steps = [self.enter(batch._replace(x=now))[0] for now in times.unbind(1)]
        h = torch.stack(steps, 1)
        for layer in self.recurrent:
            h = layer(h, batch.edges)
        return h[:, -1]


class GraphLSTM(GraphGRU):
    r"""Long short-term memory over time at each node, which also reads the node's neighbours.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows=...)``, D numbers of a node and a time.
        outputs: :math:`P`.
        width: features of a node's state.
        depth: number of layers.
        dropout: in training, of what the answer takes.
        readout: ``"sum"``, ``"mean"``, ``"max"`` or ``"attention"`` of a graph's nodes.
        directed: whether the order of a pair counts.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - batch: a ``GraphBatch`` whose x is ``(N, T, D)``, or ``(N, D)`` for a single time.
        - returns: ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("graph_lstm", InputSpec.graph(2), 1, width=8)
        >>> weeks = GraphBatch.of(torch.randn(3, 10, 2), torch.tensor([[0, 1], [1, 2]]))
        >>> network(weeks).shape
        torch.Size([1, 1])

    References:
        Seo et al. (2018), Structured sequence modeling with graph convolutional recurrent networks.
        https://arxiv.org/abs/1612.07659
    """

    name = "graph_lstm"
    kind = "lstm"
