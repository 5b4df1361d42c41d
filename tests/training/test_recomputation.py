"""Gradient checkpointing: the same gradients, fewer saved tensors."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz import networks
from ansatz.data import Batch
from ansatz.errors import UsageError
from ansatz.estimators import Classifier
from ansatz.likelihoods import Categorical
from ansatz.spec import InputSpec
from ansatz.training import GradientStep, Supervised
from ansatz.training.recomputation import recomputing, segments


def chain():
    layers = [[nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Dropout(0.3)] for _ in range(5)]
    return nn.Sequential(*(part for layer in layers for part in layer), nn.Linear(6, 4))


NETWORKS = {
    "small_resnet": lambda: networks.create(
        "small_resnet", inputs=InputSpec.grid(3, 16, 16), outputs=4
    ),
    "sequential": chain,
}


def example(name):
    x = torch.randn(6, 3, 16, 16) if name == "small_resnet" else torch.randn(6, 6)
    return Batch.of(x, torch.arange(6) % 4)


@pytest.mark.parametrize("name", NETWORKS)
def test_steps_and_running_statistics_are_the_same(name):
    torch.manual_seed(0)
    plain = NETWORKS[name]().double()
    other, found = copy.deepcopy(plain), []
    for network, recompute in ((plain, False), (other, True)):
        torch.manual_seed(1)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        step = GradientStep(network, Supervised(Categorical()), optimizer, recompute=recompute)
        batch = example(name)
        found.append([step.step(batch) for _ in range(3)])
        assert "forward" not in vars(next(iter(segments(network))))
    assert found[0] == found[1]
    assert_close(other.state_dict(), plain.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize("name, share", [("small_resnet", 0.5), ("sequential", 0.7)])
def test_fewer_numbers_are_saved_for_the_backward_pass(name, share):
    network, batch = NETWORKS[name]().double(), example(name)
    parameters = {p.data_ptr() for p in network.parameters()}

    def count():
        saved = {}

        def pack(tensor):
            if tensor.data_ptr() not in parameters:
                saved[tensor.data_ptr()] = tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            network(*batch.inputs)
        return sum(saved.values())

    before = count()
    with recomputing(network):
        assert count() < share * before


def test_a_network_without_blocks_is_refused():
    network = networks.create("mlp", inputs=2, outputs=2)
    with pytest.raises(UsageError, match="MLP has no blocks of layers"):
        GradientStep(
            network,
            Supervised(Categorical()),
            torch.optim.SGD(network.parameters()),
            recompute=True,
        )


def test_an_estimator_takes_it_and_the_weights_stay_the_same():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(24, 1, 8, 8, generator=generator).numpy()
    y, weights = X[:, 0, 0, 0] > 0, []
    for recompute in (False, True):
        model = Classifier(recompute=recompute, epochs=1, augment=False).fit(X, y)
        weights.append(model.model_.posterior.networks[0].network.state_dict())
    assert_close(*weights, rtol=0, atol=0)
