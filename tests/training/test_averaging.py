"""The averaged weights follow their formula."""

from types import SimpleNamespace

import pytest
import torch

from ansatz.training.run import Averaging


def walk(steps):
    """A parameter on a random walk, and where it was after each step."""
    parameter = torch.nn.Linear(1, 1, bias=False)
    step = SimpleNamespace(network=parameter, objective=torch.nn.Identity())
    return step, 10 + torch.randn(steps).cumsum(0) / 10


def averaged(kind, steps, *, cut=None):
    step, path = walk(steps)
    average = Averaging(kind, step, total=steps)
    for number, value in enumerate(path, start=1):
        step.network.weight.data.fill_(value)
        average.update(number)
        if number == cut:
            state, average = average.state_dict(), Averaging(kind, step, total=steps)
            average.load_state_dict(state)
    return float(average.values["network.weight"]), path


def formula(path):
    mean = path[0]
    for t, value in enumerate(path):
        d = min(0.999, (1 + t) / (10 + t))
        mean = d * mean + (1 - d) * value
    return mean


def test_the_first_steps_are_the_formula():
    step, path = walk(300)
    average = Averaging("ema", step, total=300)
    start = float(average.values["network.weight"])
    for number, value in enumerate(path, start=1):
        step.network.weight.data.fill_(value)
        average.update(number)
    found = float(average.values["network.weight"])
    weight_of_start = 1.0
    for t in range(300):
        weight_of_start *= min(0.999, (1 + t) / (10 + t))
    expected = formula(path.tolist()) + weight_of_start * (start - float(path[0]))
    assert found == pytest.approx(expected, rel=1e-12)


def test_every_fourth_step_says_what_every_step_would():
    found, path = averaged("ema", 2_000)
    # A value stands for up to 3 before it: each of some 400 increments of 0.1 is moved by at most
    # 3 of the weights, which are about 1 / 200.
    deviation = 0.1 * 3 / 200 * 400**0.5
    assert abs(found - formula(path.tolist())) < 4 * deviation
    assert abs(found - float(path[-1])) > 4 * deviation  # the average is not where the walk is


def test_swa_is_the_mean_of_the_last_quarter():
    found, path = averaged("swa", 100)
    assert found == pytest.approx(float(path[75:].mean()), rel=1e-12)


@pytest.mark.parametrize("kind", ["ema", "swa"])
def test_a_run_cut_in_two_has_the_same_average(kind):
    torch.manual_seed(0)
    whole, _ = averaged(kind, 1_000)
    torch.manual_seed(0)
    again, _ = averaged(kind, 1_000, cut=801)
    assert whole == again
