"""What is symmetric by construction certifies to rounding; what is not, does not."""

import math

import pytest
import torch
from torch import nn

from ansatz import symmetry
from ansatz.symmetry import Group, Shift, certify


def convolutions(padding_mode, *, head=False, dropout=False):
    body = [
        nn.Conv2d(1, 4, 3, padding=1, padding_mode=padding_mode),
        nn.ReLU(),
        nn.Conv2d(4, 4, 3, padding=1, padding_mode=padding_mode),
        nn.Tanh(),
    ]
    if dropout:
        body.append(nn.Dropout(0.5))
    pooled = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)] if head else []
    return nn.Sequential(*body, *pooled)


@pytest.fixture
def x():
    return torch.randn(6, 1, 8, 8)


def test_circular_convolutions_commute_with_cyclic_shifts(x):
    found = certify(convolutions("circular"), x, "cyclic_shift", kind="equivariant", samples=16)
    assert found.largest < 1e-13 and found.relative < 1e-12
    assert (found.group, found.kind, found.samples) == ("cyclic_shift", "equivariant", 16)


def test_zero_padding_breaks_cyclic_shifts(x):
    found = certify(convolutions("zeros"), x, "cyclic_shift", kind="equivariant", samples=16)
    assert found.relative > 0.1 and found.largest >= found.mean > 0
    assert any(found.worst_element)


def test_pooling_all_cells_makes_the_shift_disappear(x):
    network = convolutions("circular", head=True)
    assert certify(network, x, "cyclic_shift", samples=16).largest < 1e-14
    assert certify(convolutions("zeros", head=True), x, "cyclic_shift").relative > 1e-3


def test_within_a_margin_zero_padding_is_not_seen(x):
    """Two 3x3 layers see two cells: margin = reach + 2 is where the frame has no say."""
    network, x = convolutions("zeros"), torch.randn(2, 1, 16, 16)
    far, near = Shift(reach=2, margin=4), Shift(reach=2, margin=3)
    assert certify(network, x, far, kind="equivariant").largest < 1e-13
    found = certify(network, x, near, kind="equivariant")
    assert found.largest > 1e-3 and not found.exact


