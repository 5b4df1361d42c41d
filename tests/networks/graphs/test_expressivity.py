"""What networks on graphs can distinguish, and what none on nodes can."""

import pytest
import torch
from torch.testing import assert_close

from ansatz import networks
from ansatz.layers import GraphBatch
from ansatz.spec import InputSpec

HEXAGON = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
TRIANGLES = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])
PATH = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
ON_NODES = ("gnn", "gcn", "gat", "gatv2", "graphsage", "gin", "chebnet", "mpnn", "gated_graph")


def answer(network, pairs):
    return network(GraphBatch.of(torch.ones(6, 2), pairs, undirected=True))


def build(name, **options):
    return networks.create(name, InputSpec.graph(2), 3, width=8, **options).eval()


@pytest.mark.parametrize("name", ON_NODES)
def test_networks_on_nodes_do_not_tell_a_hexagon_from_two_triangles(name):
    network = build(name)
    assert_close(answer(network, HEXAGON), answer(network, TRIANGLES))
    # A mean of equal features is that feature, whatever the degrees, and so is attention.
    alike = torch.allclose(answer(network, HEXAGON), answer(network, PATH))
    assert alike == (name in ("gat", "gatv2", "graphsage"))


@pytest.mark.parametrize("local", [False, True], ids=["all", "local"])
def test_networks_on_pairs_do(local):
    network = build("kgnn", local=local)
    gap = (answer(network, HEXAGON) - answer(network, TRIANGLES)).abs().max()
    assert gap > 1e-3
