"""One round of messages, from two functions of the user's own."""

from collections.abc import Callable
from typing import Protocol

from torch import Tensor

from ansatz.layers.graph_batch import GraphBatch
from ansatz.layers.ragged import Reduce, segment_reduce


class Message(Protocol):
    """``message(x_source, x_destination, edge_features) -> (E, K)``."""

    def __call__(self, source: Tensor, destination: Tensor, edge: Tensor | None) -> Tensor:
        """The message of each edge."""
        ...


def propagate(
    graph: GraphBatch,
    message: Message,
    reduce: Reduce = "sum",
    update: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Tensor:
    r"""Sends a message along each edge, reduces those that arrive at a node, and updates it.

    .. math:: x_n' = \phi\Bigl(x_n, \bigoplus_{m \in N(n)} \psi(x_m, x_n, e_{nm})\Bigr)

    Whatever the two functions are, the result follows a renaming of the nodes, since
    :math:`\bigoplus` does not know the order of its arguments.

    Args:
        graph: nodes, edges and their features; weights of edges multiply their messages.
        message: :math:`\psi`, from the features ``(E, D)`` of each edge's source and destination
            and ``(E, F)`` of the edge itself, or None, to ``(E, K)``.
        reduce: ``"sum"``, ``"mean"`` or ``"max"`` of the messages; a node without any has 0.
        update: :math:`\phi`, from ``(N, D)`` and ``(N, K)``; by default the second alone.

    Returns:
        What ``update`` returns, a row for each node. The next round takes
        ``graph._replace(x=...)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.layers.graphs import propagate
        >>> path = GraphBatch.of(
        ...     torch.tensor([[1.0], [10.0], [100.0]]), torch.tensor([[0, 1], [1, 2]]),
        ...     undirected=True,
        ... )
        >>> propagate(path, lambda m, n, e: m - n).T  # minus the Laplacian
        tensor([[  9.,  81., -90.]])

    References:
        Gilmer et al. (2017), Neural message passing for quantum chemistry, eq. 1 and 2.
        https://arxiv.org/abs/1704.01212
    """
    x = graph.x if isinstance(graph.x, Tensor) else graph.x.dense()
    edges = graph.edges
    messages = message(edges.at_source(x), edges.at_destination(x), graph.edge_features)
    if messages.shape[:1] != edges.source.shape:
        raise ValueError(
            f"message must return a row for each of the {len(edges.source)} edges, got "
            f"{tuple(messages.shape)}."
        )
    if edges.weight is not None:
        weight = edges.weight.to(messages.dtype)
        messages = messages * weight.reshape(-1, *[1] * (messages.ndim - 1))
    found = segment_reduce(messages, edges.offsets, reduce)
    return found if update is None else update(x, found)