def test_strides_commute_with_multiples_of_the_stride(x):
    layer = nn.Conv2d(1, 2, 3, stride=2, padding=1, padding_mode="circular")

    def halved(g, y):
        return y.roll([s // 2 for s in g], (2, 3))

    even = symmetry.create("cyclic_shift", stride=2)
    assert certify(layer, x, even, kind="equivariant", output_action=halved).largest < 1e-13
    found = certify(layer, x, "cyclic_shift", kind="equivariant", output_action=halved)
    assert found.relative > 0.1


def test_a_kernel_with_the_symmetry_of_the_square_commutes_with_it(x):
    layer = nn.Conv2d(1, 1, 3, padding=1)
    assert certify(layer, x, "dihedral", kind="equivariant").relative > 0.1
    group = symmetry.create("dihedral")
    with torch.no_grad():
        orbit = [group.act((k, f), layer.weight) for k in range(4) for f in range(2)]
        layer.weight.copy_(torch.stack(orbit).mean(0))
    assert certify(layer, x, "dihedral", kind="equivariant").largest < 1e-14
    assert certify(layer, x, "rotation90", kind="equivariant").largest < 1e-14
    assert certify(layer, x, "flip", kind="equivariant").largest < 1e-14


def test_a_mean_over_a_set_does_not_know_its_order():
    inner, outer = nn.Linear(3, 8), nn.Linear(8, 2)
    sets = torch.randn(5, 7, 3)
    assert certify(lambda x: outer(inner(x).tanh().mean(1)), sets, "permutation").largest < 1e-14
    found = certify(lambda x: inner(x).tanh(), sets, "permutation", kind="equivariant")
    assert found.largest == 0


def test_a_masked_mean_moves_with_its_mask():
    x, mask = torch.randn(5, 7, 3), torch.rand(5, 7) < 0.6

    def mean(x, mask):
        return (x * mask[..., None]).sum(1) / 7

    assert certify(mean, (x, mask), "permutation").largest < 1e-14
    assert certify(lambda x, m: mean(x, mask), (x, mask), "permutation").largest > 0.1


def test_messages_do_not_know_the_names_of_nodes():
    x, A = torch.randn(3, 6, 2), torch.rand(3, 6, 6)
    readout = certify(lambda x, A: (A @ x).relu().sum(1), (x, A), "node_permutation")
    assert readout.largest < 1e-13


@pytest.mark.parametrize("group", ["point_rotation", "orthogonal", "translation", "rigid_motion"])
def test_distances_are_invariant_under_motions(group):
    points = torch.randn(3, 5, 3)

    def distances(x):
        return (x[:, :, None] - x[:, None]).norm(dim=-1)

    assert certify(distances, points, group).largest < 1e-13
    assert certify(lambda x: x.abs().sum(1), points, group).relative > 0.1


def test_forces_turn_with_the_points_and_ignore_translations():
    points = torch.randn(3, 5, 3)

    def forces(x):
        apart = x[:, :, None] - x[:, None]
        return (apart * torch.exp(-apart.norm(dim=-1, keepdim=True))).sum(2)

    motion = {"kind": "equivariant", "output_action": lambda g, y: y @ g[0].mT}
    assert certify(forces, points, "rigid_motion", **motion).largest < 1e-13
    volume = certify(torch.linalg.det, points[:, :3], "orthogonal", samples=32)  # a signed volume
    assert volume.relative > 1
    assert certify(torch.linalg.det, points[:, :3], "point_rotation").largest < 1e-13


def test_rectified_networks_without_biases_scale_with_their_inputs():
    network = nn.Sequential(nn.Linear(3, 8, bias=False), nn.ReLU(), nn.Linear(8, 2, bias=False))
    x = torch.randn(9, 3)
    assert certify(network, x, "scaling", kind="equivariant").largest < 1e-13
    assert certify(network, x, "sign", kind="equivariant").relative > 0.1
    assert certify(nn.Linear(3, 2, bias=False), x, "sign", kind="equivariant").largest == 0


def test_the_violation_is_the_largest_over_the_group():
    """f(x) = x_0 under four turns of 2x2: the worst difference is known by enumeration."""
    x = torch.randn(3, 1, 2, 2)
    found = certify(lambda x: x[:, 0, 0, 0], x, "rotation90", samples=3)
    assert found.samples == 3  # a group of four is tried wholly
    turned = [x.rot90(k, (-2, -1))[:, 0, 0, 0] for k in range(4)]
    gaps = torch.stack([(y - turned[0]).abs().max() for y in turned])
    assert found.largest == pytest.approx(float(gaps.max()))
    assert found.worst_element == int(gaps.argmax())
    assert found.relative == pytest.approx(float(gaps.max() / turned[0].std()))


def test_the_network_is_left_as_it_was(x):
    network = convolutions("circular", dropout=True)
    network[1].eval()
    modes = [module.training for module in network.modules()]
    found = certify(network, x, "cyclic_shift", kind="equivariant", samples=4)
    assert found.largest < 1e-13  # dropout was off
    assert [module.training for module in network.modules()] == modes
    assert all(p.grad is None for p in network.parameters())


def test_one_generator_one_certificate(x):
    network = convolutions("zeros")
    a, b = (
        certify(network, x, "cyclic_shift", samples=4, generator=torch.Generator().manual_seed(5))
        for _ in range(2)
    )
    assert a == b


def test_nan_is_no_proof_of_symmetry():
    found = certify(lambda x: x.log(), -torch.ones(2, 3), "permutation", samples=3)
    assert math.isnan(found.largest) and math.isnan(found.relative)


def test_a_constant_is_invariant_and_a_single_input_has_no_dispersion():
    x = torch.randn(1, 4)
    assert certify(lambda x: x * 0, torch.randn(3, 4), "sign").relative == 0
    assert math.isnan(certify(lambda x: x, x, "sign").relative)


def test_several_outputs_are_all_compared(x):
    found = certify(lambda x: (x.sum((2, 3)), x[:, 0, 0]), x, "cyclic_shift")
    assert found.largest > 0.1


def test_a_group_of_ones_own(x):
    class Swap(Group):
        """Two channels change places."""

        def identity(self, x):
            return 0

        def sample(self, x, generator=None):
            return 1

        def act(self, element, x):
            return x.flip(1) if element else x

        def inverse(self, element):
            return element

        def compose(self, first, second):
            return first ^ second

    assert certify(lambda x: x.sum(1), torch.randn(3, 2), Swap(), samples=1).group == "Swap"


@pytest.mark.parametrize(
    "options, says",
    [
        ({"kind": "covariant"}, "invariant or equivariant, got 'covariant'"),
        ({"samples": 0}, "1 or more, got 0"),
        ({"output_action": lambda g, y: y}, "ask for equivariant"),
    ],
)
def test_a_wrong_request_is_named(x, options, says):
    with pytest.raises(ValueError, match=says):
        certify(lambda x: x, x, "flip", **options)


def test_what_returns_no_tensor_or_another_shape_is_named(x):
    with pytest.raises(ValueError, match="returns tensors, got dict"):
        certify(lambda x: {"y": 1}, x, "flip")
    with pytest.raises(ValueError, match="use square ones"):
        certify(lambda x: x, x[..., :5], "rotation90", samples=16)


def test_arrays_are_asked_for_as_tensors():
    with pytest.raises(TypeError, match="needs tensors, got ndarray"):
        certify(torch.nn.Identity(), torch.zeros(2, 1, 4, 4).numpy(), "flip")
