import copy
import itertools

import pytest
import torch
from torch import nn

from ansatz.errors import UsageError
from ansatz.networks import (
    DenseNet121,
    ResNet18,
    SmallResNet,
    discriminative_groups,
    freeze,
    layer_groups,
)


def descend(network, steps=3):
    """Plain gradient descent with weight decay, by hand; in training mode."""
    network.train()
    for _ in range(steps):
        network(torch.randn(4, 1, 32, 32)).square().sum().backward()
        with torch.no_grad():
            for p in network.parameters():
                if p.grad is not None:
                    p -= 0.01 * p.grad + 0.01 * p
                    p.grad = None


NETWORKS = {
    "small_resnet": lambda: SmallResNet(1, 3, depth=8, width=2),
    "resnet18": lambda: ResNet18(1, 3, width=2),
    "densenet121": lambda: DenseNet121(1, 3, growth=2, blocks=(1, 1, 1, 1)),
}


@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_what_is_frozen_does_not_change_by_a_bit(make):
    network = make()
    assert freeze(network, "backbone") == len(layer_groups(network)) - 1
    before = copy.deepcopy(network.state_dict())
    descend(network)
    changed = {k for k, v in network.state_dict().items() if not torch.equal(v, before[k])}
    assert changed == {f"{network.heads[0]}.weight", f"{network.heads[0]}.bias"}


def test_frozen_batch_norms_use_their_running_statistics_in_training():
    network = SmallResNet(1, 3, depth=8, width=2)
    freeze(network, "backbone")
    x = torch.randn(4, 1, 9, 9)
    assert torch.equal(network.train()(x), network.eval()(x))
    network.train()(x)
    freeze(network, "none")  # without another call of train()
    assert not torch.equal(network(x), network.eval()(x))


def test_a_number_freezes_so_many_groups_from_the_start():
    network = SmallResNet(1, 3, depth=8, width=2)
    assert freeze(network, 2) == 2
    before = copy.deepcopy(network.state_dict())
    descend(network, steps=1)
    for key, value in network.state_dict().items():
        frozen = key.startswith(("conv1.", "bn1.", "layer1."))
        assert torch.equal(value, before[key]) == frozen, key
    freeze(network, "none")
    assert all(p.requires_grad for p in network.parameters())
    descend(network, steps=1)
    assert not torch.equal(network.conv1.weight, before["conv1.weight"])
    assert not torch.equal(network.bn1.running_mean, before["bn1.running_mean"])


def test_a_copy_of_a_frozen_network_is_frozen():
    network = copy.deepcopy(_frozen(SmallResNet(1, 3, depth=8, width=2)))
    before = copy.deepcopy(network.state_dict())
    descend(network, steps=1)
    assert torch.equal(network.bn1.running_mean, before["bn1.running_mean"])


def _frozen(network):
    freeze(network)
    return network


def test_rates_fall_by_the_factor_from_the_head_to_the_stem():
    network = ResNet18(1, 3, width=2)
    groups = discriminative_groups(network, 0.1, factor=2.6)
    rates = [group["lr"] for group in groups]
    assert rates[-1] == 0.1
    assert [b / a for a, b in itertools.pairwise(rates)] == pytest.approx([2.6] * 5)
    held = [p for group in groups for p in group["params"]]
    assert len(held) == len(set(held)) and set(held) == set(network.parameters())


def test_frozen_groups_need_no_rate():
    network = ResNet18(1, 3, width=2)
    freeze(network, 4)
    assert [g["lr"] for g in discriminative_groups(network, 0.1, factor=10)] == [0.01, 0.1]
    freeze(network, 6)
    with pytest.raises(UsageError, match="every group of the network is frozen"):
        discriminative_groups(network, 0.1)


def test_the_parts_of_any_module_are_its_groups():
    network = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert layer_groups(network) == [[network[0]], [network[2]]]
    assert layer_groups(network[0]) == [[network[0]]]


@pytest.mark.parametrize("what", ["head", -1, 6, True, 1.5, None])
def test_what_cannot_be_frozen_is_refused(what):
    with pytest.raises(UsageError, match="freeze must be backbone, none or a number"):
        freeze(SmallResNet(1, 3, depth=8, width=2), what)
