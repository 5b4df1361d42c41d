import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.likelihoods import create
from ansatz.spec import TargetSpec

ROWS, STEPS = 5, 7


def test_probabilities_of_all_pairs_add_up_to_one():
    raw = 2 * torch.randn(1, STEPS, 2)
    pairs = torch.cartesian_prod(torch.arange(STEPS), torch.arange(STEPS))
    loss = create("span").loss(raw.expand(len(pairs), -1, -1), pairs)
    assert loss.shape == (len(pairs),) and (loss > 0).all()
    assert_close((-loss).exp().sum(), torch.ones(()))


def test_the_point_is_the_best_pair_that_is_in_order_and_short():
    for longest in (1, 3, 30):
        span, raw = create("span", longest=longest), 3 * torch.randn(ROWS, STEPS, 2)
        pairs = torch.cartesian_prod(torch.arange(STEPS), torch.arange(STEPS))
        apart = pairs[:, 1] - pairs[:, 0]
        pairs = pairs[(apart >= 0) & (apart < longest)]
        for row, found in zip(raw, span.point(raw), strict=True):
            losses = span.loss(row.expand(len(pairs), -1, -1), pairs)
            assert torch.equal(found, pairs[losses.argmin()])


def test_the_constant_gives_every_step_the_same_probability():
    span = create("span")
    assert span.outputs(TargetSpec()) == 2
    y = torch.tensor([[0, 0], [2, 6]])
    shift, scale = span.start(y, torch.ones(2))
    loss = span.loss(shift.expand(2, STEPS, 2), y)
    assert_close(loss, torch.full((2,), float(STEPS)).log() * 2)
    assert (scale > 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_raw_numbers_and_padded_steps_give_finite_losses_and_gradients(dtype):
    raw = torch.full((2, STEPS, 2), 1e4, dtype=dtype)
    raw[0] = -raw[0]
    raw[:, -3:] = -1e4  # steps that are not there
    raw.requires_grad_()
    loss = create("span").loss(raw, torch.tensor([[0, 1], [2, 3]]))
    (gradient,) = torch.autograd.grad(loss.sum(), raw)
    assert loss.isfinite().all() and gradient.isfinite().all()


@pytest.mark.parametrize("wrong", [[3, 2], [-1, 2]])
def test_check_names_the_row_and_the_value(wrong):
    with pytest.raises(DataError, match=rf"ends before it begins: \[{wrong[0]}, 2\] at y\[1\]"):
        create("span").check(torch.tensor([[1, 2], wrong]))
    create("span").check(torch.tensor([[1, 2], [2, 2]]))
