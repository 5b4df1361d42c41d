"""One gradient, one update: split batches, lack of memory, bad numbers, loaded moments."""

import logging
import re

import pytest
import torch
from tests.training.step_contract import StepContract, example_rows, weights_equal
from torch import nn
from torch.testing import assert_close

from ansatz.data import Batch
from ansatz.errors import NumericalError, ResourceError, UsageError
from ansatz.likelihoods import Normal
from ansatz.networks.grid_inputs import channels_last
from ansatz.optim import Newton, create_schedule
from ansatz.training import GradientStep, Supervised
from ansatz.training.gradient_step import align_state
from ansatz.training.run import snapshot


def make(
    rule=torch.optim.AdamW, rate=0.01, dropout=0.0, dispersion=1.0, network=None, seed=0, **options
):
    torch.manual_seed(seed)
    default = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1))
    network = network or default
    objective = Supervised(Normal(dispersion=dispersion))
    parameters = [*network.parameters(), *objective.parameters()]
    return GradientStep(network, objective, rule(parameters, lr=rate), **options)


class TestAdamW(StepContract):
    def make_step(self, dropout=0.0):
        return make(dropout=dropout)


class TestFusedAdamWithALearnedDispersion(StepContract):
    def make_step(self, dropout=0.0):
        def fused(parameters, lr):
            return torch.optim.Adam(parameters, lr, fused=True)

        return make(fused, dropout=dropout, dispersion="constant")


class TestAccumulatedClippedMomentumWithASchedule(StepContract):
    def make_step(self, dropout=0.0):
        def momentum(parameters, lr):
            return torch.optim.SGD(parameters, lr, momentum=0.9)

        schedule = [1.0, 0.5, 0.25, 1.0].__getitem__
        return make(
            momentum, dropout=dropout, accumulate=3, clip=0.7, schedule=lambda n: schedule(n % 4)
        )


class TestLBFGS(StepContract):
    def make_step(self, dropout=0.0):
        return make(torch.optim.LBFGS, rate=0.1, dropout=dropout)


def test_it_is_the_hand_written_loop_bit_for_bit():
    x, y = torch.randn(40, 3), torch.randn(40)
    step = make(torch.optim.Adam, rate=0.03, seed=7)
    for rows in torch.arange(40).split(9):
        step.step(Batch.of(x[rows], y[rows]))

    torch.manual_seed(7)
    network = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.0), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    likelihood = Normal(dispersion=1.0)
    for rows in torch.arange(40).split(9):
        optimizer.zero_grad()
        likelihood.loss(network(x[rows]), y[rows]).mean().backward()
        optimizer.step()
    weights_equal(dict(step.network.state_dict()), dict(network.state_dict()))


@pytest.mark.parametrize("accumulate", [2, 4, 7, 100])
def test_micro_batches_give_the_gradient_of_the_whole_batch(accumulate):
    def penalty(network):
        return 0.1 * network[0].weight.square().sum()

    batch = example_rows()
    batch = batch._replace(weight=torch.rand(23) + 0.5)
    steps = [make(torch.optim.SGD, 0.1, accumulate=k, penalty=penalty) for k in (1, accumulate)]
    for _ in range(5):
        logs = [step.step(batch) for step in steps]
        assert_close(*logs, rtol=1e-12, atol=1e-12)
    assert_close(*map(snapshot, steps), rtol=1e-12, atol=1e-12)


def test_the_penalty_is_added_once_and_not_logged_as_loss():
    batch = example_rows()
    plain, penalised = make(), make(penalty=lambda network: network[0].bias.sum() * 0 + 5.0)
    a, b = plain.step(batch), penalised.step(batch)
    assert a["loss"] == b["loss"] and b["penalty"] == 5.0
    weights_equal(snapshot(plain), snapshot(penalised))


