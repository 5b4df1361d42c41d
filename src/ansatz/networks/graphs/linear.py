"""Linear models of graphs and of nodes."""

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.graph_batch import GraphBatch, SparseRows
from ansatz.layers.graphs.gcn import smooth
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.layers.ragged import segment_mean, segment_sum
from ansatz.networks.graphs.answers import check_graph, graph_inputs, node_inputs, read_graph
from ansatz.spec import Inputs


class _Linear(nn.Module):
    """A linear map of the plainest numbers of a row, standardised by the training rows."""

    name: str
    center: Tensor
    scale: Tensor

    def __init__(self, inputs: Inputs, outputs: int, generator: torch.Generator | None) -> None:
        super().__init__()
        self.spec = read_graph(self.name, inputs)
        self.size = self.count()
        self.output = affine(self.size, outputs, init="zeros", generator=generator)
        self.register_buffer("center", torch.zeros(self.size))
        self.register_buffer("scale", torch.ones(self.size))

    def count(self) -> int:
        """The number of numbers of a row."""
        raise NotImplementedError

    def numbers(self, batch: GraphBatch) -> Tensor:
        """The numbers of each row, ``(B, size)``."""
        raise NotImplementedError

    def begin(self, batch: GraphBatch) -> None:
        """Sets means and standard deviations by the training rows; a constant number stays.

        Sparse features have one scale, their root mean square: most are rare, and a few training
        rows say little about the standard deviation of each.
        """
        z = self.numbers(batch)
        if isinstance(batch.x, SparseRows):
            size = z.square().mean().sqrt()
            self.scale.fill_(float(size) if size > 0 else 1.0)
            return
        sd = z.std(0, correction=0)
        self.center.copy_(torch.where(sd > 0, z.mean(0), 0.0))
        self.scale.copy_(torch.where(sd > 0, sd, 1.0))

    def standard(self, batch: GraphBatch) -> Tensor:
        """The standardised numbers of each row, ``(B, size)``."""
        check_graph(self.name, self.spec, batch)
        return (self.numbers(batch).to(self.output.weight.dtype) - self.center) / self.scale

    def design(self, batch: GraphBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Row, number and value of each number that is not 0."""
        z = self.standard(batch)
        row, number = z.nonzero(as_tuple=True)
        return row, number, z[row, number]

    def forward(self, batch: GraphBatch) -> Tensor:
        found: Tensor = self.output(self.standard(batch))
        return found


class LinearGraph(_Linear):
    r"""The linear predictor of a graph in its mean features, its counts of types and its size.

    .. math:: f(G) = W \Bigl[\tfrac1N \sum_n x_n, \ \sum_n x_n, \ N, \ E, \
              \tfrac1E \sum_e z_e, \ \sum_e z_e, \ u\Bigr] + b

    with x the features of nodes, z those of edges and u those of the graph. Where features say of
    which type a node or an edge is, their sums are counts. Edges have a say by their number alone:
    what a network does better, the connections did. W and b start at 0.

    Args:
        inputs: ``InputSpec.graph(nodes=D, edges=F, graph=U)``.
        outputs: :math:`P`.
        generator: for the common signature; nothing is drawn.

    Shapes:
        - batch: a ``GraphBatch`` of graphs; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.networks.graphs import LinearGraph
        >>> from ansatz.spec import InputSpec
        >>> path = GraphBatch.of(torch.eye(3), torch.tensor([[0, 1], [1, 2]]), undirected=True)
        >>> LinearGraph(InputSpec.graph(3), 2)(path)
        tensor([[0., 0.]], grad_fn=<...>)
        >>> LinearGraph(InputSpec.graph(3), 2).numbers(path)[:, 3:]
        tensor([[1., 1., 1., 3., 4.]])
    """

    name = "linear_graph"

    def __init__(
        self, inputs: Inputs, outputs: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(inputs, outputs, generator)
        if self.spec.rows != "graphs":
            raise UsageError("linear_graph answers graphs; linear_node answers nodes and pairs.")

    def count(self) -> int:
        """The number of numbers of a graph."""
        spec = self.spec
        return 2 * (spec.features + spec.edge_features) + 2 + spec.relations + spec.graph_features

    def numbers(self, batch: GraphBatch) -> Tensor:
        """The numbers of each graph, ``(G, size)``."""
        x = batch.x if isinstance(batch.x, Tensor) else batch.x.dense()
        of_edges = batch.edges.offsets[batch.offsets]  # the first edge of each graph
        sizes = torch.stack([batch.offsets.diff(), of_edges.diff()], 1).to(x.dtype)
        parts = [segment_mean(x, batch.offsets), segment_sum(x, batch.offsets), sizes]
        if batch.edge_features is not None:
            z = batch.edge_features.to(x.dtype)
            parts += [segment_mean(z, of_edges), segment_sum(z, of_edges)]
        if batch.relations is not None:
            kinds = nn.functional.one_hot(batch.relations, self.spec.relations).to(x.dtype)
            parts.append(segment_sum(kinds, of_edges))
        if batch.graph_features is not None:
            parts.append(batch.graph_features.to(x.dtype))
        return torch.cat(parts, 1)


class LinearNode(_Linear):
    r"""The linear predictor of a node in its own features, without edges.

    .. math:: f(n) = W [x_n, u] + b

    with u the features of its graph; of a pair :math:`W [x_n \odot x_m, x_n + x_m, u] + b`.
    What a network does better, the edges did. W and b start at 0.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows="nodes")`` or ``rows="pairs"``.
        outputs: :math:`P`.
        generator: for the common signature; nothing is drawn.

    Shapes:
        - batch: a ``GraphBatch`` with targets; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.networks.graphs import LinearNode
        >>> from ansatz.spec import InputSpec
        >>> path = GraphBatch.of(
        ...     torch.eye(3), torch.tensor([[0, 1], [1, 2]]), targets=torch.tensor([2])
        ... )
        >>> LinearNode(InputSpec.graph(3, rows="nodes"), 2)(path)
        tensor([[0., 0.]], grad_fn=<...>)
    """

    name = "linear_node"

    def __init__(
        self, inputs: Inputs, outputs: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(inputs, outputs, generator)
        if self.spec.rows == "graphs":
            raise UsageError("linear_node answers nodes and pairs; linear_graph answers graphs.")

    def count(self) -> int:
        """The number of numbers of a node or pair."""
        spec = self.spec
        features = max(spec.features, 1)
        return (features if spec.rows == "nodes" else 2 * features) + spec.graph_features

    def numbers(self, batch: GraphBatch) -> Tensor:
        """The numbers of each node or pair, ``(B, size)``."""
        assert batch.targets is not None
        x = node_inputs(batch, self.output.weight)
        flat = batch.targets.reshape(-1)
        own = x[flat] if isinstance(x, Tensor) else x.take_rows(flat).dense()
        if self.spec.rows == "pairs":
            one, other = own.unflatten(0, (-1, 2)).unbind(1)
            own = torch.cat([one * other, one + other], 1)
        graph = graph_inputs(batch, self.spec.graph_features)
        if graph is None:
            return own
        first = batch.targets if batch.targets.ndim == 1 else batch.targets[:, 0]
        return torch.cat([own, graph[first].to(own.dtype)], 1)


class SGC(_Linear):
    r"""The linear predictor of a node in its smoothed features: a GLM on :math:`\bar A^K X`.

    .. math:: f(n) = W (\bar A^K X)_n + b, \qquad
              \bar A = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}

    A graph convolutional network without activations. Its likelihood is as convex as that of a
    generalised linear model, and what a network does better, the activations did. A pair's answer
    is linear in :math:`[z_n \odot z_m, z_n + z_m]`, a graph's in the sum and the mean of z.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows=...)``.
        outputs: :math:`P`.
        steps: :math:`K`.
        generator: for the common signature; nothing is drawn.

    Shapes:
        - batch: a ``GraphBatch``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.networks.graphs import SGC
        >>> from ansatz.spec import InputSpec
        >>> path = GraphBatch.of(
        ...     torch.eye(3), torch.tensor([[0, 1], [1, 2]]), targets=torch.tensor([2])
        ... )
        >>> SGC(InputSpec.graph(3, rows="nodes"), 2)(path)
        tensor([[0., 0.]], grad_fn=<...>)

    References:
        Wu et al. (2019), Simplifying graph convolutional networks.
        https://arxiv.org/abs/1902.07153
    """

    name = "sgc"

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        steps: int = 2,
        generator: torch.Generator | None = None,
    ) -> None:
        self.steps = require_whole("steps of sgc", steps, low=0, high=1000)
        super().__init__(inputs, outputs, generator)

    def count(self) -> int:
        """The number of numbers of a row."""
        spec = self.spec
        features = max(spec.features, 1) * (1 if spec.rows == "nodes" else 2)
        return features + spec.graph_features

    def numbers(self, batch: GraphBatch) -> Tensor:
        """The smoothed numbers of each row, ``(B, size)``."""
        x = node_inputs(batch, self.output.weight)
        z = x.dense() if isinstance(x, SparseRows) else x
        for _ in range(self.steps):
            z = smooth(batch.edges, z)
        u = batch.graph_features if self.spec.graph_features else None
        if batch.targets is None:
            z = torch.cat([segment_mean(z, batch.offsets), segment_sum(z, batch.offsets)], 1)
            return z if u is None else torch.cat([z, u.to(z.dtype)], 1)
        own = z[batch.targets]
        if self.spec.rows == "pairs":
            one, other = own.unbind(1)
            own = torch.cat([one * other, one + other], 1)
        graph = graph_inputs(batch, self.spec.graph_features)
        if graph is None:
            return own
        first = batch.targets if batch.targets.ndim == 1 else batch.targets[:, 0]
        return torch.cat([own, graph[first].to(own.dtype)], 1)

    def forward(self, batch: GraphBatch) -> Tensor:
        if self.spec.rows != "nodes" or self.spec.graph_features:
            return super().forward(batch)
        check_graph(self.name, self.spec, batch)
        # W first: P columns are smoothed in place of D, and sparse features stay sparse.
        weight = self.output.weight / self.scale
        z: Tensor = node_inputs(batch, weight) @ weight.T
        for _ in range(self.steps):
            z = smooth(batch.edges, z)
        return z[batch.targets] - weight @ self.center + self.output.bias
