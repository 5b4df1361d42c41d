"""The likelihoods of the family: what every network on graphs obeys, whatever it answers."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.layers import GraphBatch, SparseRows
from ansatz.spec import InputSpec

D, F, U, R, P = 3, 2, 4, 3, 2
SMALL = {"width": 6, "depth": 2}
ALL = ("graphs", "nodes", "pairs")
ROWS = {  # name, options, the rows that it answers
    "gnn": ("gnn", SMALL, ALL),
    "gnn self_loop": ("gnn", {**SMALL, "aggregation": "self_loop"}, ("nodes",)),
    "gnn mean": ("gnn", {**SMALL, "aggregation": "mean"}, ("graphs",)),
    "gnn symmetric": ("gnn", {**SMALL, "aggregation": "symmetric"}, ("pairs",)),
    "gcn": ("gcn", SMALL, ALL),
    "gcn batch residual": ("gcn", {**SMALL, "norm": "batch", "skip": "residual"}, ("graphs",)),
    "gcn cat mean": ("gcn", {**SMALL, "jumping": "cat", "readout": "mean"}, ("graphs",)),
    "gcn lstm attention": (
        "gcn",
        {**SMALL, "jumping": "lstm", "readout": "attention"},
        ("graphs",),
    ),
    "gat": ("gat", {**SMALL, "heads": 2}, ALL),
    "gatv2": ("gatv2", {**SMALL, "heads": 2}, ("nodes",)),
    "graphsage": ("graphsage", SMALL, ALL),
    "graphsage max": ("graphsage", {**SMALL, "aggregation": "max", "jumping": "max"}, ("graphs",)),
    "gin": ("gin", {**SMALL, "norm": "layer"}, ALL),
    "gin epsilon": ("gin", {**SMALL, "train_epsilon": True, "directed": True}, ("pairs",)),
    "chebnet": ("chebnet", {**SMALL, "order": 2}, ALL),
    "spectral": ("spectral", SMALL, ("graphs", "nodes")),
    "relational": ("relational", {**SMALL, "bases": 2}, ALL),
    "mpnn": ("mpnn", SMALL, ALL),
    "gated_graph": ("gated_graph", SMALL, ("graphs", "nodes")),
    "graph_gru": ("graph_gru", SMALL, ("nodes", "graphs")),
    "graph_lstm": ("graph_lstm", SMALL, ("nodes",)),
    "kgnn": ("kgnn", SMALL, ALL),
    "kgnn local": ("kgnn", {**SMALL, "local": True, "directed": True}, ("pairs", "graphs")),
    "graph_unet": ("graph_unet", SMALL, ("graphs", "nodes")),
    "gae": ("gae", {"width": 6, "latent": 4}, ("pairs",)),
    "vgae": ("vgae", {"width": 6, "latent": 4}, ("pairs",)),
    "sgc": ("sgc", {}, ALL),
    "linear_graph": ("linear_graph", {}, ("graphs",)),
    "linear_node": ("linear_node", {}, ("nodes", "pairs")),
}
CASES = {f"{key}, {rows}": (*row[:2], rows) for key, row in ROWS.items() for rows in row[2]}
every_network = pytest.mark.parametrize("name, options, rows", CASES.values(), ids=CASES)
GRAPHS = {f"{key}": row[:2] for key, row in ROWS.items() if "graphs" in row[2]}
every_graph_network = pytest.mark.parametrize("name, options", GRAPHS.values(), ids=GRAPHS)


def build(name, options, rows, *, rich=True, seed=0):
    spec = (
        InputSpec.graph(D, F, graph=U, relations=R, rows=rows)
        if rich
        else InputSpec.graph(D, rows=rows)
    )
    generator = torch.Generator().manual_seed(seed)
    return awake(networks.create(name, spec, P, generator, **options))


def awake(network):
    """Away from zero, where some gradients vanish and some differences hide."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return network.eval()


def graph(nodes, edges, *, rows="graphs", rich=True):
    pairs = torch.randint(max(nodes, 1), (2, edges)) if nodes else torch.zeros(2, 0).long()
    edges = pairs.shape[1]
    targets = {
        "graphs": None,
        "nodes": torch.arange(nodes),
        "pairs": torch.randint(max(nodes, 1), (4 if nodes else 0, 2)),
    }[rows]
    extra = {
        "edge_features": torch.randn(edges, F),
        "graph_features": torch.randn(1, U),
        "relations": torch.randint(R, (edges,)),
    }
    return GraphBatch.of(
        torch.randn(nodes, D), pairs, targets=targets, undirected=True, **(extra if rich else {})
    )


def renamed(batch, order):
    """The same graph, whose node i is now called order[i]."""
    edges, place = type(batch.edges).sort(order[batch.edges.edge_index], len(order))
    x = torch.empty_like(batch.x)
    x[order] = batch.x
    return batch._replace(
        x=x,
        edges=edges,
        edge_features=None if batch.edge_features is None else batch.edge_features[place],
        relations=None if batch.relations is None else batch.relations[place],
        targets=None if batch.targets is None else order[batch.targets],
    )


@every_network
def test_renaming_the_nodes_changes_no_answer(name, options, rows):
    network, batch = build(name, options, rows), graph(7, 12, rows=rows)
    moved = renamed(batch, torch.randperm(7))
    assert_close(network(moved), network(batch), rtol=0, atol=1e-10)


@every_network
def test_a_graph_alone_is_the_graph_in_a_batch(name, options, rows):
    network = build(name, options, rows)
    graphs = [graph(n, e, rows=rows) for n, e in ((5, 8), (1, 0), (4, 0), (6, 9))]
    together = network(GraphBatch.collate(graphs))
    assert together.isfinite().all() and together.shape[1] == P
    assert_close(together, torch.cat([network(one) for one in graphs]), rtol=1e-12, atol=1e-12)