def test_clipping_bounds_the_update_of_plain_descent():
    step = make(torch.optim.SGD, rate=1.0, clip=0.01)
    before = snapshot(step)
    norm = step.step(example_rows())["gradient_norm"]
    moved = torch.cat(
        [(a - b).flatten() for a, b in zip(snapshot(step).values(), before.values(), strict=True)]
    )
    assert norm > 0.01
    assert float(moved.norm()) == pytest.approx(0.01, rel=1e-3)


def test_the_schedule_multiplies_each_groups_own_rate_as_a_function_of_the_step_number():
    step = make(torch.optim.SGD, rate=0.4, schedule=lambda number: 1 / (1 + number))
    step.optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))], "lr": 4.0})
    step._base_rates.append(4.0)
    rates = []
    for _ in range(3):
        step.step(example_rows())
        rates.append([group["lr"] for group in step.optimizer.param_groups])
    assert_close(rates, [[0.4, 4.0], [0.2, 2.0], [0.4 / 3, 4.0 / 3]])


def test_a_batch_without_an_observed_outcome_changes_nothing():
    step, batch = make(), example_rows()
    before = snapshot(step)
    logs = step.step(batch._replace(weight=torch.zeros(23), target=torch.full((23,), torch.nan)))
    assert logs["count"] == 0
    weights_equal(before, snapshot(step))


class Exploding(nn.Module):
    def forward(self, x):
        return x.exp()


def test_the_first_layer_that_overflows_is_named_with_its_rows():
    network = nn.Sequential(nn.Linear(3, 4), Exploding(), nn.Linear(4, 1))
    step, batch = make(network=network), example_rows()
    x = batch.inputs[0].clone()
    x[[5, 9]] *= 1e6
    before = snapshot(step)
    with pytest.raises(NumericalError, match=r"layer '1' \(Exploding\) is inf \(rows 5, 9 of"):
        step.step(batch._replace(inputs=(x,)))
    weights_equal(before, snapshot(step))


def test_a_bad_outcome_is_named():
    step, batch = make(), example_rows()
    target = batch.target.clone()
    target[11] = torch.inf
    with pytest.raises(NumericalError, match=r"target is inf \(row 11 of"):
        step.step(batch._replace(target=target))


class RootOfSquare(nn.Module):
    """|x| as sqrt(x^2): finite at 0, its gradient is nan."""

    def forward(self, x):
        return (x**2).sqrt()


def test_a_gradient_that_is_not_finite_under_a_finite_loss_is_named():
    network = nn.Sequential(nn.Linear(3, 4, bias=False), RootOfSquare(), nn.Linear(4, 1))
    step = make(network=network)
    before = snapshot(step)
    with pytest.raises(NumericalError, match=r"gradient of 0.weight is nan while the loss is fin"):
        step.step(Batch.of(torch.zeros(2, 3), torch.ones(2)))
    weights_equal(before, snapshot(step))


@pytest.mark.parametrize("rule", [torch.optim.SGD, torch.optim.LBFGS])
def test_a_huge_rate_stops_with_finite_weights_and_says_the_rate(rule):
    step, batch = make(rule, rate=1e6), example_rows()
    with pytest.raises(NumericalError, match=r"The learning rate is 1e\+06") as caught:
        for _ in range(200):
            before = snapshot(step)
            step.step(batch)
    weights_equal(before, snapshot(step))
    assert re.search(r"at step \d+", str(caught.value))
    assert step.optimizer.param_groups[0]["params"][0].grad is None


class Hungry(nn.Module):
    """Fails like a device whose memory holds only so many rows."""

    def __init__(self, most, error=torch.OutOfMemoryError):
        super().__init__()
        self.inner, self.most, self.error = nn.Linear(3, 1), most, error

    def forward(self, x):
        if len(x) > self.most:
            raise self.error("DefaultCPUAllocator: not enough memory: you tried to allocate")
        return self.inner(x)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, RuntimeError, MemoryError])
