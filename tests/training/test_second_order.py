from itertools import pairwise

import numpy as np
import pytest
import statsmodels.api as sm
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.data import Batch
from ansatz.errors import NumericalError
from ansatz.likelihoods import Bernoulli, Normal, Poisson
from ansatz.networks import MLP
from ansatz.training import NewtonStep, Supervised


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
