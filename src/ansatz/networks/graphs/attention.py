"""Networks of graph attention."""

from typing import Any, ClassVar

import torch
from torch import nn

from ansatz.layers.graphs import GATConv, GATv2Conv
from ansatz.layers.limits import require_whole
from ansatz.networks.graphs.body import GraphNetwork
from ansatz.spec import Inputs


class GAT(GraphNetwork):
    r"""A network whose nodes choose by attention which neighbours count.

    Its layer is ``ansatz.layers.graphs.GATConv``. Heads stand side by side; those of the
    convolution that answers nodes are averaged.

    Args:
        inputs: ``InputSpec.graph(nodes=D, edges=F, rows=...)``.
        outputs: :math:`P`.
        heads: number of heads of each layer.
        options: those of :class:`~ansatz.networks.graphs.body.GraphNetwork`; ``dropout`` is of
            attention weights as well.

    Shapes:
        - batch: a ``GraphBatch``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("gat", InputSpec.graph(3), 2, width=16, heads=4)
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> network(GraphBatch.of(torch.randn(4, 3), path, undirected=True)).shape
        torch.Size([1, 2])

    References:
        Veličković et al. (2018), Graph attention networks. https://arxiv.org/abs/1710.10903
    """

    name = "gat"
    takes_edges: ClassVar[bool] = True
    layer: ClassVar[type[GATConv] | type[GATv2Conv]] = GATConv

    def __init__(self, inputs: Inputs, outputs: int, *, heads: int = 8, **options: Any) -> None:
        self.num_heads = require_whole(f"heads of {self.name}", heads)
        self.attention_dropout = float(options.get("dropout", 0.5))
        super().__init__(inputs, outputs, **options)

    def conv(
        self, inputs: int, outputs: int, *, is_answer: bool, generator: torch.Generator | None
    ) -> nn.Module:
        """One layer of attention."""
        return self.layer(
            inputs,
            outputs,
            heads=self.num_heads,
            concat=not is_answer,
            edge_features=self.edge_inputs.features,
            dropout=self.attention_dropout,
            generator=generator,
        )


class GATv2(GAT):
    r"""A network of graph attention whose ranking of neighbours may differ from node to node.

    Its layer is ``ansatz.layers.graphs.GATv2Conv``.

    Args:
        inputs: ``InputSpec.graph(nodes=D, edges=F, rows=...)``.
        outputs: :math:`P`.
        heads: number of heads of each layer.
        options: those of :class:`~ansatz.networks.graphs.body.GraphNetwork`.

    Shapes:
        - batch: a ``GraphBatch``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("gatv2", InputSpec.graph(3), 2, width=16, heads=4)
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> network(GraphBatch.of(torch.randn(4, 3), path, undirected=True)).shape
        torch.Size([1, 2])

    References:
        Brody, Alon & Yahav (2022), How attentive are graph attention networks?
        https://arxiv.org/abs/2105.14491
    """

    name = "gatv2"
    layer = GATv2Conv
