"""Summaries of all nodes of a graph."""

from typing import Literal

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.ragged import segment_reduce, segment_softmax, segment_sum

Kind = Literal["sum", "mean", "max", "attention"]
KINDS = ("sum", "mean", "max", "attention")


class Readout(nn.Module):
    r"""One vector for each graph, whatever the order of its nodes.

    ``sum``, ``mean`` and ``max`` are taken over the nodes, for each feature. ``attention`` is

    .. math:: y = \sum_n a_n x_n, \qquad a = \mathrm{softmax}_n (w^\top x_n + c)

    The sum knows how many nodes there are; the others do not. A graph without nodes has 0.

    Args:
        features: of a node, :math:`D`.
        kind: one of the four.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, D)``, the nodes of all graphs one behind the other.
        - offsets: ``(G + 1,)``, the first node of each graph.
        - returns: ``(G, D)``.

    Example:
        >>> import torch
        >>> from ansatz.layers.graphs import Readout
        >>> Readout(1, "mean")(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 2, 3])).T
        tensor([[2., 5.]])

    References:
        Li et al. (2016), Gated graph sequence neural networks, eq. 7: ``attention``.
        https://arxiv.org/abs/1511.05493
    """

    def __init__(
        self, features: int, kind: Kind = "sum", *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise UsageError(f"readout must be one of {', '.join(KINDS)}, got {kind!r}.")
        self.kind = kind
        self.gate = None
        if kind == "attention":
            self.gate = affine(features, 1, init="lecun_normal", generator=generator)

    def forward(self, x: Tensor, offsets: Tensor) -> Tensor:
        if self.gate is not None:
            return segment_sum(segment_softmax(self.gate(x), offsets) * x, offsets)
        assert self.kind != "attention"
        return segment_reduce(x, offsets, self.kind)
