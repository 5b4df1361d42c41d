"""Newton's step is iteratively reweighted least squares; extragradient solves games."""

from itertools import pairwise

import numpy as np
import pytest
import statsmodels.api as sm
import torch
from tests.training.step_contract import StepContract, example_rows
from torch import nn
from torch.testing import assert_close

from ansatz.data import Batch
from ansatz.errors import NumericalError
from ansatz.likelihoods import Bernoulli, Normal, Poisson
from ansatz.networks import MLP
from ansatz.training import ExtragradientStep, Loss, NewtonStep, Supervised


def data(rows=80):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 3, generator=generator)
    eta = 0.3 + x @ torch.tensor([0.5, -0.4, 0.2])
    return x, eta, generator


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
def test_with_a_canonical_link_it_is_the_glm_of_statsmodels(name):
    x, eta, generator = data()
    weight = torch.rand(80, generator=generator) + 0.5
    if name == "poisson":
        likelihood, family = Poisson(), sm.families.Poisson()
        y = torch.poisson(eta.exp(), generator=generator)
    else:
        likelihood, family = Bernoulli(), sm.families.Binomial()
        y = torch.bernoulli(torch.sigmoid(eta), generator=generator)
    step = NewtonStep(nn.Linear(3, 1), Supervised(likelihood))
    for _ in range(12):
        step.step(Batch.of(x, y, weight))
    model = sm.GLM(y.numpy(), sm.add_constant(x.numpy()), family, var_weights=weight.numpy())
    expected = torch.from_numpy(np.asarray(model.fit(tol=1e-14).params))
    found = torch.cat([step.network.bias, step.network.weight[0]]).detach()
    assert_close(found, expected, rtol=1e-8, atol=1e-10)


def test_least_squares_takes_one_step():
    x, eta, generator = data()
    y = eta + torch.randn(80, generator=generator)
    step = NewtonStep(nn.Linear(3, 1), Supervised(Normal(dispersion=2.0)))
    step.step(Batch.of(x, y))
    solution = torch.linalg.lstsq(torch.cat([torch.ones(80, 1), x], 1), y).solution
    found = torch.cat([step.network.bias, step.network.weight[0]]).detach()
    assert_close(found, solution)


def test_a_learned_dispersion_is_fitted_with_the_weights():
    x, eta, generator = data()
    y = eta + 0.7 * torch.randn(80, generator=generator)
    likelihood = Normal(dispersion="constant")
    step = NewtonStep(nn.Linear(3, 1), Supervised(likelihood))
    for _ in range(15):
        step.step(Batch.of(x, y))
    residual = y - step.network(x)[:, 0]
    assert_close(likelihood.dispersion(torch.zeros(1, 1))[0], residual.square().mean().sqrt())


def test_a_small_network_reaches_a_critical_point():
    x, eta, _ = data()
    step = NewtonStep(MLP(3, 1, widths=(3,), activation="tanh"), Supervised(Normal(dispersion=1.0)))
    batch = Batch.of(x, (2 * eta).sin())
    losses = [step.step(batch)["loss"] for _ in range(60)]
    assert all(b <= a + 1e-12 for a, b in pairwise(losses))
    total, count = step.objective(step.network, batch)
    gradients = torch.autograd.grad(total / count, list(step.network.parameters()))
    assert max(float(g.abs().max()) for g in gradients) < 1e-6


def test_separated_classes_keep_a_finite_falling_loss():
    x = torch.linspace(-1, 1, 20)[:, None]
    step = NewtonStep(nn.Linear(1, 1), Supervised(Bernoulli()))
    losses = [step.step(Batch.of(x, (x[:, 0] > 0).double()))["loss"] for _ in range(20)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 1e-4


def test_a_bad_row_is_named_and_the_update_is_not_applied():
    x, eta, _ = data()
    step = NewtonStep(nn.Linear(3, 1), Supervised(Normal(dispersion=1.0)))
    before = step.network.weight.detach().clone()
    x[17, 2] = torch.nan
    with pytest.raises(NumericalError, match=r"step 1: input column 2 is nan \(row 17"):
        step.step(Batch.of(x, eta))
    assert torch.equal(step.network.weight, before)


def test_evaluation_is_the_plain_loss_and_the_state_is_the_number():
    x, eta, _ = data()
    step = NewtonStep(nn.Linear(3, 1), Supervised(Normal(dispersion=1.0)))
    step.step(Batch.of(x, eta))
    expected = step.objective.terms(step.network, Batch.of(x, eta)).sum()
    assert_close(step.evaluate(Batch.of(x, eta)).total, expected.detach())
    other = NewtonStep(nn.Linear(3, 1), Supervised(Normal(dispersion=1.0)))
    other.load_state_dict(step.state_dict())
    assert other.number == 1


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
