import pytest
import torch
from torch.nn.functional import interpolate
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import mirror_pad
from ansatz.networks import FCN, LinearPixels, SlidingWindow, transposed_convolution
from ansatz.spec import InputSpec


@pytest.mark.parametrize("factor", [2, 4, 8])
@pytest.mark.parametrize("mode, axes", [("linear", 1), ("bilinear", 2), ("trilinear", 3)])
def test_the_transposed_convolution_starts_as_linear_interpolation(mode, axes, factor):
    x = torch.randn(2, 3, *(4,) * axes)
    up = transposed_convolution(axes, 3, 3, factor, init="linear")
    inner = (..., *(slice(factor, -factor),) * axes)  # at the border zeros take part
    assert_close(up(x)[inner], interpolate(x, scale_factor=factor, mode=mode)[inner])


def test_a_transposed_convolution_keeps_the_mean_square():
    x = torch.randn(2, 400, 30)
    y = transposed_convolution(1, 400, 300, 2)(x)
    assert y.shape == (2, 300, 60)
    assert y.square().mean().item() == pytest.approx(1, rel=0.05)
    with pytest.raises(ValueError, match="needs an even factor or 1, got 3"):
        transposed_convolution(1, 1, 1, 3, init="linear")


def test_scores_of_several_strides_are_added():
    """M234: s_3 = A_3 h_3; s_2 = A_2 h_2 + up_2(s_3); the answer is up_4(s_2)."""
    network, x = FCN(1, 2, depth=3, width=2, skips=1).eval(), torch.randn(1, 1, 16, 24)
    h1 = network.body[0](x)
    h2 = network.body[1](h1)
    h3 = network.body[2](h2)
    s2 = network.scores[1](h2) + network.up[0](network.scores[0](h3))
    assert_close(network(x), network.up[1](s2))
    assert [up.stride[0] for up in network.up] == [2, 4]


def test_without_skips_one_interpolation_does_it_all():
    network = FCN(1, 2, depth=3, width=2, skips=0)
    assert len(network.scores) == 1 and network.up[0].stride == (8, 8)
    with pytest.raises(UsageError, match=r"skips of fcn must be a whole number in \[0, 2\], got 3"):
        FCN(1, 2, depth=3, skips=3)


def patch_by_patch(network, x):
    """The classifier on the window of every pixel of the mirrored image."""
    reach, axes = network.window // 2, x.ndim - 2
    windows = mirror_pad(x, ((reach, reach),) * axes)
    for axis in range(axes):
        windows = windows.unfold(2 + axis, network.window, 1)  # (B, C, *size, *window)
    order = (0, *range(2, 2 + axes), 1, *range(2 + axes, 2 + 2 * axes))
    patches = windows.permute(order).reshape(-1, x.shape[1], *(network.window,) * axes)
    answers = network.classify(patches)
    return answers.reshape(len(x), *x.shape[2:], -1).movedim(-1, 1)


@pytest.mark.parametrize("kernel, last, widths", [(4, 3, (3, 4)), (2, 2, (3, 4, 2)), (4, 1, (5,))])
@pytest.mark.parametrize("size", [(9,), (5, 8)], ids=str)
def test_dense_answers_are_those_of_the_classifier_patch_by_patch(kernel, last, widths, size):
    """M233: sliding the window over every pixel, computed once."""
    spec = InputSpec.grid(2, *size)
    network = SlidingWindow(spec, 3, widths=widths, kernel=kernel, last=last, hidden=6)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, 0, 0.3)
    x = torch.randn(2, 2, *size)
    assert_close(network(x), patch_by_patch(network, x))


def test_the_window_of_volumes_is_a_cube():
    network = SlidingWindow(InputSpec.grid(1, 3, 3, 3), 2, widths=(2,), hidden=2)
    x = torch.randn(1, 1, 3, 2, 3)
    assert network.window == 9
    assert_close(network(x), patch_by_patch(network, x))


def test_a_window_without_a_centre_is_refused():
    with pytest.raises(UsageError, match="would have 10 pixels and no centre"):
        SlidingWindow(1, 1, widths=(2, 2), kernel=3, last=1)
    with pytest.raises(
        UsageError, match=r"windows of 9 pixels along each axis, got \(1, 1, 8, 8\)"
    ):
        SlidingWindow(1, 1, widths=(2,)).classify(torch.zeros(1, 1, 8, 8))


def test_the_linear_model_of_pixels_is_linear_and_starts_constant():
    network, x, z = LinearPixels(2, 3), *torch.randn(2, 1, 2, 6, 7)
    assert (network(x) == 0).all()
    torch.nn.init.normal_(network.output.weight)
    assert_close(network(2 * x + z), 2 * network(x) + network(z))
    assert network.output.weight.shape == (3, 2, 5, 5)
    with pytest.raises(UsageError, match="must be odd, so that it has a centre, got 4"):
        LinearPixels(1, 1, kernel=4)


@pytest.mark.parametrize("depth, skips", [(1, 0), (2, 1), (3, 2), (5, 2)])
def test_skips_that_are_not_given_are_as_many_as_fit_up_to_two(depth, skips):
    assert len(FCN(1, 2, depth=depth, width=2).scores) == skips + 1
