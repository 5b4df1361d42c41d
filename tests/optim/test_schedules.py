import math

import pytest
import torch

from ansatz.errors import UsageError
from ansatz.optim import create_schedule, schedules


@pytest.mark.parametrize("name", [n for n in schedules.names() if n != "plateau"])
def test_multipliers_lie_in_0_to_1_and_reach_1(name):
    schedule = create_schedule(name, steps=97)
    values = [schedule(step) for step in range(300)]
    assert all(0 <= value <= 1 for value in values)
    assert max(values) == pytest.approx(1.0, abs=1e-3)
    assert values == [create_schedule(name, steps=97)(step) for step in range(300)]  # pure


def torchs(scheduler, steps, **options):
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0, momentum=0.9)
    rule, values = scheduler(optimizer, **options), []
    for _ in range(steps):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        rule.step()
    return values


def test_cosine_is_torchs():
    ours = create_schedule("cosine", steps=50)
    theirs = torchs(torch.optim.lr_scheduler.CosineAnnealingLR, 50, T_max=50)
    assert [ours(step) for step in range(50)] == pytest.approx(theirs, abs=1e-12)


def test_one_cycle_is_torchs():
    ours = create_schedule("one_cycle", steps=60)
    rule = torch.optim.lr_scheduler.OneCycleLR
    theirs = torchs(rule, 59, max_lr=1.0, total_steps=60, pct_start=0.3)
    # torch places the peak at 0.3 * steps - 1, ours at 0.3 * (steps - 1): the same to 1 / steps.
    assert [ours(step) for step in range(59)] == pytest.approx(theirs, abs=0.1)
    assert ours(0) == pytest.approx(theirs[0]) and ours(59) == pytest.approx(4e-6)


def test_exponential_and_step_are_torchs():
    ours = create_schedule("exponential", steps=40, final=0.01)
    rule = torch.optim.lr_scheduler.ExponentialLR
    theirs = torchs(rule, 40, gamma=0.01 ** (1 / 40))
    assert [ours(step) for step in range(40)] == pytest.approx(theirs)
    ours = create_schedule("step", steps=30, drops=2, factor=0.5)
    theirs = torchs(torch.optim.lr_scheduler.StepLR, 30, step_size=10, gamma=0.5)
    assert [ours(step) for step in range(30)] == pytest.approx(theirs)


@pytest.mark.parametrize("name", ["constant", "cosine"])
def test_the_warm_up_rises_linearly_and_never_starts_at_zero(name):
    schedule = create_schedule(name, steps=100, warmup=0.1)
    assert [schedule(step) for step in range(10)] == pytest.approx(
        [(k + 1) / 10 for k in range(10)]
    )


def test_cosine_ends_at_its_final_value_and_stays_there():
    schedule = create_schedule("cosine", steps=10, warmup=0.2, final=0.25)
    assert schedule(10) == schedule(500) == pytest.approx(0.25)
    assert create_schedule("cosine", steps=1)(0) == 1.0


def test_linear_is_a_line():
    schedule = create_schedule("linear", steps=10, final=0.5)
    assert [schedule(k) for k in (0, 5, 10, 99)] == [1.0, 0.75, 0.5, 0.5]


def test_plateau_is_torchs():
    values = [5, 4, 4, 4, 4, 3.9, 3.9, 3.9, 3.9, 3.9, 3.9, 1, 1, 1, 1, 1.0]
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    rule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=2)
    ours = create_schedule("plateau", steps=10, factor=0.1, patience=2)
    for value in values:
        rule.step(value)
        ours.observe(value)
        assert ours(0) == pytest.approx(optimizer.param_groups[0]["lr"])


def test_plateau_works_for_losses_below_zero_and_continues_from_its_state():
    schedule = create_schedule("plateau", steps=10, patience=1)
    for value in (-1.0, -2.0, -2.0, -2.0):
        schedule.observe(value)
    assert schedule(0) == pytest.approx(0.1)
    other = create_schedule("plateau", steps=10, patience=1)
    fresh = create_schedule("plateau", steps=10, patience=1)
    assert not any(math.isinf(v) for v in fresh.state_dict().values())  # JSON has no infinity
    other.load_state_dict(schedule.state_dict())
    for rule in (schedule, other):
        rule.observe(-2.0)
        rule.observe(-2.0)
    assert other.state_dict() == schedule.state_dict()
    assert other(0) == pytest.approx(0.01)


def test_a_wrong_name_or_option_is_explained():
    with pytest.raises(UsageError, match="Did you mean 'cosine'"):
        create_schedule("cosin", steps=10)
    with pytest.raises(UsageError, match="warmup"):
        create_schedule("cosine", steps=10, warm=0.1)
    with pytest.raises(UsageError, match=r"warmup.*\[0, 1\], got 5"):
        create_schedule("cosine", steps=10, warmup=5)
    with pytest.raises(UsageError, match="at least 1 step"):
        create_schedule("cosine", steps=0)
