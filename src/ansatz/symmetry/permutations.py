"""Permutations of the elements of a set, and of the nodes of a graph."""

from typing import Any

import torch
from torch import Tensor

from ansatz.layers.edges import Edges
from ansatz.layers.graph_batch import GraphBatch
from ansatz.layers.ragged import Ragged, rows_of
from ansatz.symmetry.group import Group


class Permutation(Group):
    r"""All orders of the elements of a set, or of the points of a cloud: :math:`S_N`.

    .. math:: (g x)_{g(i)} = x_i

    Args:
        axes: along which elements stand; several axes are reordered alike. Of ragged rows the
            elements of each row are reordered, every row in its own way.

    Shapes:
        - x: ``(B, N, ...)`` for the default; a mask ``(B, N)`` beside it is reordered with it.
        - element: ``(N,)`` whole numbers, :math:`g(0), \dots, g(N-1)`; of ragged rows, of all their
          elements.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import Permutation
        >>> Permutation().act(torch.tensor([1, 2, 0]), torch.tensor([[7, 8, 9]]))
        tensor([[9, 7, 8]])

    References:
        Zaheer et al. (2017), Deep Sets. https://arxiv.org/abs/1703.06114
    """

    name = "permutation"

    def __init__(self, *, axes: int | tuple[int, ...] = 1) -> None:
        self.axes = (axes,) if isinstance(axes, int) else tuple(axes)

    def identity(self, x: Any) -> Tensor:
        return torch.arange(len(x.values) if isinstance(x, Ragged) else self._count(x))

    def sample(self, x: Any, generator: torch.Generator | None = None) -> Tensor:
        device = generator.device if generator is not None else "cpu"
        if isinstance(x, Ragged):
            order = torch.randperm(len(x.values), generator=generator, device=device)
            return order[rows_of(x.offsets.to(device))[order].argsort(stable=True)]
        return torch.randperm(self._count(x), generator=generator, device=device)

    def act(self, element: Tensor, x: Any) -> Any:
        if isinstance(x, Ragged):
            return x._replace(values=self._along(element, x.values, (0,)))
        return self._along(element, x, self.axes)

    def move(self, element: Tensor, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Reorders every input; beside ragged ones, numbers of the rows stay."""
        if not isinstance(inputs[0], Ragged):
            return super().move(element, inputs)
        return tuple(self.act(element, x) if isinstance(x, Ragged) else x for x in inputs)

    def inverse(self, element: Tensor) -> Tensor:
        return element.argsort()

    def compose(self, first: Tensor, second: Tensor) -> Tensor:
        return first[second]

    def _count(self, x: Tensor) -> int:
        sizes = {x.shape[axis] for axis in self.axes if -x.ndim <= axis < x.ndim}
        if len(sizes) != 1 or max(self.axes) >= x.ndim:
            raise ValueError(
                f"{self.name} needs axes {self.axes} of one length, got x of shape "
                f"{tuple(x.shape)}."
            )
        return sizes.pop()

    def _along(self, element: Tensor, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        source = self.inverse(element).to(x.device)
        for axis in axes:
            if not -x.ndim <= axis < x.ndim or x.shape[axis] != len(source):
                raise ValueError(
                    f"{self.name} of {len(source)} elements needs that many along axis {axis}, "
                    f"got {tuple(x.shape)}. For outputs of another shape give output_action."
                )
            x = x.index_select(axis, source)
        return x


class NodePermutation(Permutation):
    r"""All names of the nodes of a graph: rows and columns of its adjacency matrix alike.

    .. math:: (g A)_{g(i) g(j)} = A_{ij}, \qquad (g X)_{g(i)} = X_i

    A lone tensor is an adjacency matrix; of several inputs the first holds the nodes' features,
    the second the adjacency, and further ones a number per node (a mask). Of a
    :class:`~ansatz.layers.GraphBatch` the nodes of each graph are renamed, every graph in its own
    way, with the ends of its edges and the targets: answers of graphs or targets do not move.

    Shapes:
        - inputs: ``A (B, N, N, ...)``; or ``X (B, N, D)``, ``A (B, N, N, ...)``, ``(B, N)``.
        - element: ``(N,)`` whole numbers; of a batch of graphs, of all their nodes.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import NodePermutation
        >>> A = torch.tensor([[[0, 1, 0], [0, 0, 2], [0, 0, 0]]])
        >>> NodePermutation().act(torch.tensor([1, 0, 2]), A)
        tensor([[[0, 0, 2],
                 [1, 0, 0],
                 [0, 0, 0]]])

    References:
        Maron et al. (2019), Invariant and equivariant graph networks.
        https://arxiv.org/abs/1812.09902
    """

    name = "node_permutation"

    def __init__(self) -> None:
        super().__init__(axes=(1, 2))

    def identity(self, x: Any) -> Tensor:
        return super().identity(_nodes(x))

    def sample(self, x: Any, generator: torch.Generator | None = None) -> Tensor:
        return super().sample(_nodes(x), generator)

    def act(self, element: Tensor, x: Any) -> Any:
        return _renamed(x, element) if isinstance(x, GraphBatch) else super().act(element, x)

    def _count(self, x: Tensor) -> int:
        return x.shape[1]

    def move(self, element: Tensor, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(inputs) == 1:
            return (self.act(element, inputs[0]),)
        nodes, adjacency, *rest = inputs
        moved = [self._along(element, each, (1,)) for each in rest]
        return (self._along(element, nodes, (1,)), self.act(element, adjacency), *moved)


def _nodes(x: Any) -> Any:
    """The nodes of graphs as ragged rows; anything else as it is."""
    if not isinstance(x, GraphBatch):
        return x
    return Ragged(torch.arange(x.nodes, device=x.offsets.device)[:, None], x.offsets)


def _renamed(batch: GraphBatch, names: Tensor) -> GraphBatch:
    """The same graphs with new numbers of their nodes."""
    names = names.to(batch.offsets.device)
    old = names.argsort()  # the former number of each node
    source, destination = names[batch.edges.edge_index]
    place = (destination * batch.nodes + source).argsort(stable=True)
    counts = (batch.nodes, batch.nodes)

    def moved(x: Tensor | None) -> Tensor | None:
        return None if x is None else x[place]

    return batch._replace(
        x=batch.x[old] if isinstance(batch.x, Tensor) else batch.x.take_rows(old),
        edges=Edges.sorted(source[place], destination[place], counts, moved(batch.edges.weight)),
        edge_features=moved(batch.edge_features),
        relations=moved(batch.relations),
        targets=None if batch.targets is None else names[batch.targets],
    )
