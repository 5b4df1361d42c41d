"""Networks of graph convolutions: GCN, GraphSAGE, GIN and the basic one."""

from typing import Any, ClassVar, Literal

import torch
from torch import nn

from ansatz.layers.graphs import GCNConv, GINConv, GraphConv, SAGEConv
from ansatz.layers.graphs.graph_conv import Aggregation
from ansatz.networks.graphs.body import GraphNetwork
from ansatz.spec import Inputs


class GCN(GraphNetwork):
    r"""A network of graph convolutions.

    .. math:: f(X, A) = \bar A \, \mathrm{ReLU}(\bar A X W_0 + b_0) W_1 + b_1

    for two layers that answer nodes, with :math:`\bar A` of ``ansatz.layers.graphs.GCNConv``.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows=...)``.
        outputs: :math:`P`.
        options: ``width``, ``depth``, ``dropout``, ``norm``, ``skip``, ``jumping``, ``readout``,
            ``directed`` and ``generator`` of
            :class:`~ansatz.networks.graphs.body.GraphNetwork`.

    Shapes:
        - batch: a ``GraphBatch``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("gcn", InputSpec.graph(3, rows="nodes"), 2, width=16)
        >>> path = GraphBatch.of(
        ...     torch.randn(4, 3), torch.tensor([[0, 1, 2], [1, 2, 3]]),
        ...     targets=torch.arange(4), undirected=True,
        ... )
        >>> network(path).shape
        torch.Size([4, 2])

    References:
        Kipf & Welling (2017), Semi-supervised classification with graph convolutional networks.
        https://arxiv.org/abs/1609.02907
    """

    name = "gcn"

    def conv(
        self, inputs: int, outputs: int, *, is_answer: bool, generator: torch.Generator | None
    ) -> nn.Module:
        """One graph convolution."""
        return GCNConv(inputs, outputs, generator=generator)


class GraphSAGE(GraphNetwork):
    r"""A network that sees neighbours by their mean, sum or maximum.

    Its layer is ``ansatz.layers.graphs.SAGEConv``; the node itself has a map of its own, so that
    its features are not mixed with those of its neighbours.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows=...)``.
        outputs: :math:`P`.
        aggregation: ``"mean"``, ``"sum"`` or ``"max"`` over the neighbours.
        options: those of :class:`~ansatz.networks.graphs.body.GraphNetwork`.

    Shapes:
        - batch: a ``GraphBatch``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("graphsage", InputSpec.graph(3), 2, width=16)
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> network(GraphBatch.of(torch.randn(4, 3), path, undirected=True)).shape
        torch.Size([1, 2])

    References:
        Hamilton, Ying & Leskovec (2017), Inductive representation learning on large graphs.
        https://arxiv.org/abs/1706.02216
    """

    name = "graphsage"

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        aggregation: Literal["mean", "sum", "max"] = "mean",
        **options: Any,
    ) -> None:
        self.aggregation = aggregation
        super().__init__(inputs, outputs, **options)

    def conv(
        self, inputs: int, outputs: int, *, is_answer: bool, generator: torch.Generator | None
    ) -> nn.Module:
        """One layer of GraphSAGE."""
        return SAGEConv(inputs, outputs, aggregation=self.aggregation, generator=generator)


class GIN(GraphNetwork):
    r"""A network that distinguishes all graphs that colour refinement does.

    Its layer is ``ansatz.layers.graphs.GINConv``: a perceptron of the sum of a node and its
    neighbours. Features of edges enter the messages.

    Args:
        inputs: ``InputSpec.graph(nodes=D, edges=F, rows=...)``.
        outputs: :math:`P`.
        train_epsilon: whether the weight of the node itself is a parameter.
        options: those of :class:`~ansatz.networks.graphs.body.GraphNetwork`; ``norm`` is within
            each perceptron as well.

    Shapes:
        - batch: a ``GraphBatch``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("gin", InputSpec.graph(3), 2, width=16, norm="batch")
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> network(GraphBatch.of(torch.randn(4, 3), path, undirected=True)).shape
        torch.Size([1, 2])

    References:
        Xu et al. (2019), How powerful are graph neural networks?
        https://arxiv.org/abs/1810.00826
    """

    name = "gin"
    takes_edges: ClassVar[bool] = True

    def __init__(
        self, inputs: Inputs, outputs: int, *, train_epsilon: bool = False, **options: Any
    ) -> None:
        self.train_epsilon, self.inner_norm = train_epsilon, options.get("norm")
        super().__init__(inputs, outputs, **options)

    def conv(
        self, inputs: int, outputs: int, *, is_answer: bool, generator: torch.Generator | None
    ) -> nn.Module:
        """One layer of GIN."""
        return GINConv(
            inputs,
            outputs,
            edge_features=self.edge_inputs.features,
            train_epsilon=self.train_epsilon,
            norm=self.inner_norm,
            generator=generator,
        )


class GNN(GraphNetwork):
    r"""The basic graph network, with a choice of how neighbours are summed.

    Its layer is ``ansatz.layers.graphs.GraphConv``:
    :math:`h_n' = \mathrm{ReLU}(W_{self} h_n + W_{neigh} \sum_m c_{nm} h_m + b)`.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows=...)``.
        outputs: :math:`P`.
        aggregation: ``"basic"``, ``"self_loop"``, ``"mean"`` or ``"symmetric"``.
        options: those of :class:`~ansatz.networks.graphs.body.GraphNetwork`.

    Shapes:
        - batch: a ``GraphBatch``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("gnn", InputSpec.graph(3), 2, aggregation="mean", width=16)
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> network(GraphBatch.of(torch.randn(4, 3), path, undirected=True)).shape
        torch.Size([1, 2])

    References:
        Morris et al. (2019), Weisfeiler and Leman go neural. https://arxiv.org/abs/1810.02244
    """

    name = "gnn"

    def __init__(
        self, inputs: Inputs, outputs: int, *, aggregation: Aggregation = "basic", **options: Any
    ) -> None:
        self.aggregation: Aggregation = aggregation
        super().__init__(inputs, outputs, **options)

    def conv(
        self, inputs: int, outputs: int, *, is_answer: bool, generator: torch.Generator | None
    ) -> nn.Module:
        """One basic layer."""
        return GraphConv(inputs, outputs, aggregation=self.aggregation, generator=generator)
