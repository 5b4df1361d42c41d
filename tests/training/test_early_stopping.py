"""When a training stops by the losses of its evaluations."""

import math

import pytest
import torch

from ansatz.errors import UsageError
from ansatz.inference.member_step import MemberStopping
from ansatz.training.early_stopping import EarlyStopping


def stops_at(losses, *rule):
    """The number of evaluations after which a rule stops; None for never."""
    stopping = EarlyStopping(*rule)
    for number, loss in enumerate(losses, 1):
        stopping.observe(loss)
        if stopping.exhausted:
            return number
    return None


SLOW = [1 - 1e-5 * t for t in range(100)]


def test_any_new_lowest_loss_is_progress_where_no_improvement_is_asked_for():
    assert stops_at(SLOW, 5) is None
    assert stops_at([2, 1, 1, 1.5, 1, 1], 3) == 5


def test_progress_that_is_too_small_does_not_count_but_its_weights_do():
    assert stops_at([3, 1, *SLOW], 5, 1e-3) == 2 + 5
    stopping = EarlyStopping(5, 1e-3)
    stopping.observe(3.0)
    assert [stopping.observe(loss) for loss in SLOW[:5]] == [True] * 5  # still new lowest losses


def test_small_gains_add_up_to_progress():
    assert stops_at([3 - 4e-4 * t for t in range(100)], 5, 1e-3) is None


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1.0])
def test_the_rule_does_not_depend_on_the_unit_of_a_small_loss(unit):
    losses = [unit * (0.2 + 0.5**t) for t in range(60)]
    assert stops_at(losses, 5, 1e-2) == stops_at([0.2 + 0.5**t for t in range(60)], 5, 1e-2)


def test_a_loss_near_the_least_one_stops_after_a_tenth_of_the_patience():
    near = [1.0, 5e-4, 4e-4, 3e-4, 2e-4, 1e-4, 5e-5]
    assert stops_at(near, 30, 1e-3, 0.0) == 4
    assert stops_at(near, 30, 1e-3) is None  # densities have no least loss
    assert stops_at([1.0, 5e-4, 4e-4, 0.1, 4e-4, 3e-4], 30, 1e-3, 0.0) is None  # three in a row


def test_members_stop_as_networks_of_their_own():
    torch.manual_seed(0)
    losses = torch.rand(40, 3, dtype=torch.float64).cumprod(0) * torch.tensor([1.0, 1e-2, 3.0])
    losses[:, 2] += 1.0
    rule = (4, 1e-2, 0.0)
    together = MemberStopping([torch.zeros(3, 1)], *rule)
    ends = torch.full((3,), -1)
    for number, row in enumerate(losses, 1):
        together.evaluate(row)
        ends = torch.where((ends < 0) & together.finished, number, ends)
    assert ends.tolist() == [stops_at(column.tolist(), *rule) for column in losses.T]


@pytest.mark.parametrize("cut", [0, 1, 4])
def test_a_rule_goes_on_from_its_state(cut):
    losses = [1.0, 0.5, 0.4999, 0.4998, 5e-4, 0.4, 5e-4, 5e-4, 5e-4]
    whole, first, second = (EarlyStopping(6, 1e-3, 0.0) for _ in range(3))
    for loss in losses[:cut]:
        first.observe(loss)
    second.load_state_dict(first.state_dict())
    for loss in losses:
        whole.observe(loss)
    for loss in losses[cut:]:
        second.observe(loss)
    assert vars(second) == vars(whole) and whole.exhausted


def test_a_run_of_before_can_be_resumed():
    stopping = EarlyStopping(3)
    stopping.load_state_dict({"best": 0.5, "waited": 2})
    assert (stopping.first, stopping.progress, stopping.waited) == (0.5, 0.5, 2)
    stopping.load_state_dict({"best": None, "waited": 0})
    assert stopping.progress == math.inf


@pytest.mark.parametrize("rule", [(0,), (3, -1.0), (3, math.inf)])
def test_settings_out_of_range_are_refused(rule):
    with pytest.raises(UsageError, match=r"patience|min_improvement"):
        EarlyStopping(*rule)