def test_out_of_memory_halves_the_batch_and_keeps_the_effective_one(error, monkeypatch):
    batch = example_rows()
    roomy = make(torch.optim.SGD, 0.1, network=Hungry(100))
    narrow = make(torch.optim.SGD, 0.1, network=Hungry(6, error))
    narrow.network.load_state_dict(roomy.network.state_dict())
    told = []
    logger = logging.getLogger("ansatz.training.gradient_step")
    monkeypatch.setattr(logger, "warning", told.append)
    logs = [step.step(batch) for step in (roomy, narrow)]
    assert narrow.accumulate == 4
    assert "2 parts" in told[0] and "effective batch size is unchanged" in narrow.notes[-1]
    assert_close(*logs, rtol=1e-12, atol=1e-12)
    assert_close(snapshot(roomy), snapshot(narrow), rtol=1e-12, atol=1e-12)
    assert_close(roomy.evaluate(batch).total, narrow.evaluate(batch).total)
    assert narrow.state_dict()["accumulate"] == 4


def test_out_of_memory_with_one_row_is_a_resource_error():
    step = make(network=Hungry(0))
    before = snapshot(step)
    with pytest.raises(ResourceError, match="one row at a time"):
        step.step(example_rows())
    weights_equal(before, snapshot(step))


def test_another_runtime_error_passes_unchanged():
    class Broken(nn.Linear):
        def forward(self, x):
            raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        make(network=Broken(3, 1)).step(example_rows())


def test_a_likelihood_that_couples_rows_is_never_split():
    class Coupled(Normal):
        additive = False

    network = Hungry(6)
    objective = Supervised(Coupled(dispersion=1.0))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with pytest.raises(UsageError, match="accumulate=1"):
        GradientStep(network, objective, optimizer, accumulate=2)
    with pytest.raises(ResourceError, match="cannot split a batch"):
        GradientStep(network, objective, optimizer).step(example_rows())


def test_a_part_of_the_network_in_evaluation_mode_stays_so():
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    step = make(network=network)
    network[1].eval()
    step.evaluate(example_rows())
    step.step(example_rows())
    assert network.training and not network[1].training
    assert network[1].num_batches_tracked == 0


@pytest.mark.parametrize("options", [{"accumulate": 0}, {"clip": 0.0}, {"clip": float("nan")}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UsageError, match="must be"):
        make(**options)


def test_a_rule_that_needs_second_derivatives_is_sent_to_its_own_step():
    network = nn.Linear(3, 1)
    with pytest.raises(UsageError, match="Newton needs the graph of the loss: NewtonStep"):
        GradientStep(network, Supervised(Normal(dispersion=1.0)), Newton(network.parameters()))


def test_a_schedule_with_a_memory_is_saved_with_the_step():
    def plateau():
        return create_schedule("plateau", steps=100)

    step = make(schedule=plateau())
    for value in [1.0] * 40:
        step.observe(value)
        step.step(example_rows())
    other = make(schedule=plateau())
    other.load_state_dict(step.state_dict())
    assert step.rate < 0.01
    other.step(example_rows()), step.step(example_rows())
    assert other.rate == step.rate


def test_moments_of_a_file_move_the_weights_that_they_are_of():
    """Two steps at once, and one step before and one after the moments went through a file."""
    start = torch.randn(4, 3, 5, 5)

    def make():
        weight = nn.Parameter(start.clone().to(memory_format=torch.channels_last))
        return weight, torch.optim.AdamW([weight], lr=0.1, fused=True)

    def step(weight, optimizer, gradient):
        weight.grad = channels_last(gradient.clone())
        optimizer.step()

    gradients = torch.randn(2, 4, 3, 5, 5)
    expected, optimizer = make()
    step(expected, optimizer, gradients[0])
    middle = expected.detach().clone()
    saved = optimizer.state_dict()
    written = {
        name: value.contiguous().clone() for name, value in saved["state"][0].items()
    }  # as files hold tensors
    step(expected, optimizer, gradients[1])
    found, resumed = make()
    found.data.copy_(middle)
    resumed.load_state_dict({**saved, "state": {0: written}})
    align_state(resumed)
    step(found, resumed, gradients[1])
    assert_close(found, expected, rtol=0, atol=0)
