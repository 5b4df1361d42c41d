"""The edges of a graph, sorted once, and sums over neighbours."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ansatz.layers.ragged import as_rows, places, rows_of, segment_sum, spread


class Edges(NamedTuple):
    r"""The edges of a graph, sorted by destination, and by source for the way back.

    It is the sparse matrix :math:`A`, ``(N, M)``, with :math:`A_{nm} = w_e` for the edge e from
    node m to node n. M = N for a graph; M differs from N for a bipartite one.

    Args:
        source: ``(E,)`` int64, the node from which each edge comes.
        destination: ``(E,)`` int64, the node to which it leads; never falling.
        offsets: ``(N + 1,)``; the edges into node n are ``offsets[n]:offsets[n + 1]``.
        order: ``(E,)``, the places of the edges when they are sorted by source.
        successors: ``(E,)``, the destinations in that order: ``destination[order]``.
        out_offsets: ``(M + 1,)``; those out of node m are ``order[out_offsets[m]:...]``.
        weight: ``(E,)``, or None where all are 1.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> path.source, path.offsets
        (tensor([1, 0, 2, 1]), tensor([0, 1, 3, 4]))
        >>> path.sum(torch.tensor([[1.0], [10.0], [100.0]])).T
        tensor([[ 10., 101.,  10.]])
    """

    source: Tensor
    destination: Tensor
    offsets: Tensor
    order: Tensor
    successors: Tensor
    out_offsets: Tensor
    weight: Tensor | None = None

    @classmethod
    def of(
        cls,
        edge_index: Tensor,
        nodes: int | tuple[int, int],
        weight: Tensor | None = None,
        *,
        undirected: bool = False,
        loops: bool = False,
    ) -> "Edges":
        """Sorts pairs (source, destination); :meth:`sort` also says where each one stood."""
        return cls.sort(edge_index, nodes, weight, undirected=undirected, loops=loops)[0]

    @classmethod
    def sort(
        cls,
        edge_index: Tensor,
        nodes: int | tuple[int, int],
        weight: Tensor | None = None,
        *,
        undirected: bool = False,
        loops: bool = False,
    ) -> "tuple[Edges, Tensor]":
        """Sorts pairs (source, destination), adds reverse edges, and merges duplicates.

        Args:
            edge_index: ``(2, E')`` int64, sources and destinations.
            nodes: their number N, or (M, N), those of sources and of destinations.
            weight: ``(E',)``; those of duplicates are added.
            undirected: an edge leads both ways; a list that already has both directions of all
                its edges stays as it is.
            loops: whether edges from a node to itself stay.

        Returns:
            The edges, and ``(E,)`` the place in the list of each of them (of the first of its
            duplicates, whichever the direction).
        """
        sources, destinations = (nodes, nodes) if isinstance(nodes, int) else nodes
        source, destination = _checked(edge_index, sources, destinations)
        place = torch.arange(len(source), device=source.device)
        if not loops and sources == destinations:
            keep = source != destination
            if not bool(keep.all()):
                source, destination, place = source[keep], destination[keep], place[keep]
        key = destination * sources + source
        if undirected and not _is_symmetric(key, source * sources + destination):
            key = torch.cat([key, source * sources + destination])
            place = torch.cat([place, place])
        key, by_key = key.sort(stable=True)
        place = place[by_key]
        kept, row = torch.unique_consecutive(key, return_inverse=True)
        weight = None if weight is None else weight[place]
        if len(kept) < len(key):
            if weight is not None:
                weight = weight.new_zeros(len(kept)).index_add(0, row, weight)
            first = torch.cat([row.new_ones(1), row.diff()]).bool()
            place = place[first]
        counts = (destinations, sources)
        return cls.sorted(kept % max(sources, 1), kept // max(sources, 1), counts, weight), place

    @classmethod
    def sorted(
        cls,
        source: Tensor,
        destination: Tensor,
        counts: tuple[int, int],
        weight: Tensor | None = None,
    ) -> "Edges":
        """Edges that are sorted by destination already; ``counts`` are N and M."""
        ordered, order = source.sort(stable=True)
        offsets, out_offsets = _offsets(destination, counts[0]), _offsets(ordered, counts[1])
        return cls(source, destination, offsets, order, destination[order], out_offsets, weight)

    @property
    def nodes(self) -> int:
        """The number of destinations, N."""
        return len(self.offsets) - 1

    @property
    def sources(self) -> int:
        """The number of sources, M; N for a graph."""
        return len(self.out_offsets) - 1

    @property
    def degree(self) -> Tensor:
        """The sum of the weights of the edges into each node, ``(N,)``; their number without."""
        if self.weight is None:
            return self.offsets.diff()
        return segment_sum(self.weight, self.offsets)

    @property
    def edge_index(self) -> Tensor:
        """Sources and destinations, ``(2, E)``."""
        return torch.stack([self.source, self.destination])

    def transposed(self) -> "Edges":
        """All edges the other way round."""
        weight = None if self.weight is None else self.weight[self.order]
        back = torch.empty_like(self.order)
        back[self.order] = torch.arange(len(back), device=back.device)
        ordered = self.source[self.order]
        return Edges(
            self.successors, ordered, self.out_offsets, back, self.source, self.offsets, weight
        )

    def sum(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        r"""Sums over the edges into each node, :math:`y_n = \sum_{e: m \to n} w_e x_m`.

        The numbers of a node are added in the order of its edges, forwards and backwards, so the
        same bits come out on any number of threads. It can be differentiated twice.

        Args:
            x: ``(M, ...)``, one row per source.
            weight: ``(E,)`` for each edge; by default that of the edges.

        Returns:
            ``(N, ...)``; a node without edges has 0.
        """
        weight = self.weight if weight is None else weight
        if torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling():
            values = x[self.source] if weight is None else x[self.source] * _beside(weight, x)
            zeros = values.new_zeros(self.nodes, *x.shape[1:])
            return zeros.index_add(0, self.destination, values)
        if weight is not None and weight.dtype != x.dtype:
            weight = weight.to(x.dtype)
        flat = as_rows(x)
        found: Tensor = _Product.apply(flat, weight, *self[:6])
        return found.reshape(self.nodes, *x.shape[1:])

    def at_source(self, x: Tensor) -> Tensor:
        """The row of each edge's source, ``(M, ...)`` to ``(E, ...)``."""
        if torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling():
            return x[self.source]
        found: Tensor = _Gather.apply(x, self.source, self.order, self.out_offsets)
        return found

    def at_destination(self, x: Tensor) -> Tensor:
        """The row of each edge's destination, ``(N, ...)`` to ``(E, ...)``."""
        return spread(x, self.offsets, len(self.source))

    def take(self, nodes: Tensor) -> "tuple[Edges, Tensor]":
        """The edges between some nodes, renumbered in their order, and the places they had.

        Args:
            nodes: ``(N',)`` int64, all different.
        """
        new = torch.full((self.nodes,), -1, device=nodes.device)
        new[nodes] = torch.arange(len(nodes), device=nodes.device)
        place, offsets = places(self.offsets, nodes)
        source = new[self.source[place]]
        inside = source >= 0
        destination = rows_of(offsets)[inside]
        source, place = source[inside], place[inside]
        weight = None if self.weight is None else self.weight[place]
        counts = (len(nodes), len(nodes))
        return Edges.sorted(source, destination, counts, weight), place

    def take_blocks(
        self, starts: Tensor, blocks: slice | Tensor, nodes: Tensor | None = None
    ) -> "tuple[Edges, Tensor]":
        """The edges of some graphs of a disjoint union, and the places they had.

        Args:
            starts: ``(B + 1,)``, the first node of each graph. No edge joins two graphs.
            blocks: which graphs.
            nodes: their nodes, if they are known already.
        """
        # A graph has as many edges into its nodes as out of them: both orders have its places.
        edge_starts = self.offsets.index_select(0, starts)
        place, found = places(edge_starts, blocks)
        first_edges, counts = edge_starts[:-1][blocks], found.diff()
        first_nodes, node_counts = starts[:-1][blocks], starts.diff()[blocks]
        shifts = torch.stack([
            node_counts.cumsum(0) - node_counts - first_nodes, found[:-1] - first_edges
        ])  # fmt: skip
        shift, edge_shift = shifts.repeat_interleave(counts, 1, output_size=len(place))
        if nodes is None:
            nodes, _ = places(starts, blocks)
        return Edges(
            self.source.index_select(0, place).add_(shift),
            self.destination.index_select(0, place).add_(shift),
            _sum_from_zero(self.offsets.diff().index_select(0, nodes)),
            self.order.index_select(0, place).add_(edge_shift),
            self.successors.index_select(0, place).add_(shift),
            _sum_from_zero(self.out_offsets.diff().index_select(0, nodes)),
            None if self.weight is None else self.weight.index_select(0, place),
        ), place

    def keep(self, edges: Tensor) -> "Edges":
        """Some of the edges, by a mask ``(E,)`` or by rising places; all nodes stay."""
        weight = None if self.weight is None else self.weight[edges]
        counts = (self.nodes, self.sources)
        return Edges.sorted(self.source[edges], self.destination[edges], counts, weight)

    def dense(self) -> Tensor:
        """The matrix A, ``(N, M)``."""
        weight = self.weight
        if weight is None:
            weight = torch.ones(len(self.source), device=self.source.device)
        zeros = weight.new_zeros(self.nodes, self.sources)
        return zeros.index_put((self.destination, self.source), weight, accumulate=True)


class _Product(torch.autograd.Function):
    """A x, whose derivatives are A' g and, for each weight, the product of g and x."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        source: Tensor,
        destination: Tensor,
        offsets: Tensor,
        order: Tensor,
        successors: Tensor,
        out_offsets: Tensor,
    ) -> Tensor:
        ctx.edges = (source, destination, offsets, order, successors, out_offsets)
        ctx.save_for_backward(x if weight is not None else None, weight)
        return _bags(x, weight, source, offsets)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,) = grads
        x, weight = ctx.saved_tensors
        edges = Edges(*ctx.edges)
        to_x, to_weight = None, None
        if ctx.needs_input_grad[0]:
            back = None if weight is None else weight[edges.order]
            if torch.is_grad_enabled():  # this derivative is differentiated itself
                to_x = _Product.apply(g, back, *edges.transposed()[:6])
            else:
                to_x = _bags(g, back, edges.successors, edges.out_offsets)
        if weight is not None and ctx.needs_input_grad[1]:
            to_weight = edge_products(edges, g, x)
        return to_x, to_weight, None, None, None, None, None, None


class _Gather(torch.autograd.Function):
    """Rows of sources; the derivative sums over the edges out of each node, in their order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, source: Tensor, order: Tensor, out_offsets: Tensor) -> Tensor:
        ctx.save_for_backward(source, order, out_offsets)
        return x.index_select(0, source)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        source, order, out_offsets = ctx.saved_tensors
        return _Scatter.apply(grads[0], source, order, out_offsets), None, None, None


class _Scatter(torch.autograd.Function):
    """Sums over the edges out of each node; the derivative of :class:`_Gather`."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, source: Tensor, order: Tensor, out_offsets: Tensor) -> Tensor:
        ctx.save_for_backward(source, order, out_offsets)
        found = _bags(as_rows(g), None, order, out_offsets)
        return found.reshape(len(out_offsets) - 1, *g.shape[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _Gather.apply(grads[0], *ctx.saved_tensors), None, None, None


def edge_products(edges: Edges, a: Tensor, b: Tensor) -> Tensor:
    """The inner product of a's row at the destination and b's at the source, ``(E,)``."""
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        return (edges.at_destination(a) * edges.at_source(b)).sum(1)
    step = max(1, 2**22 // max(a.shape[1], 1))  # 4 million numbers at once
    found = a.new_empty(len(edges.source))
    for first in range(0, len(found), step):
        part = slice(first, first + step)
        rows = a.index_select(0, edges.destination[part])
        rows *= b.index_select(0, edges.source[part])
        found[part] = rows.sum(1)
    return found


def _bags(x: Tensor, weight: Tensor | None, source: Tensor, offsets: Tensor) -> Tensor:
    if not x.numel() or not len(source):
        return x.new_zeros(len(offsets) - 1, x.shape[1])
    return functional.embedding_bag(
        source, x, offsets, mode="sum", per_sample_weights=weight, include_last_offset=True
    )


def _checked(edge_index: Tensor, sources: int, destinations: int) -> tuple[Tensor, Tensor]:
    if edge_index.ndim != 2 or len(edge_index) != 2 or edge_index.is_floating_point():
        raise ValueError(
            "edge_index must be whole numbers of shape (2, E), sources and destinations, got "
            f"{tuple(edge_index.shape)} of {edge_index.dtype}."
        )
    for row, count, what in zip(
        edge_index, (sources, destinations), ("source", "destination"), strict=True
    ):
        bad = ((row < 0) | (row >= count)).nonzero()
        if len(bad):
            place = int(bad[0])
            raise ValueError(
                f"edge {place} has the {what} {int(row[place])}, but nodes are 0 to {count - 1}."
            )
    return edge_index[0].long(), edge_index[1].long()


def _is_symmetric(key: Tensor, reverse: Tensor) -> bool:
    return torch.equal(key.unique(), reverse.unique())


def _offsets(row: Tensor, count: int) -> Tensor:
    """The offsets of rows that never fall."""
    return _sum_from_zero(torch.bincount(row, minlength=count))


def _sum_from_zero(counts: Tensor) -> Tensor:
    return functional.pad(counts.cumsum(0), (1, 0))


def _beside(weight: Tensor, x: Tensor) -> Tensor:
    return weight.reshape(-1, *[1] * (x.ndim - 1))
