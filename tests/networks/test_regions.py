"""Every region is found, once; what a layer, a crossing and a volume must be says how many."""

import itertools
from math import comb

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.spatial import cKDTree
from torch import nn

from ansatz.errors import ResourceError, UsageError
from ansatz.networks import MLP, count_linear_regions, linear_regions


def network(*widths, activation=nn.ReLU):
    layers = [nn.Linear(widths[0], widths[1])]
    for inside, outside in itertools.pairwise(widths[1:]):
        layers += [activation(), nn.Linear(inside, outside)]
    return nn.Sequential(*layers)


def zaslavsky(m, n):
    return sum(comb(m, i) for i in range(min(m, n) + 1))


def lines(m, *, within):
    """A layer of m lines that all pass through the disc of that radius."""
    layer = nn.Linear(2, m)
    angle = torch.rand(m) * torch.pi
    layer.weight.data = torch.stack([angle.cos(), angle.sin()], 1)
    layer.bias.data = within * (2 * torch.rand(m) - 1)
    return layer


def crossings(layer, box):
    """Pairs of lines that meet inside the box, and lines that enter it, by solving for them."""
    W, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    low, high = box
    inside = 0
    for i, j in itertools.combinations(range(len(b)), 2):
        x = np.linalg.solve(W[[i, j]], -b[[i, j]])
        inside += bool((np.abs(x - (low + high) / 2) < (high - low) / 2).all())
    corners = np.array(list(itertools.product(box, box))) @ W.T + b
    enter = ((corners > 0).any(0) & (corners < 0).any(0)).sum()
    return inside, int(enter)


def sampled_patterns(net, box, inputs, count=40_000):
    x = torch.rand(count, inputs) * (box[1] - box[0]) + box[0]
    found, h = [], x
    for layer in net:
        h = layer(h)
        if isinstance(layer, nn.Linear) and layer is not net[-1]:
            found.append(h > 0)
    return np.unique(torch.cat(found, 1).numpy(), axis=0)


@pytest.mark.parametrize("n, m", [(1, 5), (2, 1), (2, 3), (2, 9), (3, 3), (3, 6), (4, 5), (5, 6)])
def test_one_layer_in_general_position_has_zaslavskys_number_of_cells(n, m):
    net = network(n, m, 1)
    assert count_linear_regions(net, (-1e4, 1e4), by="pattern", tolerance=1e-10) == zaslavsky(m, n)


def test_lines_in_a_box_cut_it_as_eulers_formula_says():
    for _ in range(5):
        layer, box = lines(12, within=1.0), (-1.0, 1.5)
        inside, enter = crossings(layer, box)
        net = nn.Sequential(layer, nn.ReLU(), nn.Linear(12, 1))
        assert count_linear_regions(net, box) == 1 + enter + inside


@pytest.mark.parametrize("widths", [(1, 9, 9, 1), (2, 7, 7, 1), (2, 6, 6, 6, 2), (3, 5, 5, 1)])
def test_no_sampled_pattern_is_missing_and_each_is_found_once(widths):
    net = network(*widths)
    regions = linear_regions(net, (-3, 3))
    known = {pattern.tobytes() for pattern in regions.patterns}
    assert len(known) == len(regions)
    sampled = sampled_patterns(net, (-3.0, 3.0), widths[0])
    assert {pattern.tobytes() for pattern in sampled} <= known
    assert len(sampled) > len(known) / 2


@pytest.mark.parametrize(
    "widths", [(1, 20, 20, 1), (2, 8, 8, 1), (3, 5, 5, 2), (4, 4, 4, 1), (5, 4, 3, 1)]
)
@pytest.mark.parametrize("activation", [nn.ReLU, nn.LeakyReLU, nn.PReLU])
def test_the_affine_map_is_the_network_at_every_corner_and_the_cells_fill_the_box(
    widths, activation
):
    net, box = network(*widths, activation=activation), np.array([(-1.0, 2.0)] * widths[0])
    box[0] = (-3, 1)
    regions = linear_regions(net, box)
    total = 0.0
    for region in regions:
        points = np.concatenate([region.vertices, region.center[None]])
        value = net(torch.as_tensor(points)).detach().numpy()
        assert_allclose(points @ region.weight.T + region.bias, value, atol=1e-9)
        total += region.volume
    assert_allclose(total, np.prod(box[:, 1] - box[:, 0]), rtol=1e-9)


