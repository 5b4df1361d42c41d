import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.networks import HighwayConvolution, HighwayNetwork
from ansatz.spec import InputSpec


def test_the_layer_is_its_formula():
    layer, x = HighwayConvolution(2, 3), torch.randn(2, 3, 5, 6)
    T = torch.sigmoid(layer.gate(x))
    assert_close(layer(x), T * torch.relu(layer.branch(x)) + (1 - T) * x)


def test_a_closed_gate_carries_and_an_open_one_transforms():
    x = torch.randn(2, 3, 5)
    closed, opened = (HighwayConvolution(1, 3, gate_bias=bias) for bias in (-100.0, 100.0))
    assert_close(closed(x), x)
    assert_close(opened(x), torch.relu(opened.branch(x)))


@pytest.mark.parametrize("kind", ["convolutional", "dense"])
def test_gradients_pass_a_deep_network_of_closed_gates(kind):
    """Through layers that carry, the gradient at the stem is that of a shallow network."""
    spec, norms = InputSpec.grid(1, 8, 8), []
    for depth in (3, 60):
        torch.manual_seed(0)
        network = HighwayNetwork(spec, 2, kind=kind, depth=depth, width=4, gate_bias=-20.0)
        nn.init.ones_(network.output.weight)
        network(torch.ones(2, 1, 8, 8)).sum().backward()
        norms.append(network.stem.weight.grad.norm())
    assert_close(norms[0], norms[1], rtol=1e-4, atol=0)


def test_a_wrong_kind_is_refused():
    with pytest.raises(UsageError, match="kind of highway must be convolutional or dense"):
        HighwayNetwork(1, 2, kind="plain")


@pytest.mark.parametrize("value", ["x", None, True, float("nan")])
def test_a_gate_starts_at_a_number(value):
    with pytest.raises(UsageError, match="gate_bias of highway must be a number, got"):
        HighwayNetwork(1, 2, gate_bias=value)
