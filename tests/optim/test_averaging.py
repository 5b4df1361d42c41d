"""Weight averaging (M139)."""

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.optim import WeightAverage


def weights(network):
    return torch.cat([p.detach().reshape(-1) for p in network.parameters()])


def wander(network, average, steps=7):
    """Random walks of the weights, each taken into the average; returns all of them."""
    seen = []
    for _ in range(steps):
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(torch.randn_like(parameter))
        average(network)
        seen.append(weights(network).clone())
    return torch.stack(seen)


def test_swa_is_the_plain_mean_and_torchs():
    network, average = nn.Linear(3, 2), WeightAverage("swa")
    theirs = AveragedModel(network)

    def both(network):
        average.update(network)
        theirs.update_parameters(network)

    seen = wander(network, both)
    average.copy_to(network)
    assert_close(weights(network), seen.mean(0))
    assert_close(weights(network), weights(theirs.module))


def test_ema_is_its_recursion_and_torchs():
    network, average = nn.Linear(3, 2), WeightAverage("ema", decay=0.8)
    theirs = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(0.8))

    def both(network):
        average.update(network)
        theirs.update_parameters(network)

    seen = wander(network, both)
    mean = seen[0]
    for value in seen[1:]:
        mean = 0.8 * mean + 0.2 * value
    average.copy_to(network)
    assert_close(weights(network), mean)
    assert_close(weights(network), weights(theirs.module))


def test_the_average_of_noisy_sgd_lies_nearer_to_the_minimum():
    """Stationary SGD on theta^2/2 has variance rate/(2 - rate) and decays by 1 - rate per step.

    So the mean of n iterates has variance about 1/n, of the last iterate 1/3 at rate 0.5.
    """
    theta, average = nn.Linear(200, 1, bias=False), WeightAverage("swa")
    nn.init.zeros_(theta.weight)
    rule = torch.optim.SGD(theta.parameters(), lr=0.5)
    for _ in range(400):
        theta.weight.grad = theta.weight.detach() + torch.randn_like(theta.weight)
        rule.step()
        average.update(theta)
    last = theta.weight.detach().square().mean().item()
    average.copy_to(theta)
    mean = theta.weight.detach().square().mean().item()
    # 200 coordinates: a relative standard error of (2/200)^0.5 = 0.1, five of them.
    assert last == pytest.approx(1 / 3, rel=0.5)
    assert mean == pytest.approx(1 / 400, rel=0.5)


def test_swapping_twice_changes_nothing():
    network, average = nn.BatchNorm1d(3), WeightAverage()
    average.update(network)
    with torch.no_grad():
        network.weight.fill_(3.0)
    average.swap(network)
    assert network.weight.mean() == 1.0 and network.num_batches_tracked == 0
    average.swap(network)
    assert network.weight.mean() == 3.0


def test_it_continues_from_its_state():
    network, one, other = nn.Linear(2, 1), WeightAverage(), WeightAverage()
    wander(network, one.update, 3)
    other.load_state_dict(one.state_dict())
    wander(network, lambda n: (one.update(n), other.update(n)), 2)
    assert torch.equal(one.state_dict()["mean"]["weight"], other.state_dict()["mean"]["weight"])


def test_before_the_first_update_the_weights_stay_and_wrong_settings_are_refused():
    network = nn.Linear(2, 1)
    before = weights(network).clone()
    WeightAverage().copy_to(network)
    assert torch.equal(weights(network), before)
    with pytest.raises(UsageError, match="'swa' or 'ema'"):
        WeightAverage("mean")
    with pytest.raises(UsageError, match=r"\[0, 1\)"):
        WeightAverage("ema", decay=1.0)
