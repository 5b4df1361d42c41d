import pytest
import torch
from tests.training.step_contract import StepContract, example_rows
from torch import nn
from torch.testing import assert_close

from ansatz.data import Batch
from ansatz.likelihoods import Normal
from ansatz.training import ExtragradientStep, Loss, Supervised


class Players(nn.Module):
    def __init__(self):
        super().__init__()
        self.low, self.high = nn.Parameter(torch.ones(())), nn.Parameter(torch.ones(()))

    def forward(self, x):
        return x * self.low * self.high


class Game(nn.Module):
    """The bilinear game, in the dress of an objective."""

    def forward(self, network, batch):
        return Loss(network(batch.inputs[0]).sum(), batch.weight.sum())


def test_the_bilinear_game_converges_as_the_theory_says():
    players = Players()
    step = ExtragradientStep(players, Game(), maximizers=[players.high], learning_rate=0.1)
    for _ in range(500):
        step.step(Batch.of(torch.ones(4, 1), torch.zeros(4)))
    norm = (players.low**2 + players.high**2).sqrt().item()
    assert norm == pytest.approx(2**0.5 * (1 - 0.1**2 + 0.1**4) ** 250, rel=1e-9)


def test_minimisation_looks_ahead():
    network, objective = nn.Linear(3, 1), Supervised(Normal(dispersion=1.0))
    batch = example_rows()
    origin = [p.detach().clone() for p in network.parameters()]

    def gradient(values):
        for parameter, value in zip(network.parameters(), values, strict=True):
            parameter.data.copy_(value)
        total, count = objective(network, batch)
        return torch.autograd.grad(total / count, list(network.parameters()))

    half = [w - 0.1 * g for w, g in zip(origin, gradient(origin), strict=True)]
    expected = [w - 0.1 * g for w, g in zip(origin, gradient(half), strict=True)]
    for parameter, value in zip(network.parameters(), origin, strict=True):
        parameter.data.copy_(value)
    ExtragradientStep(network, objective, learning_rate=0.1).step(batch)
    assert_close([p.detach() for p in network.parameters()], expected)


class TestContract(StepContract):
    def make_step(self, dropout=0.0):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1))
        return ExtragradientStep(network, Supervised(Normal(dispersion=1.0)), learning_rate=0.05)
