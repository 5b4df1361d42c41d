import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.layers import (
    BedOfNails,
    GlobalPool,
    SelfGated,
    SpatialPyramidPool,
    StochasticPool1d,
    StochasticPool2d,
    StochasticPool3d,
    create,
)

STOCHASTIC = {1: StochasticPool1d, 2: StochasticPool2d, 3: StochasticPool3d}
SIZE = (6, 4, 2)
every_axes = pytest.mark.parametrize("axes", [1, 2, 3])
IMAGE = torch.tensor(
    [[3, 3, 2, 1, 0], [0, 0, 1, 3, 1], [3, 1, 2, 2, 3], [2, 0, 0, 2, 2], [2, 0, 0, 0, 1]]
)


def grid(axes, channels=2):
    return torch.randn(2, channels, *SIZE[:axes])


def blocks(x, axes, step=2):
    """(places, values) of the blocks of one channel, cut out one by one."""
    for place in itertools.product(*(range(n // step) for n in SIZE[:axes])):
        yield place, x[tuple(slice(step * i, step * i + step) for i in place)]


def test_max_pooling_gives_the_documents_numbers():
    pooled = create("max_pool2d", 3, stride=1)(IMAGE.double()[None, None])[0, 0]
    assert pooled.tolist() == [[3, 3, 3], [3, 3, 3], [3, 2, 3]]


def test_the_gradient_of_max_pooling_goes_to_the_largest():
    x = torch.tensor([[[[1.0, 4.0], [2.0, 3.0]]]], requires_grad=True)
    create("max_pool2d", 2)(x).backward()
    assert x.grad.flatten().tolist() == [0, 1, 0, 0]


@every_axes
@pytest.mark.parametrize("name, reduce", [("max", torch.amax), ("avg", torch.mean)])
def test_pooling_reduces_each_block(axes, name, reduce):
    x = grid(axes)
    pooled = create(f"{name}_pool{axes}d", 2)(x)
    for place, block in blocks(x[1, 0], axes):
        assert_close(pooled[1, 0][place], reduce(block, tuple(range(axes))))


@every_axes
def test_average_pooling_is_linear_and_max_pooling_is_not(axes):
    x, z = grid(axes), grid(axes)
    mean, largest = create(f"avg_pool{axes}d", 2), create(f"max_pool{axes}d", 2)
    assert_close(mean(2 * x - z), 2 * mean(x) - mean(z))
    assert (largest(2 * x - z) - 2 * largest(x) + largest(z)).abs().max() > 0.1


@every_axes
def test_lp_pooling_is_the_sum_at_1_and_the_maximum_at_infinity(axes):
    x = grid(axes).abs() + 0.1
    mean, largest = create(f"avg_pool{axes}d", 2), create(f"max_pool{axes}d", 2)
    assert_close(create(f"lp_pool{axes}d", 1, 2)(x), 2**axes * mean(x))
    assert_close(create(f"lp_pool{axes}d", 2, 2)(x), (2**axes * mean(x**2)).sqrt())
    # |x|_∞ <= |x|_p <= n^(1/p) |x|_∞
    ratio = create(f"lp_pool{axes}d", 200.0, 2)(x) / largest(x)
    assert (ratio >= 1 - 1e-12).all() and (ratio <= 2 ** (axes / 200) + 1e-12).all()


@every_axes
def test_global_pooling_takes_any_size(axes):
    x = grid(axes)
    assert_close(GlobalPool()(x), x.flatten(2).mean(2))
    assert_close(GlobalPool("max")(x), x.flatten(2).amax(2))
    assert_close(create(f"adaptive_avg_pool{axes}d", 1)(x).flatten(1), GlobalPool()(x))
    longer = torch.cat([x, x], 2)
    assert_close(GlobalPool()(longer), GlobalPool()(x))


@every_axes
def test_stochastic_pooling_evaluates_its_expectation(axes):
    x = grid(axes).relu()
    pooled = STOCHASTIC[axes](2).eval()(x)
    for place, block in blocks(x[1, 0], axes):
        total = block.sum()
        expected = (block * block / total).sum() if total > 0 else torch.tensor(0.0)
        assert_close(pooled[1, 0][place], expected)


def test_stochastic_pooling_draws_in_proportion_to_the_activations():
    a = torch.tensor([0.5, 0.0, 1.5, 3.0])
    x = a.view(1, 1, 2, 2).expand(20_000, 1, 2, 2)
    generator = torch.Generator().manual_seed(0)
    draws = StochasticPool2d(2, generator=generator)(x).flatten()
    for value in a:
        p = (value / a.sum()).item()
        error = 5 * (p * (1 - p) / len(draws)) ** 0.5
        assert (draws == value).double().mean().item() == pytest.approx(p, abs=error)
    spread = draws.std() / len(draws) ** 0.5
    assert (draws.mean() - StochasticPool2d(2).eval()(x[:1]).item()).abs() < 5 * spread


def test_a_window_of_zeros_gives_zero_and_finite_gradients():
    x = torch.zeros(1, 1, 2, 4, requires_grad=True)
    for pool in (StochasticPool2d(2), StochasticPool2d(2).eval()):
        y = pool(x)
        assert (y == 0).all()
        assert torch.autograd.grad(y.sum(), x)[0].isfinite().all()


def test_the_gradient_of_a_draw_goes_to_what_was_drawn():
    x = torch.rand(1, 1, 4, 4, requires_grad=True)
    y = StochasticPool2d(2)(x)
    y.sum().backward()
    assert x.grad.unique().tolist() == [0, 1] and x.grad.sum() == 4
    assert_close((x * x.grad)[0, 0].view(2, 2, 2, 2).sum((1, 3)), y[0, 0])


def test_windows_may_overlap_and_a_generator_repeats_the_draws():
    x = torch.rand(2, 3, 7, 7).float()
    first, second = (
        StochasticPool2d(3, 2, generator=torch.Generator().manual_seed(1))(x) for _ in range(2)
    )
    assert torch.equal(first, second) and first.shape == (2, 3, 3, 3)
    assert first.dtype == torch.float32


def test_negative_activations_are_refused():
    with pytest.raises(ValueError, match=r"activations >= 0, got -1. Put a ReLU"):
        StochasticPool2d(2)(-torch.ones(1, 1, 2, 2))
    with pytest.raises(ValueError, match=r"\(B, C, and 2 more\), got \(1, 2, 2\)"):
        StochasticPool2d(2)(torch.ones(1, 2, 2))


@every_axes
def test_max_unpooling_puts_back_and_pooling_again_is_the_identity(axes):
    x = grid(axes).abs()
    pool = create(f"max_pool{axes}d", 2, return_indices=True)
    pooled, places = pool(x)
    back = create(f"max_unpool{axes}d", 2)(pooled, places)
    assert_close(pool(back)[0], pooled)
    kept = back != 0
    assert_close(back[kept], x[kept])  # where the maximum was


@every_axes
def test_nails_stand_at_the_top_left_and_max_pooling_undoes_them(axes):
    x = grid(axes).abs()
    nails = BedOfNails(2)(x)
    assert nails.shape[2:] == tuple(2 * n for n in SIZE[:axes])
    every_second = (slice(None), slice(None), *[slice(None, None, 2)] * axes)
    assert torch.equal(nails[every_second], x)
    assert nails.count_nonzero() == x.count_nonzero()
    assert_close(create(f"max_pool{axes}d", 2)(nails), x)


def test_nails_are_the_adjoint_of_taking_every_second():
    x, y = torch.randn(1, 2, 3, 2), torch.randn(1, 2, 6, 6)
    assert_close((BedOfNails((2, 3))(x) * y).sum(), (x * y[:, :, ::2, ::3]).sum())


@every_axes
def test_interpolation_preserves_a_constant(axes):
    flat = torch.full((1, 2, *SIZE[:axes]), 3.7)
    smooth = ("linear", "bilinear", "trilinear")[axes - 1]
    for mode in ("nearest", smooth):
        up = create("upsample", scale_factor=2, mode=mode)(flat)
        assert_close(up, torch.full((1, 2, *(2 * n for n in SIZE[:axes])), 3.7))


def bins(x, n, reduce):
    """The cells from floor(i x / n) to before ceil((i + 1) x / n), one bin after another."""
    size = x.shape[1:]
    for place in itertools.product(range(n), repeat=len(size)):
        cut = tuple(
            slice(i * length // n, -(-(i + 1) * length // n))
            for i, length in zip(place, size, strict=True)
        )
        yield reduce(x[(slice(None), *cut)].flatten(1), 1)


@every_axes
@pytest.mark.parametrize("reduce, function", [("max", torch.amax), ("mean", torch.mean)])
def test_a_pyramid_is_its_bins_and_its_length_is_fixed(axes, reduce, function):
    pool = SpatialPyramidPool((1, 2, 3), reduce=reduce)
    for size in ((5, 4, 3), (2, 7, 4), (1, 1, 1)):
        x = torch.randn(2, 3, *size[:axes])
        y = pool(x)
        assert y.shape == (2, 3 * (1 + 2**axes + 3**axes)) == (2, pool.out_features(3, axes))
        levels = [torch.stack(list(bins(x[1], n, function)), 1).flatten() for n in (1, 2, 3)]
        assert_close(y[1], torch.cat(levels))


def test_a_self_gate_weighs_each_number_of_a_grid_by_itself():
    x, order = torch.randn(2, 3, 4, 5), torch.randperm(120)
    shuffled = x.flatten()[order].view_as(x)
    gate = SelfGated("logistic")
    assert_close(gate(x).flatten()[order], gate(shuffled).flatten())
    assert_close(gate(x), nn.SiLU()(x))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: BedOfNails(0), "factor of BedOfNails must be at least 1, got 0"),
        (lambda: BedOfNails((2, 2))(torch.zeros(1, 1, 3)), "one per axis, 1, got"),
        (lambda: StochasticPool2d(5)(torch.zeros(1, 1, 3, 3)), "window of 5 does not fit into 3"),
        (lambda: SpatialPyramidPool(()), "must name a number of bins"),
        (lambda: SpatialPyramidPool((1,), reduce="min"), "must be max or mean, got 'min'"),
        (lambda: SpatialPyramidPool()(torch.zeros(1, 3)), "1 to 3 axes, got"),
        (lambda: GlobalPool("sum"), "must be mean or max"),
        (lambda: GlobalPool()(torch.zeros(2, 3)), r"shape \(B, C, \*size\), got \(2, 3\)"),
    ],
)
def test_what_cannot_be_meant_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_factor_may_be_a_number_of_numpy():
    nails, x = BedOfNails(np.int64(2)), torch.rand(1, 1, 3, 4)
    assert_close(nails(x), BedOfNails(2)(x))
    assert str(nails) == "BedOfNails(factor=2)"
