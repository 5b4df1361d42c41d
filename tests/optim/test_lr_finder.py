import math

import pytest
import torch
from torch import nn

from ansatz.data import Batch, TensorSource
from ansatz.errors import NumericalError, UsageError
from ansatz.likelihoods import Normal
from ansatz.optim import LearningRateCurve, find_learning_rate
from ansatz.training import Supervised


def problem(noise=0.1, rows=256):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 4, generator=generator)
    y = x @ torch.tensor([1.0, -2.0, 0.5, 1.5]) + noise * torch.randn(rows, generator=generator)
    return Supervised(Normal(dispersion=1.0)), TensorSource(Batch.of(x, y), 32, seed=1)


def test_the_suggested_rate_of_gradient_descent_is_below_2_over_L_and_useful():
    """x is white, so L = 1 and rates beyond 2 diverge; far below 1 little happens."""
    objective, source = problem()
    network = nn.Linear(4, 1)
    curve = find_learning_rate(network, objective, source, optimizer=torch.optim.SGD)
    low, high = curve.range
    assert 0.01 < low <= curve.suggestion <= high < 2
    assert len(curve.suggestions) == 3 == len(curve.losses)


def test_network_objective_and_random_state_are_untouched():
    objective, source = problem()
    objective.likelihood = Normal(dispersion="constant")
    network = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    network.eval()
    before = {**network.state_dict(), **objective.state_dict()}
    before = {name: tensor.clone() for name, tensor in before.items()}
    random = torch.get_rng_state()
    find_learning_rate(network, objective, source, sweeps=1)
    after = {**network.state_dict(), **objective.state_dict()}
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert torch.equal(random, torch.get_rng_state()) and not network.training
    assert all(p.grad is None for p in network.parameters())


def test_the_same_seed_gives_the_same_curve():
    objective, source = problem()
    network = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 1))
    one, other = (find_learning_rate(network, objective, source, seed=3) for _ in range(2))
    assert one.suggestions == other.suggestions


def test_a_loss_that_never_falls_is_refused_in_words():
    objective, _ = problem()
    source = TensorSource(Batch.of(torch.zeros(64, 4), torch.zeros(64)), 16)
    network = nn.Linear(4, 1)
    nn.init.zeros_(network.bias)  # already at the minimum
    with pytest.raises(NumericalError, match=r"never falls clearly.*standardised"):
        find_learning_rate(network, objective, source)


def test_a_loss_that_explodes_at_once_is_refused_in_words():
    objective, source = problem()
    with pytest.raises(NumericalError, match="diverged at once"):
        find_learning_rate(
            nn.Linear(4, 1), objective, source, optimizer=torch.optim.SGD, lowest=1e3, highest=1e6
        )


def test_impossible_settings_are_refused():
    objective, source = problem()
    with pytest.raises(UsageError, match="0 < lowest < highest"):
        find_learning_rate(nn.Linear(4, 1), objective, source, lowest=1.0, highest=0.1)
    with pytest.raises(UsageError, match="steps >= 20"):
        find_learning_rate(nn.Linear(4, 1), objective, source, steps=3)


def test_the_plot_is_written_or_drawn_on_given_axes(tmp_path):
    objective, source = problem()
    curve = find_learning_rate(nn.Linear(4, 1), objective, source, sweeps=2)
    curve.plot(tmp_path / "rate.png")
    assert (tmp_path / "rate.png").read_bytes().startswith(b"\x89PNG")
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    assert curve.plot(axes) is axes and axes.get_xscale() == "log"
    drawn = axes.get_lines()[-1].get_xdata()[0]
    assert drawn == pytest.approx(curve.suggestion)


def test_the_suggestion_is_the_geometric_mean():
    curve = LearningRateCurve(torch.ones(1), torch.ones(2, 1), (1e-4, 1e-2))
    assert curve.suggestion == pytest.approx(1e-3)
    assert math.isclose(curve.range[1] / curve.range[0], 100)
