"""Colours of nodes and of graphs, by which isomorphic graphs are found."""

import numpy as np
from numpy.typing import NDArray

from ansatz.data.graphs.features import feature_keys
from ansatz.data.graphs.graph import Graph
from ansatz.data.keys import mix
from ansatz.seeds import derive

ROUNDS = 16  # graphs that look alike this many edges far are taken for duplicates


def node_colours(graph: Graph, seed: int = 0, rounds: int = ROUNDS) -> NDArray[np.uint64]:
    r"""A colour of each node, as Weisfeiler and Lehman refine it from the features.

    .. math:: c_v \leftarrow \text{hash}(c_v, \{\!\{ (c_u, e_{uv}) : u \to v \}\!\})

    References:
        Weisfeiler and Lehman (1968), A reduction of a graph to canonical form.
    """
    source, destination = graph.edge_index
    order = np.argsort(destination, kind="stable")
    ends = np.append(0, np.bincount(destination, minlength=len(graph)).cumsum())
    edge = np.zeros(len(source), dtype=np.uint64)
    if graph.edges is not None:
        edge = edge + feature_keys(graph.edges, derive(seed, "edge"))
    if graph.weights is not None:
        edge = edge + mix((graph.weights + 0.0).view(np.uint64))
    colour = mix(feature_keys(graph.x, derive(seed, "node")))
    for _ in range(rounds):
        message = mix(mix(colour[source] + edge) + edge)[order]
        total = np.append(np.uint64(0), message.cumsum(dtype=np.uint64))
        colour = mix(mix(colour) + total[ends[1:]] - total[ends[:-1]])
    return colour


def graph_colours(graph: Graph, offsets: NDArray[np.int64], seed: int = 0) -> NDArray[np.uint64]:
    """A hash of the multiset of colours of each graph of a disjoint union, ``(B,)``."""
    total = np.append(np.uint64(0), mix(node_colours(graph, seed)).cumsum(dtype=np.uint64))
    size = np.diff(offsets).astype(np.uint64)
    return mix(total[offsets[1:]] - total[offsets[:-1]] + mix(size))
