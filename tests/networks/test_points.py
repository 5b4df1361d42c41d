"""Networks on point clouds: motions, orders, transforms, and gradients."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ansatz import networks
from ansatz.data.sets.batch import ElementBatch, SetBatch
from ansatz.networks.invariant_points import LEVELS, quantiles
from ansatz.spec import InputSpec
from ansatz.symmetry import RigidMotion
from ansatz.training import Supervised

EXACT = {"rtol": 0, "atol": 1e-10}
EACH = {
    "pointnet": {"width": 4},
    "invariant_points": {"widths": (8,), "knots": 6},
    "linear_points": {},
}
every_network = pytest.mark.parametrize("name", EACH)


def clouds(lengths=(3, 1, 6, 6), features=1):
    values = torch.randn(sum(lengths), 3 + features)
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return SetBatch(values, offsets, torch.zeros(len(values), 0).long(), torch.zeros(4, 0))


def build(name, rows="sets", features=1):
    made = networks.create(name, InputSpec("points", 3 + features, rows=rows), 2, **EACH[name])
    for p in made.parameters():
        torch.nn.init.normal_(p, std=0.5)
    for norm in made.modules():
        if isinstance(norm, torch.nn.BatchNorm1d):
            norm.running_var.uniform_(0.5, 2)
    return made.eval()


@every_network
def test_the_order_of_points_does_not_matter_and_clouds_do_not_see_each_other(name):
    network, x = build(name), clouds()
    order = torch.cat(
        [torch.randperm(3), torch.tensor([3]), 4 + torch.randperm(6), 10 + torch.randperm(6)]
    )
    found = network(*x)
    assert_close(network(*x._replace(values=x.values[order])), found, **EXACT)
    for row in range(4):
        alone = network(*x.take_rows(torch.tensor([row])))
        assert_close(alone[0], found[row], rtol=0, atol=1e-12)


@every_network
def test_answers_of_points_move_with_them(name):
    network, x = build(name, "elements"), clouds((6, 3))
    order = torch.cat([torch.randperm(6), 6 + torch.randperm(3)])
    found = network(*x)
    assert found.shape == (9, 2)
    assert_close(network(*x._replace(values=x.values[order])), found[order], **EXACT)
    chosen = torch.tensor([8, 1])
    assert_close(network(*ElementBatch(*x, chosen)), found[chosen])


@pytest.mark.parametrize("name", ["invariant_points", "linear_points"])
def test_no_motion_changes_the_answer(name):
    network, x, group = build(name), clouds(), RigidMotion(scale=3.0, reflections=True)
    for _ in range(5):
        moved = group.act(group.sample(x.values[:, :3]), x.values[:, :3])
        values = torch.cat([moved, x.values[:, 3:]], 1)
        assert_close(network(*x._replace(values=values)), network(*x), **EXACT)


@pytest.mark.parametrize("name", ["pointnet", "invariant_points"])
def test_gradients_are_those_of_differences(name):
    network, x = build(name), clouds()
    values = x.values.requires_grad_()
    assert torch.autograd.gradcheck(lambda v: network(v, x.offsets), values)


def test_distances_are_hat_functions_averaged_over_the_cloud():
    network, x = build("invariant_points"), torch.randn(4, 3)
    network.spacing.fill_(1.0)
    found = network.distances(x, torch.tensor([0, 4]))
    knots = torch.arange(6.0)
    for i in range(4):
        far = (x[i] - x).norm(dim=1).clamp(max=5 - 1e-6).unsqueeze(1)
        assert_close(found[i], (1 - (far - knots).abs()).clamp(min=0).mean(0))


def test_linear_points_are_the_spectrum_and_the_quantiles_of_the_radius():
    network, x = build("linear_points", features=0), torch.randn(9, 3)
    found = network.features(x, torch.tensor([0, 9]))[0].numpy()
    off = (x - x.mean(0)).numpy()
    spectrum = np.linalg.eigvalsh(off.T @ off / 9)
    levels = np.quantile(np.linalg.norm(off, axis=1), LEVELS)
    np.testing.assert_allclose(found, [*spectrum, *levels, np.log(10)])


def test_quantiles_are_numpys_row_by_row():
    x, offsets = torch.randn(10), torch.tensor([0, 1, 4, 10])
    for row, (a, b) in enumerate([(0, 1), (1, 4), (4, 10)]):
        expected = np.quantile(x[a:b].numpy(), LEVELS)
        np.testing.assert_allclose(quantiles(x, offsets, LEVELS)[row].numpy(), expected)


def test_a_transform_starts_at_the_identity():
    network = networks.create("pointnet", 3, 2, width=4).eval()
    x, offsets = torch.randn(5, 3), torch.tensor([0, 2, 5])
    assert_close(network.align(x, offsets), torch.eye(3).expand(2, 3, 3))
    plain = networks.create("pointnet", 3, 2, width=4, transforms=False).eval()
    plain.load_state_dict(network.state_dict(), strict=False)
    assert_close(plain(x, offsets), network(x, offsets))


def test_the_penalty_of_the_transform_is_added_to_the_mean_loss_in_training_alone():
    from ansatz.data import Batch
    from ansatz.likelihoods import Normal

    network = networks.create("pointnet", 3, 1, width=4, dropout=0.0)
    torch.nn.init.normal_(network.turn.output.weight, std=0.3)
    x, objective = clouds((3, 4, 5, 6), features=0), Supervised(Normal(dispersion=1.0))
    batch = Batch(x, torch.zeros(4), torch.tensor([1.0, 2.0, 1.0, 1.0]), None, torch.arange(4))
    total, count = objective(network, batch)
    matrix = network.turn(network.local(network_turned(network, x)), x.offsets)
    off = (torch.eye(4) - matrix @ matrix.mT).square().sum((1, 2)).mean()
    network.penalty_weight = 0.0
    plain = objective(network, batch).total
    assert off > 0.01
    assert_close(total / count - plain / count, 0.001 * off)
    network.penalty_weight = 0.001
    network.eval()(*x)
    assert network.penalty() is None


def network_turned(network, x):
    matrix = network.align(x.values, x.offsets)
    row = torch.arange(4).repeat_interleave(x.offsets.diff())
    return torch.einsum("ek,ekl->el", x.values, matrix[row])


def test_parts_come_from_64_local_and_1024_global_numbers():
    network = networks.create("pointnet", InputSpec("points", 3, rows="elements"), 5)
    assert network.head.maps[0].in_features == 64 + 1024