@pytest.mark.parametrize("widths", [(1, 6, 6, 1), (2, 5, 4, 1), (3, 4, 3, 1)])
def test_linear_programs_find_the_same_patterns_pieces_and_volumes(widths):
    net = network(*widths)
    cut, lp = (linear_regions(net, (-2, 2), method=method) for method in ("cut", "lp"))
    volume = [{region.pattern.tobytes(): region.volume for region in found} for found in (cut, lp)]
    assert volume[0].keys() == volume[1].keys()
    for pattern, size in volume[0].items():
        assert_allclose(size, volume[1][pattern], rtol=1e-6, atol=1e-9)
    assert cut.num_pieces == lp.num_pieces


@pytest.mark.parametrize("method", ["cut", "lp"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_unit_that_the_output_ignores_makes_patterns_and_no_pieces(n, method):
    net = network(n, 5, 1)
    with torch.no_grad():
        net[0].weight.normal_()
        net[0].bias.normal_(std=0.1)  # so that all planes meet well inside the box
        net[2].weight[:, 2:] = 0
    regions = linear_regions(net, (-1e3, 1e3), method=method)
    assert len(regions) == zaslavsky(5, n)
    assert regions.num_pieces == zaslavsky(2, n)


def test_dead_cells_join_across_the_lines_between_them_in_every_method():
    """Where the second layer is off the output is constant; that set need not be connected."""
    net = network(3, 4, 3, 1)
    with torch.no_grad():
        net[2].bias -= 0.6
    cut, lp = (linear_regions(net, (-2, 2), method=method) for method in ("cut", "lp"))
    assert cut.num_pieces == lp.num_pieces < len(cut) == len(lp)


def test_the_count_is_the_number_of_slopes_in_one_dimension():
    """Independent: the second difference of the network on a fine grid is not 0 at a kink only."""
    net = network(1, 6, 5, 1)
    regions = linear_regions(net, (-4, 4))
    x = torch.linspace(-4, 4, 200_001)
    bend = net(x[:, None])[:, 0].detach().diff(n=2).abs() > 1e-12
    kinks = (bend[1:] & ~bend[:-1]).sum().item() + bend[0].item()
    assert regions.num_pieces == kinks + 1


def test_scaling_and_permuting_units_changes_nothing():
    net, other = network(2, 8, 8, 1), network(2, 8, 8, 1)
    factor, order = torch.rand(8) * 9 + 0.1, torch.randperm(8)
    with torch.no_grad():
        for mine, theirs in zip(net.parameters(), other.parameters(), strict=True):
            theirs.copy_(mine)
        other[0].weight.copy_((factor[:, None] * net[0].weight)[order])
        other[0].bias.copy_((factor * net[0].bias)[order])
        other[2].weight.copy_((net[2].weight / factor)[:, order])
    one, two = linear_regions(net, (-2, 2)), linear_regions(other, (-2, 2))
    assert len(one) == len(two) and one.num_pieces == two.num_pieces
    near, _ = cKDTree(one.centers).query(two.centers)
    assert near.max() < 1e-9


def test_lines_through_one_point_are_no_trouble():
    """Without biases all lines meet in the middle: 2 m sectors, the same in every layer's fan."""
    net = network(2, 16, 1)
    net[0].bias.data.zero_()
    assert count_linear_regions(net, (-1, 1)) == 32
    deep = MLP(2, 1, widths=(16, 16), activation="relu").double()  # biases start at zero
    regions = linear_regions(deep, (-1, 1))
    angle = torch.linspace(0, 2 * torch.pi, 100_001)[:-1]
    ring = torch.stack([angle.cos(), angle.sin()], 1)
    with torch.no_grad():
        first = deep.hidden[0](ring)
        signs = torch.cat([first, deep.hidden[1](first.relu())], 1) > 0
    turns = (signs != signs.roll(1, 0)).any(1).sum().item()
    assert len(regions) == turns
    assert_allclose(sum(region.volume for region in regions), 4.0)


def test_edges_and_corners_of_the_cells_satisfy_eulers_formula():
    """V - E + F = 1 for a disc cut into faces that meet edge to edge."""
    regions = linear_regions(network(2, 10, 10, 1), (-2, 2))
    corners = np.concatenate([region.vertices for region in regions])
    middles = np.concatenate([(r.vertices + np.roll(r.vertices, -1, 0)) / 2 for r in regions])
    V, E = (len(np.unique(points.round(7), axis=0)) for points in (corners, middles))
    assert V - E + len(regions) == 1


def test_constraints_hold_on_the_cell_and_nowhere_else():
    regions = linear_regions(network(2, 5, 4, 1), (-2, 2))
    rows = [regions.constraints(i) for i in range(len(regions))]
    holds = np.array(
        [[(row[:, :-1] @ x + row[:, -1] >= 0).all() for x in regions.centers] for row in rows]
    )
    assert (holds == np.eye(len(regions), dtype=bool)).all()


def test_an_mlp_of_ours_and_the_same_sequential_agree():
    ours = MLP(2, 3, widths=(6, 5), activation="leaky_relu", dropout=0.1)
    plain = nn.Sequential(ours.hidden[0], nn.LeakyReLU(), nn.Dropout(0.1), ours.hidden[1])
    plain = nn.Sequential(plain, nn.LeakyReLU(), nn.Identity(), ours.output)
    assert count_linear_regions(ours, (-1, 1)) == count_linear_regions(plain, (-1, 1)) > 5


def test_float32_networks_are_counted_as_well():
    net = network(2, 12, 12, 1).float()
    assert count_linear_regions(net, (-2, 2)) == count_linear_regions(net.double(), (-2, 2))


def test_affine_layers_in_a_row_are_one():
    net = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
    assert count_linear_regions(net, (-1e3, 1e3)) == 7


def test_what_is_not_piecewise_affine_is_refused():
    box = (-1, 1)
    with pytest.raises(UsageError, match="in a row; got SiLU"):
        count_linear_regions(MLP(2, 1), box)
    with pytest.raises(UsageError, match="got MLP with norm, embeddings or a connection"):
        count_linear_regions(MLP(2, 1, activation="relu", connection="residual"), box)
    with pytest.raises(UsageError, match="got Conv2d"):
        count_linear_regions(nn.Sequential(nn.Conv2d(1, 1, 3)), box)
    with pytest.raises(UsageError, match="a fitted estimator with one network, got str"):
        count_linear_regions("mlp", box)


def test_boxes_and_options_that_cannot_be_meant_are_named():
    net = network(2, 3, 1)
    with pytest.raises(UsageError, match="or 2 such pairs"):
        count_linear_regions(net, [(0, 1)] * 3)
    with pytest.raises(UsageError, match="side 1 of the box must have low < high"):
        count_linear_regions(net, [(0, 1), (2, 2)])
    with pytest.raises(UsageError, match="'map' or 'pattern'"):
        count_linear_regions(net, (0, 1), by="cell")
    with pytest.raises(UsageError, match="auto, cut or lp"):
        count_linear_regions(net, (0, 1), method="grid")
    with pytest.raises(ResourceError, match="more than 3 linear regions"):
        count_linear_regions(network(2, 9, 1), (-9, 9), limit=3)
    net[0].weight.data[0, 0] = torch.nan
    with pytest.raises(UsageError, match="finite weights"):
        count_linear_regions(net, (0, 1))


def test_a_fitted_estimator_is_counted_by_its_network():
    from ansatz import Regressor

    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    model = Regressor(
        "normal",
        network_options={"widths": (6,), "activation": "relu"},
        epochs=2,
    ).fit(x, x[:, 0] + rng.normal(size=80))
    regions = linear_regions(model, (-3, 3))
    inside = model.model_.network
    assert len(regions) == len(linear_regions(inside, (-3, 3))) > 1
    value = inside(torch.as_tensor(regions.centers)).detach().numpy()
    found = np.einsum("cpd,cd->cp", regions.weights, regions.centers) + regions.biases
    assert_allclose(found, value, atol=1e-12)
