import math

import pytest
import torch
from torch import nn

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.networks import MLP, Linear, RandomFeatureNetwork, summary
from ansatz.spec import InputSpec


def test_counts_of_a_plain_net_are_the_textbooks():
    found = summary(MLP(5, 3, widths=(16, 8)), 5)
    assert (found.depth, found.width, found.capacity) == (3, 16, 24)
    assert found.parameters == found.trainable == 16 * 6 + 8 * 17 + 3 * 9
    assert found.multiply_adds == 5 * 16 + 16 * 8 + 8 * 3
    rows = {row.name: row for row in found.rows}
    assert rows["hidden.1"].output_shape == (8,) and rows["hidden.1"].multiply_adds == 128
    assert rows["output"].parameters == 27 and rows["hidden.0"].type == "Linear"


@pytest.mark.parametrize("connection", ["plain", "residual", "dense", "highway"])
@pytest.mark.parametrize("norm", [None, "batch", "weight"])
def test_rows_add_up_to_the_whole(connection, norm):
    spec = InputSpec(features=5, cardinalities=(3, 40))
    options = {"connection": connection, "norm": norm, "numeric_embedding": "periodic"}
    net = MLP(spec, 3, widths=(16, 8), activation="prelu", **options)
    found = summary(net, spec)
    assert sum(row.parameters for row in found.rows) == found.parameters
    assert sum(row.multiply_adds for row in found.rows) == found.multiply_adds
    assert (found.depth, found.width, found.capacity) == (3, 16, 24)


def test_convolutions_are_counted_by_their_positions():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 2))
    found = summary(net, (torch.zeros(1, 3, 8, 8),))
    assert found.rows[0].multiply_adds == 8 * 36 * 27 and found.rows[0].output_shape == (8, 6, 6)
    assert (found.depth, found.width) == (2, 8)


def test_linear_and_random_features_know_their_sizes():
    assert summary(Linear(4, 2), 4).capacity == 0 and summary(Linear(4, 2), 4).depth == 1
    found = summary(RandomFeatureNetwork(4, 2, features=30), 4)
    assert found.trainable == 62 and found.width == 30 and found.multiply_adds == 4 * 30 + 60


def test_the_network_is_left_as_it_was():
    net = MLP(5, 3, widths=(8,), norm="batch", dropout=0.5)
    net.hidden[0].norm.eval()
    state, draw = {key: t.clone() for key, t in net.state_dict().items()}, torch.get_rng_state()
    summary(net, 5)
    assert net.training and not net.hidden[0].norm.training
    assert all(torch.equal(state[key], t) for key, t in net.state_dict().items())
    assert torch.equal(torch.get_rng_state(), draw) and not net.hidden[0]._forward_hooks


def test_the_text_is_a_table_with_one_line_per_layer():
    found = summary(MLP(500, 3, widths=(2000,)), 500)
    lines = str(found).splitlines()
    assert len(lines) == len(found.rows) + 2
    assert len({len(line) for line in lines[:-1]}) == 1
    assert "1,002,000" in lines[2] and "depth 2, width 2000" in lines[-1]


LAYERS = {
    "signal": (nn.Conv1d(3, 8, 5, 2), (20,)),
    "image": (nn.Conv2d(3, 8, 3, padding=1), (6, 7)),
    "volume": (nn.Conv3d(3, 8, (1, 2, 3)), (4, 5, 6)),
    "groups": (nn.Conv2d(4, 8, 3, groups=4), (6, 7)),
}


@pytest.mark.parametrize("layer, size", LAYERS.values(), ids=LAYERS)
def test_a_convolution_takes_k2_ci_co_multiply_adds_at_each_place(layer, size):
    found = summary(layer, InputSpec.grid(layer.in_channels, *size))
    row = found.rows[0]
    kernel = math.prod(layer.kernel_size) * layer.in_channels * layer.out_channels
    assert found.multiply_adds == kernel // layer.groups * math.prod(row.output_shape[1:])
    assert found.parameters == kernel // layer.groups + layer.out_channels
    assert row.receptive_field == layer.kernel_size


def test_a_transposed_convolution_takes_as_many_at_each_place_of_its_input():
    found = summary(nn.ConvTranspose2d(4, 2, 2, 2), InputSpec.grid(4, 5, 6))
    assert found.multiply_adds == 2 * 2 * 4 * 2 * 5 * 6 and found.rows[0].output_shape == (
        2,
        10,
        12,
    )


@pytest.mark.parametrize("name, depth", [("resnet18", 18), ("lenet5", 5)])
def test_the_depth_is_the_longest_way_and_the_number_in_the_name(name, depth):
    spec = InputSpec.grid(1, 32, 32)
    network = networks.create(name, spec, 10)
    found = summary(network, spec)
    assert found.depth == depth
    assert found.parameters == sum(p.numel() for p in network.parameters())
    assert found.multiply_adds == sum(row.multiply_adds for row in found.rows)


def test_rows_of_a_grid_network_say_what_a_unit_sees():
    net = nn.Sequential(nn.Conv2d(1, 2, 5), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 3))
    found = summary(net, InputSpec.grid(1, 16, 16))
    assert [row.receptive_field for row in found.rows] == [(5, 5), (6, 6), (6, 6), (16, 16)]
    lines = str(found).splitlines()
    assert lines[0].endswith("receptive field") and lines[2].endswith("6 x 6")
    assert "receptive field" not in str(summary(MLP(3, 1), 3))


def test_a_shape_is_channels_and_size_and_four_numbers_are_asked_for_their_batch_axis():
    network = torch.nn.Conv2d(3, 8, 3)
    assert summary(network, (3, 8, 8)) == summary(network, InputSpec.grid(3, 8, 8))
    with pytest.raises(UsageError, match=r"with or without a batch.*torch.zeros\(1, 3, 8, 8\)"):
        summary(network, (1, 3, 8, 8))
