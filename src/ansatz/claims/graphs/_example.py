"""A graph of eight nodes and ten edges, the example of the claims about graphs."""

import numpy as np
import torch
from torch import Tensor

from ansatz.layers import Edges, GraphBatch
from ansatz.layers.graphs.gcn import smooth
from ansatz.theory import graphs as theory

# Its degrees (1, 3, 4, 2, 2, 4, 3, 1) and its mirror symmetry leave one graph with its spectrum.
EDGES = (
    (1, 2), (2, 3), (2, 6), (3, 4), (3, 6), (3, 7), (4, 5), (5, 6), (6, 7), (7, 8),
)  # fmt: skip


def adjacency() -> np.ndarray:
    """Eight by eight, symmetric, without loops."""
    A = np.zeros((8, 8))
    for one, other in EDGES:
        A[one - 1, other - 1] = A[other - 1, one - 1] = 1
    return A


def laplacian(A: np.ndarray) -> np.ndarray:
    """Degrees on the diagonal minus the adjacency."""
    found: np.ndarray = theory.laplacian(A).toarray()
    return found


def random_graph(nodes: int, share: float, generator: np.random.Generator) -> np.ndarray:
    """Each pair joined with probability ``share``."""
    upper = np.triu(generator.random((nodes, nodes)) < share, 1)
    return (upper | upper.T).astype(float)


def edges_of(A: np.ndarray) -> Edges:
    """The sorted edges of a matrix of zeros and ones."""
    return Edges.of(torch.from_numpy(np.stack(np.nonzero(A.T))), len(A))


def batch_of(A: np.ndarray, x: Tensor) -> GraphBatch:
    """One graph with features of its nodes."""
    return GraphBatch(x, edges_of(A), None, torch.tensor([0, len(A)]))


def normalized(A: np.ndarray, *, loops_in_degree: bool = True) -> np.ndarray:
    """D^(-1/2) (A + I) D^(-1/2), with the degrees of A + I or, a common slip, of A."""
    if loops_in_degree:
        found: np.ndarray = smooth(edges_of(A), torch.eye(len(A), dtype=torch.float64)).numpy()
        return found
    with np.errstate(divide="ignore"):
        scale = A.sum(1) ** -0.5
    slip: np.ndarray = scale[:, None] * (A + np.eye(len(A))) * scale
    return slip
