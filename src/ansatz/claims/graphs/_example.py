"""A graph of eight nodes and ten edges, the example of the claims about graphs."""

import numpy as np

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
    found: np.ndarray = np.diag(A.sum(1)) - A
    return found


def random_graph(nodes: int, share: float, generator: np.random.Generator) -> np.ndarray:
    """Each pair joined with probability ``share``."""
    upper = np.triu(generator.random((nodes, nodes)) < share, 1)
    return (upper | upper.T).astype(float)


def normalized(A: np.ndarray, *, loops_in_degree: bool = True) -> np.ndarray:
    """D^(-1/2) (A + I) D^(-1/2), with the degrees of A + I or, a common slip, of A."""
    degree = A.sum(1) + (1 if loops_in_degree else 0)
    with np.errstate(divide="ignore"):
        scale = degree**-0.5
    found: np.ndarray = scale[:, None] * (A + np.eye(len(A))) * scale
    return found
