"""Measures graph networks beside those of torch_geometric, on citations and on a large graph."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.race import race
from ansatz.errors import DataError

PEER = "torch_geometric"
CITATIONS = {  # data set -> bars of an epoch of GCN and of GAT, rounds
    "cora": (12.0, 3.0, 15),
    "citeseer": (25.0, 7.0, 9),
    "pubmed": (4.0, 1.8, 5),
}
EPOCHS = 10  # of collating MUTAG
NODES, EDGES, WIDTH = 200_000, 4_000_000, 64


def speed_graphs(options: BenchOptions) -> list[Finding]:
    """Measures epochs on citations, layers on 4 million edges, and the collation of MUTAG."""
    cases: dict[str, Callable[[BenchOptions], list[Finding]]] = {}
    for name in CITATIONS:
        for network in ("gcn", "gat", "graphsage", "gin") if name == "cora" else ("gcn", "gat"):
            cases[f"{network}-{name}"] = lambda o, n=name, k=network: _citations(o, n, k)  # type: ignore[misc]
    for layer in ("gcn", "graphsage", "gin"):
        cases[f"{layer}-large"] = lambda o, k=layer: _large(o, k)  # type: ignore[misc]
    cases |= {"collate-mutag": _collate, "linear-edges": _linear}
    return [finding for name in options.pick(cases) for finding in cases[name](options)]


class Citations(NamedTuple):
    """A citation graph in torch's arrays."""

    x: Any  # (N, D), dense, rows sum to 1
    edge_index: Any
    y: Any
    train: Any


def citations(name: str) -> Citations:
    """Reads a graph from its file."""
    import torch

    with np.load(_folder(name) / f"{name}.npz", allow_pickle=False) as data:
        shape = tuple(data["x_shape"])
        x = np.zeros(shape, np.float32)
        rows = np.repeat(np.arange(shape[0]), np.diff(data["x_indptr"]))
        x[rows, data["x_indices"]] = data["x_data"]
        x /= np.maximum(x.sum(1, keepdims=True), 1e-12)
        return Citations(
            torch.from_numpy(x),
            *(torch.from_numpy(data[key]) for key in ("edge_index", "y", "train_index")),
        )


def _folder(name: str) -> Path:
    folder = Path(os.environ.get("ANSATZ_DATA", ".")) / name
    if not folder.is_dir():
        raise DataError(f"no folder {folder}: set ANSATZ_DATA to the folder that has {name}.")
    return folder


def _citations(options: BenchOptions, name: str, kind: str) -> list[Finding]:
    """Epochs of training on the full graph, two layers, the published widths and dropout."""
    import torch
    from torch.nn import functional

    from ansatz import networks
    from ansatz.layers import GraphBatch, SparseRows
    from ansatz.spec import InputSpec

    data = citations(name)
    settings: dict[str, Any] = {"width": 16, "dropout": 0.5}
    if kind == "gat":
        settings = {"width": 64, "dropout": 0.6, "heads": 8}
    classes, epochs = int(data.y.max()) + 1, 3 if kind == "gat" else 10
    spec = InputSpec.graph(data.x.shape[1], rows="nodes")
    ours = networks.create(kind, spec, classes, **settings)
    batch = GraphBatch.of(SparseRows.of(data.x), data.edge_index, targets=data.train)
    by_matrix = kind in ("graphsage", "gin")
    missing = _without_peer(*(("edge_index", "CSR adjacency") if by_matrix else (PEER,)))
    runs = {"ours": _epochs(ours, lambda: ours(batch), data.y[data.train], epochs)}
    if not missing:
        from torch_geometric.nn import models
        from torch_geometric.utils import to_torch_csr_tensor

        share = settings["dropout"]
        options_of: dict[str, dict[str, Any]] = {"gcn": {"cached": True}, "gat": {"heads": 8}}
        more = options_of.get(kind, {})
        model = getattr(models, "GraphSAGE" if kind == "graphsage" else kind.upper())
        graphs = {"edge_index" if by_matrix else PEER: data.edge_index}
        if by_matrix:
            size = (len(data.x), len(data.x))
            graphs["CSR adjacency"] = to_torch_csr_tensor(data.edge_index.flip(0), size=size)
        for peer, graph in graphs.items():
            theirs = model(data.x.shape[1], settings["width"], 2, classes, dropout=share, **more)

            def answer(theirs: Any = theirs, graph: Any = graph) -> torch.Tensor:
                x = functional.dropout(data.x, share, training=True)
                found: torch.Tensor = theirs(x, graph)[data.train]
                return found

            runs[peer] = _epochs(theirs, answer, data.y[data.train], epochs)
    gcn, gat, rounds = CITATIONS[name]
    found = race(runs, rounds=options.rounds or rounds, seed=options.seed, notify=options.notify)
    limit = {PEER: Bound(at_least=gcn if kind == "gcn" else gat)}
    if by_matrix:
        limit = {"edge_index": Bound(at_least=5.0), "CSR adjacency": Bound(at_least=1.5)}
    facts = {"epochs of a run": epochs, "nodes": len(data.x), "edges": data.edge_index.shape[1]}
    return [Finding.of(f"{kind}-{name}", found, limit, missing=missing, facts=facts)]


def _epochs(network: Any, answer: Callable[[], Any], y: Any, epochs: int) -> Callable[[], None]:
    import torch
    from torch.nn import functional

    rule = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=5e-4)
    network.train()

    def run() -> None:
        for _ in range(epochs):
            rule.zero_grad()
            functional.cross_entropy(answer(), y).backward()
            rule.step()

    return run