@every_network
def test_gradients_are_finite_and_reach_every_weight(name, options, rows):
    network, batch = build(name, options, rows).train(), graph(7, 12, rows=rows)
    (network(batch) ** 2).sum().backward()
    missing = [key for key, p in network.named_parameters() if p.grad is None]
    assert not missing
    assert all(p.grad.isfinite().all() for p in network.parameters())


@every_network
@pytest.mark.parametrize("size", [(1, 0), (3, 0)], ids=["one node", "no edges"])
def test_one_node_and_no_edges_train(name, options, rows, size):
    network, batch = build(name, options, rows).train(), graph(*size, rows=rows)
    network(batch).sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in network.parameters())


@every_network
def test_the_gradient_in_x_is_that_of_differences(name, options, rows):
    network, batch = build(name, options, rows), graph(5, 6, rows=rows)
    x = batch.x.clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x: network(batch._replace(x=x)).sum(0), (x,), fast_mode=True
    )


@every_network
def test_sparse_features_are_dense_ones(name, options, rows):
    network, batch = build(name, options, rows), graph(7, 12, rows=rows)
    x = batch.x * (torch.rand_like(batch.x) < 0.5)
    sparse = network(batch._replace(x=SparseRows.of(x)))
    assert_close(sparse, network(batch._replace(x=x)))


@every_graph_network
def test_plain_graphs_and_nodes_without_features_are_enough(name, options):
    network, batch = build(name, options, "graphs", rich=False), graph(5, 6, rich=False)
    assert network(batch).shape == (1, P)
    if name == "linear_graph":
        return
    bare = networks.create(name, InputSpec.graph(0), P, **options)
    assert bare(batch._replace(x=torch.empty(5, 0))).shape == (1, P)


@every_graph_network
def test_a_copy_and_a_state_give_the_same_function(name, options):
    network, batch = build(name, options, "graphs"), graph(5, 6)
    twin = build(name, options, "graphs", seed=1)
    twin.load_state_dict(network.state_dict(), strict=True)
    assert torch.equal(twin(batch), network(batch))
    assert torch.equal(copy.deepcopy(network)(batch), network(batch))
    places = [t.data_ptr() for t in network.state_dict().values() if t.numel()]
    assert len(set(places)) == len(places)


@every_graph_network
def test_it_is_a_function_of_its_generator_and_leaves_the_global_one_alone(name, options):
    state, spec = torch.get_rng_state(), InputSpec.graph(D, F, relations=R)
    found = []
    for _ in range(2):
        generator = torch.Generator().manual_seed(3)
        found.append(networks.create(name, spec, P, generator, **options).state_dict())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(found[0][key], found[1][key]) for key in found[0])


def test_other_batches_are_refused_with_what_is_needed():
    network, batch = build("gcn", SMALL, "nodes", rich=False), graph(4, 3, rows="nodes", rich=False)
    for wrong, message in (
        (batch._replace(x=torch.randn(4, 2)), "gcn needs nodes of 3 features, got 2"),
        (batch._replace(targets=None), r"gcn answers nodes: targets must be \(B,\)"),
        (batch._replace(edge_features=torch.randn(6, 1)), "gcn needs edges of 0 features, got 1"),
        (batch._replace(relations=torch.zeros(6)), "gcn was built for edges of one kind"),
        (batch.x, "gcn needs a GraphBatch, got Tensor"),
    ):
        with pytest.raises(UsageError, match=message):
            network(wrong)
    with pytest.raises(UsageError, match="gcn takes graphs, got inputs of structure 'vector'"):
        networks.create("gcn", 3, 1)
    with pytest.raises(UsageError, match=r"unexpected keyword argument 'depht'.*jumping"):
        networks.create("gcn", InputSpec.graph(3), 1, depht=2)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", ["gnn", "gcn", "gat", "gatv2", "graphsage", "gin", "sgc"])
def test_k_layers_reach_k_steps(name, depth):
    """On a path, the answer of node 0 depends on the nodes up to K steps away, and no others."""
    options = {"steps": depth} if name == "sgc" else {"depth": depth, "width": 8}
    network = build(name, options, "nodes", rich=False)
    path = torch.stack([torch.arange(5), torch.arange(1, 6)])
    x = torch.randn(6, D, requires_grad=True)
    batch = GraphBatch.of(x, path, targets=torch.tensor([0]), undirected=True)
    (slope,) = torch.autograd.grad(network(batch).square().sum(), x)
    assert (slope[: depth + 1] != 0).any(1).all() and (slope[depth + 1 :] == 0).all()


def test_linear_models_begin_at_the_training_rows():
    graphs = [graph(n, 2 * n) for n in (3, 5, 8, 4)]
    network = build("linear_graph", {}, "graphs")
    network.begin(GraphBatch.collate(graphs))
    z = network.standard(GraphBatch.collate(graphs))
    assert_close(z.mean(0), torch.zeros(network.size))
    row, number, value = network.design(GraphBatch.collate(graphs))
    dense = torch.zeros_like(z).index_put((row, number), value)
    assert_close(dense, z)


def test_linear_graph_holds_means_counts_and_sizes():
    batch, network = graph(5, 6), build("linear_graph", {}, "graphs")
    edges = len(batch.edges.source)
    kinds = nn.functional.one_hot(batch.relations, R).sum(0)
    expected = torch.cat([
        batch.x.mean(0), batch.x.sum(0), torch.tensor([5, edges]),
        batch.edge_features.mean(0), batch.edge_features.sum(0), kinds, batch.graph_features[0],
    ])  # fmt: skip
    assert_close(network.numbers(batch)[0], expected)
