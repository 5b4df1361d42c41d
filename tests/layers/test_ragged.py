"""Reductions of ragged rows against loops over the rows."""

import itertools

import pytest
import torch
from torch.testing import assert_close

from ansatz.layers.ragged import (
    Ragged,
    places,
    segment_max,
    segment_mean,
    segment_reduce,
    segment_softmax,
    segment_sum,
    spread,
)

LENGTHS = [3, 0, 1, 5, 0]
OFFSETS = torch.tensor([0, *LENGTHS]).cumsum(0)
NAIVE = {
    "sum": lambda part: part.sum(0),
    "mean": lambda part: part.mean(0),
    "max": lambda part: part.amax(0),
}


def naive(values, offsets, reduce):
    parts = [values[a:b] for a, b in itertools.pairwise(offsets)]
    nothing = values.new_zeros(values.shape[1:])
    return torch.stack([NAIVE[reduce](part) if len(part) else nothing for part in parts])


@pytest.mark.parametrize("reduce", NAIVE)
@pytest.mark.parametrize("shape", [(), (4,), (2, 3)], ids=str)
def test_is_the_loop_over_rows_forwards_and_backwards(reduce, shape):
    values = torch.randn(sum(LENGTHS), *shape).requires_grad_()
    found, expected = segment_reduce(values, OFFSETS, reduce), naive(values, OFFSETS, reduce)
    assert_close(found, expected)
    factor = torch.randn_like(found)
    assert_close(*(torch.autograd.grad((y * factor).sum(), values) for y in (found, expected)))


@pytest.mark.parametrize("function", [segment_sum, segment_mean, segment_max, segment_softmax])
def test_gradients_of_gradients(function):
    values = torch.randn(sum(LENGTHS), 2, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: function(x, OFFSETS), values)
    assert torch.autograd.gradgradcheck(lambda x: function(x, OFFSETS).sin(), values)


def test_the_first_of_several_largest_has_the_gradient():
    values = torch.tensor([2.0, 2.0, 1.0], requires_grad=True)
    segment_max(values, torch.tensor([0, 3])).backward()
    assert values.grad.tolist() == [1, 0, 0]


def test_softmax_sums_to_one_whatever_the_size_of_the_scores():
    weight = segment_softmax(1e4 * torch.randn(9, 2), OFFSETS)
    present = torch.tensor(LENGTHS) > 0
    assert_close(segment_sum(weight, OFFSETS)[present], torch.ones(3, 2))


def test_the_same_bits_on_one_and_two_threads():
    offsets = torch.cat([torch.zeros(1).long(), torch.randint(0, 900, (200,)).cumsum(0)])
    values = torch.randn(int(offsets[-1]), 8, dtype=torch.float32, requires_grad=True)
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        total = segment_sum(values, offsets)
        found.append((total, *torch.autograd.grad(total.square().sum(), values)))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_spread_is_the_transpose_of_the_sum():
    x, y = torch.randn(sum(LENGTHS), 3), torch.randn(len(LENGTHS), 3)
    assert_close((segment_sum(x, OFFSETS) * y).sum(), (x * spread(y, OFFSETS)).sum())


def test_rows_are_taken_in_any_order():
    ragged = Ragged(torch.arange(9.0), OFFSETS)
    some = ragged.take_rows(torch.tensor([3, 0, 1, 3]))
    assert some.lengths.tolist() == [5, 3, 0, 5]
    assert some.values.tolist() == [4, 5, 6, 7, 8, 0, 1, 2, 4, 5, 6, 7, 8]
    place, offsets = places(OFFSETS, torch.tensor([3, 0, 1, 3]))
    assert torch.equal(ragged.values[place], some.values) and torch.equal(offsets, some.offsets)
    assert ragged.take_rows(slice(2, 4)).rows.tolist() == [0, 1, 1, 1, 1, 1]
    assert Ragged.of([torch.ones(2), torch.ones(0), torch.ones(1)]).offsets.tolist() == [0, 2, 2, 3]
