"""The layer of graph isomorphism networks."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ansatz.layers.edges import Edges
from ansatz.layers.graphs.node_features import Features, map_nodes, node_norm
from ansatz.layers.init import affine
from ansatz.layers.ragged import segment_sum


class NodeMLP(nn.Module):
    """Two affine maps of each node with a norm and ReLU between them.

    Args:
        in_features: of a node.
        out_features: that a node gets, and hidden ones.
        norm: ``"batch"``, ``"layer"`` or None.
        generator: where weights are drawn from.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        norm: str | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = ((in_features, out_features), (out_features, out_features))
        self.lins = nn.ModuleList(
            affine(*size, init=init, generator=generator)
            for size, init in zip(sizes, ("he_uniform", "lecun_uniform"), strict=True)
        )
        self.norms = nn.ModuleList([node_norm("gin", norm, out_features)])

    def forward(self, hidden: Tensor) -> Tensor:
        """What follows the first map."""
        return self.lins[1](functional.relu(self.norms[0](hidden)))


class GINConv(nn.Module):
    r"""The layer that distinguishes all that colour refinement does.

    .. math:: x_n' = \mathrm{MLP}\Bigl((1 + \epsilon) x_n +
              \sum_{m \in N(n)} \mathrm{message}(x_m, e_{nm})\Bigr)

    The message is :math:`x_m`; with features of edges it is :math:`\mathrm{ReLU}(x_m + U e_{nm})`,
    weighted by the edge. A sum keeps how often each neighbour occurs, which a mean or a maximum
    forgets.

    Args:
        in_features: features of a node, :math:`D`.
        out_features: features that a node gets.
        edge_features: of an edge, :math:`F`.
        epsilon: the start of :math:`\epsilon`.
        train_epsilon: whether it is a parameter.
        norm: within the MLP: ``"batch"``, ``"layer"`` or None.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, D)``, or sparse rows.
        - edge_features: ``(E, F)`` in the order of the edges.
        - returns: ``(N, out_features)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import GINConv
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> GINConv(4, 2)(torch.randn(3, 4), path).shape
        torch.Size([3, 2])

    References:
        Xu et al. (2019), How powerful are graph neural networks? eq. 4.1.
        https://arxiv.org/abs/1810.00826
        Hu et al. (2020), Strategies for pre-training graph neural networks: features of edges.
        https://arxiv.org/abs/1905.12265
    """

    eps: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        edge_features: int = 0,
        epsilon: float = 0.0,
        train_epsilon: bool = False,
        norm: str | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.nn = NodeMLP(in_features, out_features, norm=norm, generator=generator)
        start = torch.full((1,), float(epsilon))
        if train_epsilon:
            self.eps = nn.Parameter(start)
        else:
            self.register_buffer("eps", start)
        self.lin = None
        if edge_features:
            self.lin = affine(
                edge_features, in_features, init="glorot_uniform", generator=generator
            )

    def forward(self, x: Features, edges: Edges, edge_features: Tensor | None = None) -> Tensor:
        first = self.nn.lins[0]
        assert isinstance(first, nn.Linear)
        if self.lin is not None:
            assert edge_features is not None
            dense = x if isinstance(x, Tensor) else x.dense()
            messages = functional.relu(edges.at_source(dense) + self.lin(edge_features))
            if edges.weight is not None:
                messages = messages * edges.weight.to(messages.dtype).unsqueeze(1)
            hidden = first((1 + self.eps) * dense + segment_sum(messages, edges.offsets))
        elif isinstance(x, Tensor) and x.shape[1] <= first.out_features:
            hidden = first(self._with_own(edges.sum(x), x))
        else:  # the map is linear: it may go first where it makes the rows shorter
            mapped = map_nodes(first, x) - first.bias
            hidden = self._with_own(edges.sum(mapped), mapped) + first.bias
        found: Tensor = self.nn(hidden)
        return found

    def _with_own(self, sums: Tensor, x: Tensor) -> Tensor:
        """Adds (1 + epsilon) x in one pass."""
        traced = torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling()
        if isinstance(self.eps, nn.Parameter) or self.eps.is_meta or traced:
            return sums + (1 + self.eps) * x
        return torch.add(sums, x, alpha=1 + self.eps.item())
