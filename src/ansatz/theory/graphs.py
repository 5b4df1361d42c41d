"""Graphs: degrees, Laplacians, their Fourier transform, shape, and colours of nodes and pairs."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_matrix, csr_matrix, diags, identity, issparse
from scipy.sparse.csgraph import connected_components, shortest_path
from torch import Tensor

from ansatz.errors import UsageError

Array = NDArray[np.float64]
Kind = Literal["combinatorial", "symmetric", "random_walk"]
MAX_PAIR_NODES = 300  # whose pairs are coloured: n^3 numbers are sorted in each round


def adjacency(graph: Any) -> csr_matrix:
    """The matrix A with the weight of the edge from node m to node n at row n, column m.

    Args:
        graph: a matrix of numpy, torch or scipy; a ``GraphBatch``, its ``Edges``, or another object
            with ``edge_index`` and ``num_nodes``; a networkx graph.

    Example:
        >>> from ansatz.theory.graphs import adjacency
        >>> adjacency([[0, 1], [1, 0]]).toarray()
        array([[0., 1.],
               [1., 0.]])
    """
    if hasattr(graph, "adjacency") and hasattr(graph, "nodes"):  # networkx
        import networkx

        return csr_matrix(networkx.to_scipy_sparse_array(graph, dtype=float).T)
    edges = graph if hasattr(graph, "edge_index") else getattr(graph, "edges", None)
    if edges is not None and hasattr(edges, "edge_index"):
        source, destination = (np.asarray(row) for row in edges.edge_index)
        weight = getattr(edges, "weight", None)
        values = np.ones(len(source)) if weight is None else np.asarray(weight, dtype=float)
        nodes = getattr(edges, "num_nodes", None)
        nodes = edges.nodes if nodes is None else nodes
        return coo_matrix((values, (destination, source)), shape=(nodes, nodes)).tocsr()
    if isinstance(graph, Tensor):
        graph = graph.detach().to_dense().numpy()
    found = csr_matrix(graph if issparse(graph) else np.asarray(graph, dtype=float), dtype=float)
    if found.shape[0] != found.shape[1]:
        raise UsageError(f"the matrix of a graph must be square, got {found.shape}.")
    return found


def degrees(graph: Any) -> Array:
    """The sum of the weights of the edges into each node.

    Example:
        >>> from ansatz.theory.graphs import degrees
        >>> degrees([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
        array([2., 1., 1.])
    """
    return np.asarray(adjacency(graph).sum(1), dtype=float).ravel()


def laplacian(graph: Any, kind: Kind = "combinatorial") -> csr_matrix:
    r"""The Laplacian of a graph.

    .. math:: L = D - A, \qquad L_{sym} = D^{-1/2} L D^{-1/2}, \qquad L_{rw} = D^{-1} L

    The rows of nodes without edges are 0. That of a path is minus the second difference: it is the
    Laplacian of a function, with the other sign.

    Args:
        graph: anything that :func:`adjacency` takes.
        kind: ``"combinatorial"``, ``"symmetric"`` or ``"random_walk"``.

    Example:
        >>> from ansatz.theory.graphs import laplacian
        >>> laplacian([[0, 1, 1], [1, 0, 0], [1, 0, 0]]).toarray()
        array([[ 2., -1., -1.],
               [-1.,  1.,  0.],
               [-1.,  0.,  1.]])

    References:
        Chung (1997), Spectral graph theory, section 1.2.
    """
    A, degree = adjacency(graph), degrees(graph)
    plain = diags(degree) - A
    if kind == "combinatorial":
        return csr_matrix(plain)
    if kind not in ("symmetric", "random_walk"):
        raise UsageError(
            f"kind of laplacian must be combinatorial, symmetric or random_walk, got {kind!r}."
        )
    inverse = np.where(degree > 0, 1 / np.where(degree > 0, degree, 1.0), 0.0)
    if kind == "random_walk":
        return csr_matrix(diags(inverse) @ plain)
    return csr_matrix(diags(inverse**0.5) @ plain @ diags(inverse**0.5))


def laplacian_of_function(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    r"""The Laplacian of a function of D numbers, :math:`\Delta f(x) = \sum_d \partial_d^2 f(x)`.

    It is invariant under rotations. Exact, by automatic differentiation.

    Args:
        function: from ``(D,)`` to a number.
        x: ``(D,)``.

    Example:
        >>> import torch
        >>> from ansatz.theory.graphs import laplacian_of_function
        >>> laplacian_of_function(lambda x: (x**2).sum(), torch.zeros(3))
        tensor(6.)
    """
    hessian = torch.autograd.functional.hessian(function, x)
    assert isinstance(hessian, Tensor)
    return hessian.trace()


class Fourier(NamedTuple):
    """Eigenvalues and eigenvectors of a graph's Laplacian: frequencies, and the waves of each.

    Args:
        values: rising, ``(K,)``.
        vectors: columns, ``(N, K)``.
    """

    values: Array
    vectors: Array

    def transform(self, x: ArrayLike) -> Array:
        """The coefficients of a signal, :math:`U^T x`."""
        found: Array = self.vectors.T @ np.asarray(x, dtype=float)
        return found

    def inverse(self, coefficients: ArrayLike) -> Array:
        """The signal of coefficients, :math:`U c`."""
        found: Array = self.vectors @ np.asarray(coefficients, dtype=float)
        return found

    def convolve(self, x: ArrayLike, y: ArrayLike) -> Array:
        """The product of two signals' coefficients, as a signal; it does not depend on the order.

        With a repeated eigenvalue it depends on the choice of eigenvectors.
        """
        return self.inverse(self.transform(x) * self.transform(y))


def fourier(graph: Any, count: int | None = None, kind: Kind = "combinatorial") -> Fourier:
    r"""The Fourier basis of an undirected graph: :math:`L = U \Lambda U^\top`.

    Args:
        graph: anything that :func:`adjacency` takes, symmetric.
        count: number of lowest frequencies, by Lanczos' method; all when not given.
        kind: of the Laplacian, ``"combinatorial"`` or ``"symmetric"``.

    Example:
        >>> from ansatz.theory.graphs import fourier
        >>> fourier([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).values.round(6) + 0.0
        array([0., 1., 3.])

    References:
        Shuman et al. (2013), The emerging field of signal processing on graphs, section II.
        https://arxiv.org/abs/1211.0053
    """
    L = laplacian(graph, kind)
    if kind == "random_walk" or abs(L - L.T).max() > 1e-9:
        raise UsageError("the Fourier transform needs a symmetric Laplacian: edges both ways.")
    if count is None or count >= L.shape[0] - 1:
        values, vectors = np.linalg.eigh(L.toarray())
        return Fourier(values[:count], vectors[:, :count])
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).standard_normal(L.shape[0])
    # Around a shift below zero: the matrix is then definite, and the lowest come first.
    values, vectors = eigsh(L, k=count, sigma=-1e-2, v0=start)
    order = np.argsort(values)
    return Fourier(values[order], vectors[:, order])


def dirichlet_energy(graph: Any, x: ArrayLike | Tensor, kind: Kind = "symmetric") -> float:
    r"""How much a signal differs along edges: :math:`\mathrm{tr}(X^\top L X) / N`.

    .. math:: x^\top L x = \tfrac12 \sum_{nm} A_{nm} (x_n - x_m)^2

    for the combinatorial Laplacian; for the symmetric one with :math:`x_n / \sqrt{d_n}` in place of
    :math:`x_n`. It falls to 0 as layers smooth features.

    Args:
        graph: anything that :func:`adjacency` takes.
        x: ``(N,)`` or ``(N, D)``.
        kind: of the Laplacian.

    Example:
        >>> from ansatz.theory.graphs import dirichlet_energy
        >>> dirichlet_energy([[0, 1], [1, 0]], [0.0, 2.0], "combinatorial")
        2.0
    """
    signal = np.asarray(x.detach() if isinstance(x, Tensor) else x, dtype=float)
    signal = signal.reshape(len(signal), -1)
    return float((signal * (laplacian(graph, kind) @ signal)).sum() / max(len(signal), 1))


def density(graph: Any) -> float:
    """The share of pairs of nodes that are joined; loops do not count.

    Example:
        >>> from ansatz.theory.graphs import density
        >>> density([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
        1.0
    """
    A = _simple(graph)
    n = A.shape[0]
    return float(A.nnz / (n * (n - 1))) if n > 1 else 0.0


def clustering(graph: Any) -> Array:
    """The clustering coefficient of each node: the share of its neighbours' pairs that are joined.

    That of a node with fewer than two neighbours is 0. Edges count as undirected.

    Example:
        >>> from ansatz.theory.graphs import clustering
        >>> clustering([[0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]]).round(3)
        array([0.333, 1.   , 1.   , 0.   ])

    References:
        Watts & Strogatz (1998), Collective dynamics of small-world networks.
    """
    A = _simple(graph)
    A = ((A + A.T) > 0).astype(float)
    closed = np.asarray(A.multiply(A @ A).sum(1)).ravel()
    degree = np.asarray(A.sum(1)).ravel()
    possible = degree * (degree - 1)
    return np.where(possible > 0, closed / np.where(possible > 0, possible, 1.0), 0.0)


def diameter(graph: Any) -> float:
    """The number of steps between the nodes that are farthest apart; infinite in several parts.

    A network of fewer layers than that cannot let every node read every other.

    Example:
        >>> from ansatz.theory.graphs import diameter
        >>> diameter([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        2.0
    """
    A = _simple(graph)
    parts = np.split(np.arange(A.shape[0]), range(256, A.shape[0], 256))
    steps = (shortest_path(A.T, unweighted=True, indices=part) for part in parts if len(part))
    return max((float(each.max()) for each in steps), default=0.0)


def components(graph: Any) -> NDArray[np.intp]:
    """The number of the connected component of each node, from 0.

    Example:
        >>> from ansatz.theory.graphs import components
        >>> components([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
        array([0, 0, 1])
    """
    found: NDArray[np.intp] = connected_components(adjacency(graph), directed=False)[1].astype(int)
    return found


def homophily(graph: Any, labels: ArrayLike) -> float:
    """The share of edges whose ends have the same label; nan without edges.

    Example:
        >>> from ansatz.theory.graphs import homophily
        >>> homophily([[0, 1, 1], [1, 0, 0], [1, 0, 0]], ["a", "a", "b"])
        0.5
    """
    pairs, label = _simple(graph).tocoo(), np.asarray(labels)
    same = label[pairs.row] == label[pairs.col]
    return float(same.mean()) if len(same) else float("nan")


def colours(
    *graphs: Any, features: Sequence[ArrayLike] | None = None, pairs: bool = False
) -> list[NDArray[np.intp]]:
    """The stable colours of the Weisfeiler-Leman test, comparable between the graphs.

    Nodes of one colour have the same numbers of neighbours of each colour. Graphs with different
    numbers of some colour are not isomorphic; the converse does not hold. With ``pairs`` the
    colours belong to ordered pairs, refined by what each third node makes of them (folklore 2-WL);
    this distinguishes more.

    Args:
        graphs: anything that :func:`adjacency` takes; weights are colours of edges.
        features: of the nodes of each graph, ``(N,)`` or ``(N, D)``: their first colours.
        pairs: whether pairs are coloured, of graphs of up to 300 nodes.

    Returns:
        For each graph ``(N,)``, or ``(N, N)``.

    Example:
        >>> import numpy as np
        >>> from ansatz.theory.graphs import colours
        >>> path, star = np.zeros((4, 4)), np.zeros((4, 4))
        >>> path[[0, 1, 2], [1, 2, 3]], star[0, 1:] = 1, 1
        >>> colours(path + path.T, star + star.T)
        [array([0, 2, 2, 0]), array([3, 1, 1, 1])]

    References:
        Weisfeiler & Leman (1968), The reduction of a graph to canonical form.
        Cai, Fürer & Immerman (1992), An optimal lower bound on the number of variables: 2-WL.
    """
    matrices = [adjacency(graph) for graph in graphs]
    given = features or [np.zeros(A.shape[0]) for A in matrices]
    first = _name([
        tuple(np.atleast_1d(row).tolist()) for each in given for row in np.asarray(each)
    ])  # fmt: skip
    sizes = np.cumsum([0, *(A.shape[0] for A in matrices)])
    own = [first[a:b] for a, b in pairwise(sizes)]
    return _refine_pairs(matrices, own) if pairs else _refine(matrices, own)


def same_colours(
    one: Any,
    other: Any,
    features: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    pairs: bool = False,
) -> bool:
    """Whether two graphs have equally many nodes (or pairs) of each colour of :func:`colours`.

    Example:
        >>> import networkx
        >>> from ansatz.theory.graphs import same_colours
        >>> hexagon = networkx.cycle_graph(6)
        >>> triangles = networkx.disjoint_union(*[networkx.cycle_graph(3)] * 2)
        >>> same_colours(hexagon, triangles), same_colours(hexagon, triangles, pairs=True)
        (True, False)
    """
    first, second = colours(one, other, features=features, pairs=pairs)
    return bool(np.array_equal(np.sort(first, axis=None), np.sort(second, axis=None)))


def _refine(matrices: list[csr_matrix], own: list[NDArray[np.intp]]) -> list[NDArray[np.intp]]:
    sizes = np.cumsum([0, *(A.shape[0] for A in matrices)])
    colour, count = np.concatenate(own), 0
    while colour.max(initial=-1) + 1 > count:  # each round refines, until no colour is split
        count = colour.max(initial=-1) + 1
        seen = []
        for A, start in zip(matrices, sizes[:-1], strict=True):
            for n in range(A.shape[0]):
                part = slice(A.indptr[n], A.indptr[n + 1])
                around = zip(
                    colour[start + A.indices[part]].tolist(), A.data[part].tolist(), strict=True
                )
                seen.append((int(colour[start + n]), tuple(sorted(around))))
        colour = _name(seen)
    return [colour[a:b] for a, b in pairwise(sizes)]


def _refine_pairs(
    matrices: list[csr_matrix], own: list[NDArray[np.intp]]
) -> list[NDArray[np.intp]]:
    most = max((A.shape[0] for A in matrices), default=0)
    if most > MAX_PAIR_NODES:
        raise UsageError(f"pairs of up to {MAX_PAIR_NODES} nodes are coloured, got {most} nodes.")
    rows = [
        np.stack([
            np.repeat(c, len(c)), np.tile(c, len(c)), np.eye(len(c)).ravel(), A.toarray().ravel()
        ], 1)
        for A, c in zip(matrices, own, strict=True)
    ]  # fmt: skip
    count, colour = 0, _unique(rows)
    while max((c.max(initial=-1) for c in colour), default=-1) + 1 > count:
        count = max(c.max(initial=-1) for c in colour) + 1
        rows = []
        for c, A in zip(colour, matrices, strict=True):
            n = A.shape[0]
            C = c.reshape(n, n)
            through = C[:, None, :] * count + C.T[None, :, :]  # (u, v, w): colours of uw and wv
            found = np.full((n * n, 1 + most), -1.0)
            found[:, 0] = c
            found[:, 1 : 1 + n] = np.sort(through.reshape(n * n, n), axis=1)
            rows.append(found)
        colour = _unique(rows)
    return [c.reshape(A.shape) for c, A in zip(colour, matrices, strict=True)]


def _name(seen: list[tuple[Any, ...]]) -> NDArray[np.intp]:
    """A number for each different entry, in the order of the entries' values."""
    names = {each: number for number, each in enumerate(sorted(set(seen)))}
    return np.array([names[each] for each in seen], dtype=int)


def _unique(rows: list[Array]) -> list[NDArray[np.intp]]:
    """A number for each different row of all arrays together."""
    found = np.unique(np.concatenate(rows), axis=0, return_inverse=True)[1].ravel()
    return list(np.split(found, np.cumsum([len(each) for each in rows])[:-1]))


def _simple(graph: Any) -> csr_matrix:
    """1 where there is an edge between two different nodes."""
    A = adjacency(graph)
    A = csr_matrix(A - A.multiply(identity(A.shape[0])))
    A.eliminate_zeros()
    return csr_matrix((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
