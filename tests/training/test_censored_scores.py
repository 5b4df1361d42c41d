"""Closed-form gradients of censored losses against autograd through the losses themselves."""

import math

import pytest
import torch
from torch.testing import assert_close

from ansatz.data import Batch
from ansatz.likelihoods import Censored, interval_censored
from ansatz.spec import TargetSpec
from ansatz.training import Supervised
from ansatz.training.fast.likelihood import OutputGradient, closed_form

N = 240
LIKELIHOODS = {
    "exponential": ("exponential", {}),
    "weibull": ("weibull", {}),
    "constant": ("weibull", {"dispersion": "constant"}),
    "known": ("weibull", {"dispersion": 0.7}),
}
every_likelihood = pytest.mark.parametrize("name", LIKELIHOODS)


def outcomes(kinds="exact right left between late"):
    """Rows of each kind in turn, and a likelihood that has seen them."""
    time, kinds = torch.empty(N).exponential_() + 0.01, kinds.split()
    kind = torch.arange(N) % len(kinds)
    lower, upper, entry = time.clone(), time.clone(), torch.full((N,), -math.inf)
    for k, name in enumerate(kinds):
        mine = kind == k
        lower[mine & (name == "left")] = -math.inf
        upper[mine & (name in ("right", "late"))] = math.inf
        if name == "between":
            upper[mine] += torch.rand(int(mine.sum()))
        if name == "late":
            entry[mine] = 0.5 * time[mine]
            half = mine & (torch.rand(N) < 0.5)
            upper[half] = time[half]  # an event of one who came late
    return interval_censored(lower, upper, entry)


def made(name, y):
    likelihood, options = LIKELIHOODS[name]
    censored = Censored(likelihood, options=options)
    censored.observe(y, torch.ones(len(y)))
    return censored, *censored.start(y, torch.ones(len(y)))


def check(likelihood, raw, y, rtol=1e-10):
    raw = raw.requires_grad_()
    terms = likelihood.training_loss(raw, y)
    own = [p for p in likelihood.parameters() if p.requires_grad]
    expected = torch.autograd.grad(terms.sum(), [raw, *own])
    loss, gradient = closed_form(likelihood)(raw.detach().numpy(), y.numpy())
    assert_close(torch.from_numpy(loss), terms.detach(), rtol=rtol, atol=rtol)
    gradient = torch.from_numpy(gradient)
    assert_close(gradient[:, : raw.shape[1]], expected[0], rtol=rtol, atol=rtol)
    if own:
        assert_close(gradient[:, -1].sum(), expected[1], rtol=rtol, atol=rtol)


@every_likelihood
@pytest.mark.parametrize(
    "kinds", ["exact", "right", "exact right", "exact right left between late"]
)
def test_the_closed_form_is_the_gradient_of_the_loss(name, kinds):
    y = outcomes(kinds)
    likelihood, _, _ = made(name, outcomes())
    check(likelihood, 1.5 * torch.randn(N, likelihood.outputs(TargetSpec())), y, rtol=1e-9)


@every_likelihood
def test_a_batch_gives_the_gradient_in_the_networks_output(name):
    """Through shift, scale and weights, as a step uses it."""
    y = outcomes()
    likelihood, shift, scale = made(name, y)
    objective, weight = Supervised(likelihood, shift, scale), torch.rand(N) + 0.5
    output = torch.randn(N, len(shift), requires_grad=True)
    batch = Batch.of(torch.zeros(N, 1), y, weight)
    own = [p for p in likelihood.parameters() if p.requires_grad]
    loss = (weight * likelihood.loss(objective.attach(output, None), y)).sum() / weight.sum()
    expected = torch.autograd.grad(loss, [output, *own])
    slots = [torch.empty_like(p) for p in own]
    found, count, gradient = OutputGradient(objective)(output.detach().numpy(), batch, slots)
    assert found == pytest.approx(loss.item()) and count == pytest.approx(weight.sum().item())
    assert_close(torch.from_numpy(gradient), expected[0], rtol=1e-9, atol=1e-12)
    for slot, value in zip(slots, expected[1:], strict=True):
        assert_close(slot, value, rtol=1e-9, atol=1e-12)


@every_likelihood
@pytest.mark.parametrize("value", [-50.0, 50.0, -300.0, 300.0])
def test_wild_raw_numbers_give_finite_single_precision(name, value):
    y = outcomes()
    likelihood, _, _ = made(name, y)
    raw = torch.full((N, likelihood.outputs(TargetSpec())), value, dtype=torch.float32)
    loss, gradient = closed_form(likelihood.float())(raw.numpy(), y.float().numpy())
    assert str(loss.dtype) == str(gradient.dtype) == "float32"
    assert torch.from_numpy(loss).isfinite().all() and torch.from_numpy(gradient).isfinite().all()


def test_an_observed_zero_is_an_exponential_outcome():
    likelihood = Censored("exponential")
    y = torch.tensor([[0.0, 0.0, -math.inf], [0.0, math.inf, -math.inf]])
    check(likelihood, torch.randn(2, 1), y)


def test_other_likelihoods_are_left_to_autograd():
    for inner in ("gamma", "log_normal", "poisson"):
        assert closed_form(Censored(inner)) is None