def _large(options: BenchOptions, kind: str) -> list[Finding]:
    """One layer of 64 features, both passes, 200,000 nodes and 4 million edges."""
    import torch

    from ansatz.layers import Edges
    from ansatz.layers.graphs import GCNConv, GINConv, SAGEConv

    pairs = _random_pairs(NODES, EDGES, options.seed)
    edges, made = Edges.of(pairs, NODES), {"gcn": GCNConv, "graphsage": SAGEConv, "gin": GINConv}
    layer: Any = made[kind](WIDTH, WIDTH)
    x = torch.randn(NODES, WIDTH, requires_grad=True)
    runs = {"ours": _both_passes(lambda: layer(x, edges))}
    missing = _without_peer("edge_index", "CSR adjacency")
    if not missing:
        from torch_geometric import nn
        from torch_geometric.utils import to_torch_csr_tensor

        theirs: Any = {
            "gcn": lambda: nn.GCNConv(WIDTH, WIDTH, cached=True),
            "graphsage": lambda: nn.SAGEConv(WIDTH, WIDTH),
            "gin": lambda: nn.GINConv(nn.models.MLP([WIDTH] * 3, norm=None)),
        }[kind]
        by_index, by_matrix, edge_index = theirs(), theirs(), edges.edge_index
        runs["edge_index"] = _both_passes(lambda: by_index(x, edge_index))
        matrix = to_torch_csr_tensor(edge_index.flip(0), size=(NODES, NODES))
        runs["CSR adjacency"] = _both_passes(lambda: by_matrix(x, matrix))
    found = race(runs, rounds=options.rounds or 3, seed=options.seed, notify=options.notify)
    limit = {"CSR adjacency": Bound(at_least=1.5)}
    if kind == "gcn":  # the others spend most of their time in the same matrix products
        limit["edge_index"] = Bound(at_least=5.0)
    return [Finding.of(f"{kind}-large", found, limit, missing=missing)]


def _linear(options: BenchOptions) -> list[Finding]:
    """Nanoseconds of an edge, both passes of a graph convolution, as edges grow in number."""
    import torch

    from ansatz.layers import Edges
    from ansatz.layers.graphs import GCNConv

    layer, runs = GCNConv(16, 16), {}
    for count in (10**5, 10**6, 10**7):
        edges = Edges.of(_random_pairs(count // 20, count, options.seed), count // 20)
        x, repeats = torch.randn(count // 20, 16, requires_grad=True), 10**7 // count
        one = _both_passes(lambda x=x, edges=edges: layer(x, edges))  # type: ignore[misc]
        runs[f"{count:,}"] = lambda one=one, repeats=repeats: [one() for _ in range(repeats)]
    found = race(runs, rounds=options.rounds or 3, seed=options.seed, notify=options.notify)
    limit = {"100,000": Bound(at_most=1.5)}
    facts = {"edges of each run": 10**7}
    return [Finding.of("linear-edges", found, limit, us="10,000,000", facts=facts)]


def _random_pairs(nodes: int, edges: int, seed: int) -> Any:
    import torch

    return torch.randint(nodes, (2, edges), generator=torch.Generator().manual_seed(seed))


def _both_passes(forward: Callable[[], Any]) -> Callable[[], None]:
    return lambda: forward().sum().backward()


def _collate(options: BenchOptions) -> list[Finding]:
    """Epochs of shuffled batches of 32 of MUTAG's graphs."""
    import torch

    from ansatz.layers import GraphBatch

    folder = _folder("tu-mutag")
    pairs = torch.from_numpy(np.loadtxt(folder / "MUTAG_A.txt", delimiter=",", dtype=np.int64)) - 1
    graph = torch.from_numpy(np.loadtxt(folder / "MUTAG_graph_indicator.txt", dtype=np.int64)) - 1
    types = torch.from_numpy(np.loadtxt(folder / "MUTAG_node_labels.txt", dtype=np.int64))
    kinds = torch.from_numpy(np.loadtxt(folder / "MUTAG_edge_labels.txt", dtype=np.int64))
    x, e = (torch.nn.functional.one_hot(codes).float() for codes in (types, kinds))
    starts = torch.nn.functional.pad(torch.bincount(graph).cumsum(0), (1, 0))
    whole = GraphBatch.of(x, pairs.T, edge_features=e)._replace(offsets=starts)

    def ours() -> int:
        orders = (torch.randperm(whole.graphs) for _ in range(EPOCHS))
        return sum(whole.take_rows(rows).nodes for order in orders for rows in order.split(32))

    runs: dict[str, Callable[[], Any]] = {"ours": ours}
    missing = _without_peer()
    if not missing:
        from torch_geometric.data import Data
        from torch_geometric.loader import DataLoader

        own = graph[pairs[:, 0]]
        data = [
            Data(x=x[starts[g] : starts[g + 1]], edge_index=pairs[own == g].T - starts[g],
                 edge_attr=e[own == g])
            for g in range(whole.graphs)
        ]  # fmt: skip
        loader = DataLoader(data, batch_size=32, shuffle=True)
        runs[PEER] = lambda: sum(part.num_nodes for _ in range(EPOCHS) for part in loader)
    found = race(runs, rounds=options.rounds or 15, seed=options.seed, notify=options.notify)
    facts = {"epochs of a run": EPOCHS, "nodes of a run": dict(found.results)}
    return [
        Finding.of(
            "collate-mutag", found, {PEER: Bound(at_least=5.0)}, missing=missing, facts=facts
        )
    ]


def _without_peer(*names: str) -> list[str]:
    """Those peers, if torch_geometric is not installed."""
    return [] if find_spec("torch_geometric") else list(names or (PEER,))
