import numpy as np
import pytest
import torch
from scipy import signal
from scipy.linalg import convolution_matrix
from torch import nn
from torch.nn.functional import conv2d, conv_transpose1d, conv_transpose2d, conv_transpose3d, pad
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import (
    LocallyConnected,
    convolve,
    create,
    cross_correlate,
    fft_convolve,
    mirror_pad,
    toeplitz_matrix,
)

SHAPES = {1: ((9,), (4,)), 2: ((6, 7), (3, 2)), 3: ((4, 5, 6), (3, 2, 3))}
every_shape = pytest.mark.parametrize("size, kernel", SHAPES.values(), ids=["1d", "2d", "3d"])
every_mode = pytest.mark.parametrize("mode", ["full", "same", "valid"])


@every_shape
@every_mode
def test_both_are_scipys(size, kernel, mode):
    x, w = torch.randn(size), torch.randn(kernel)
    for ours, theirs in ((convolve, signal.convolve), (cross_correlate, signal.correlate)):
        expected = theirs(x.numpy(), w.numpy(), mode, method="direct")
        assert_close(ours(x, w, mode), torch.as_tensor(expected))


@every_shape
@every_mode
def test_the_fourier_transform_gives_the_same(size, kernel, mode):
    x, w = torch.randn(size), torch.randn(kernel)
    assert_close(fft_convolve(x, w, mode), convolve(x, w, mode))


def test_around_a_ring_indices_count_modulo_n():
    x, h = torch.randn(5, 6), torch.randn(3, 2)
    expected = sum(
        h[i, j] * x.roll((i, j), (0, 1)) for i in range(3) for j in range(2)
    )  # Σ_a x(· - a) h(a)
    assert_close(fft_convolve(x, h, "circular"), expected)


def test_the_layer_is_the_sum_over_a_window_and_begins_at_the_first_pixel():
    x, w = torch.randn(5, 6), torch.randn(3, 2)
    y = torch.tensor([[(x[s : s + 3, t : t + 2] * w).sum() for t in range(5)] for s in range(3)])
    assert_close(cross_correlate(x, w), y)
    assert_close(conv2d(x[None, None], w[None, None])[0, 0], y)


def test_same_padding_gives_the_documents_numbers():
    x, w = torch.tensor([1.0, 2, -1, 1, -3]), torch.tensor([1.0, 0, -1])
    assert cross_correlate(x, w, "same").tolist() == [-2, 2, 1, 2, 1]
    assert convolve(x, w, "same").tolist() == [2, -2, -1, -2, -1]  # w is odd: signs change
    layer = nn.Conv1d(1, 1, 3, padding=1, bias=False)
    layer.weight.data = w.view(1, 1, 3)
    assert layer(x.view(1, 1, 5)).flatten().tolist() == [-2, 2, 1, 2, 1]


@every_shape
def test_a_convolution_commutes_and_is_the_correlation_with_the_flipped_kernel(size, kernel):
    x, h = torch.randn(size), torch.randn(kernel)
    assert_close(convolve(x, h), convolve(h, x))
    assert_close(convolve(x, h), cross_correlate(x, h.flip(tuple(range(h.ndim))), "full"))
    flipped = cross_correlate(h, x, "full").flip(tuple(range(h.ndim)))
    assert_close(cross_correlate(x, h, "full"), flipped)  # turned round, not equal
    assert (cross_correlate(x, h, "full") - cross_correlate(h, x, "full")).abs().max() > 0.1


def test_circular_shifts_pass_through_exactly():
    x, layer = torch.randn(1, 2, 8, 8), nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular")
    for shift in ((1, 0), (3, 5)):
        moved = x.roll(shift, (2, 3))
        assert_close(layer(moved), layer(x).roll(shift, (2, 3)))
    assert (layer(x.roll(1, 2)) - layer(x)).abs().max() > 0.1  # equivariant, not invariant


def test_a_linear_map_that_commutes_with_shifts_is_its_impulse_response():
    n, T = 7, torch.randn(7, 7)
    T = torch.stack([T.roll((-s, -s), (0, 1)) for s in range(n)]).mean(0)  # made equivariant
    impulse, x = torch.eye(n)[0], torch.randn(n)
    assert_close(fft_convolve(x, T @ impulse, "circular"), T @ x)


def test_gradients_of_a_convolution_are_correlations_and_the_printed_ones_are_wrong():
    X, W = torch.randn(6, 5, requires_grad=True), torch.randn(3, 2, requires_grad=True)
    delta = torch.randn(8, 6)
    in_x, in_w = torch.autograd.grad((delta * convolve(X, W)).sum(), (X, W))
    assert_close(in_x, cross_correlate(delta, W.detach()))
    assert_close(in_w, cross_correlate(delta, X.detach()))
    assert (in_x - convolve(delta, W.detach(), "valid")).abs().max() > 0.1  # a common slip
    assert (in_w - convolve(delta, X.detach(), "valid")).abs().max() > 0.1
    assert torch.autograd.gradcheck(convolve, (X, W)) and torch.autograd.gradcheck(
        fft_convolve, (X, W)
    )


def test_a_layer_of_channels_sums_correlations_and_has_k2_ci_co_weights():
    layer, x = nn.Conv2d(2, 3, 3), torch.randn(1, 2, 6, 5)
    for t in range(3):
        parts = [cross_correlate(x[0, s], layer.weight[t, s]) for s in range(2)]
        assert_close(layer(x)[0, t], sum(parts) + layer.bias[t])
    assert sum(p.numel() for p in layer.parameters()) == 3**2 * 2 * 3 + 3


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_kernel_of_one_is_a_linear_layer_at_each_pixel(axes):
    layer = create(f"conv{axes}d", 4, 3, 1)
    x = torch.randn(2, 4, *(5, 3, 2)[:axes])
    linear = x.movedim(1, -1) @ layer.weight.flatten(1).T + layer.bias
    assert_close(layer(x), linear.movedim(-1, 1))


@pytest.mark.parametrize("stride, padding, dilation", [(1, 0, 1), (2, 1, 1), (3, 1, 2), (2, 0, 2)])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_the_transposed_convolution_is_the_adjoint(axes, stride, padding, dilation):
    transpose = (conv_transpose1d, conv_transpose2d, conv_transpose3d)[axes - 1]
    x = torch.randn(1, 2, *(9, 8, 7)[:axes])
    layer = create(f"conv{axes}d", 2, 3, 3, stride, padding, dilation, bias=False)
    y = layer(x)
    z = torch.randn_like(y)
    rest = [(n + 2 * padding - 2 * dilation - 1) % stride for n in x.shape[2:]]
    back = transpose(z, layer.weight, None, stride, padding, rest, 1, dilation)
    assert_close((y * z).sum(), (x * back).sum())


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_an_up_convolution_of_two_doubles_the_size(axes):
    up = create(f"conv_transpose{axes}d", 4, 2, 2, 2)
    assert up(torch.randn(1, 4, *[5] * axes)).shape[2:] == (10,) * axes


def test_what_does_not_fit_is_refused_by_name():
    with pytest.raises(ValueError, match=r"kernel of shape \(3,\) does not fit into x of \(2,\)"):
        convolve(torch.zeros(2), torch.zeros(3), "valid")
    with pytest.raises(ValueError, match=r"as many axes.*\(2, 2\) and \(3,\)"):
        cross_correlate(torch.zeros(2, 2), torch.zeros(3))
    with pytest.raises(ValueError, match="fft_convolve takes any number"):
        convolve(torch.zeros(2, 2, 2, 2), torch.zeros(1, 1, 1, 1))
    with pytest.raises(ValueError, match="must be one of full, same, valid, got 'ful'"):
        convolve(torch.zeros(2), torch.zeros(2), "ful")
    with pytest.raises(ValueError, match="one of full, same, valid, circular, got 'ful'"):
        fft_convolve(torch.zeros(2), torch.zeros(2), "ful")


def test_the_middle_entry_of_an_even_kernel_lies_on_x():
    """The later one of a correlation, the earlier one of a convolution, which turns the kernel."""
    spike = torch.zeros(7)
    spike[3] = 1.0
    w = torch.arange(1.0, 5.0)
    assert cross_correlate(spike, w, "same")[3] == w[2]
    assert convolve(spike, w, "same")[3] == w[1] == fft_convolve(spike, w, "same")[3].round()


def test_integers_stay_exact_in_numpy_too():
    x, w = np.array([1, 2, -1, 1, -3]), np.array([1, 0, -1])
    ours = convolve(torch.as_tensor(x).double(), torch.as_tensor(w).double())
    assert ours.tolist() == np.convolve(x, w).tolist()


def test_an_integer_kernel_is_laid_over_real_numbers_as_by_scipy():
    x, w = torch.randn(5), torch.tensor([1, 0, -1])
    expected = torch.as_tensor(signal.convolve(x.numpy(), w.numpy()))
    assert_close(convolve(x, w), expected)
    assert_close(fft_convolve(x, w), expected)


@pytest.mark.parametrize("size", [(7,), (6, 7), (4, 6, 7)], ids=str)
def test_it_is_torchs_reflection_where_torch_allows_it(size):
    x = torch.randn(2, 3, *size)
    padding = ((3, 1), (0, 2), (2, 5))[-len(size) :]
    flat = [n for pair in reversed(padding) for n in pair]
    assert torch.equal(mirror_pad(x, padding), pad(x, flat, mode="reflect"))


def test_a_wide_border_is_reflected_again_and_again():
    x = torch.arange(4.0)
    wide = mirror_pad(x, ((13, 17),))
    assert torch.equal(wide[13:17], x)
    for place in range(-13, 20):  # even about both outermost cells
        if place + 13 < len(wide) and 0 <= 13 - place < len(wide):
            assert wide[13 + place] == wide[13 - place]
        if 0 <= 19 - place < len(wide):
            assert wide[13 + place] == wide[19 - place]


def test_a_single_cell_is_repeated_and_no_border_changes_nothing():
    x = torch.randn(2, 1, 5)
    assert torch.equal(mirror_pad(x, ((2, 1), (0, 0))), x.expand(2, 1, 5).repeat(1, 4, 1))
    assert mirror_pad(x, ((0, 0), (0, 0))) is x


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_is_scipys_convolution_matrix(k, mode):
    w = torch.randn(k)
    assert_close(toeplitz_matrix(w, 6, mode), torch.as_tensor(convolution_matrix(w, 6, mode)))


@pytest.mark.parametrize("size, kernel", [((7,), (3,)), ((4, 5), (3, 2)), ((3, 4, 3), (2, 3, 1))])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_the_product_is_the_convolution(size, kernel, mode):
    x, w = torch.randn(size), torch.randn(kernel)
    y = toeplitz_matrix(w, size, mode) @ x.flatten()
    assert_close(y, convolve(x, w, mode).flatten())
    y = toeplitz_matrix(w, size, mode, correlate=True) @ x.flatten()
    assert_close(y, cross_correlate(x, w, mode).flatten())


def test_the_documents_bands_have_n_minus_k_plus_1_and_n_plus_k_minus_1_rows():
    w = torch.tensor([1.0, 2, 3])
    assert toeplitz_matrix(w, 5, "valid", correlate=True).tolist() == [
        [1, 2, 3, 0, 0],
        [0, 1, 2, 3, 0],
        [0, 0, 1, 2, 3],
    ]
    full = toeplitz_matrix(w, 4)
    assert full.shape == (6, 4) and len(full.unique()) == 1 + 3  # 0 and the kernel


def test_a_matrix_of_an_image_is_toeplitz_in_blocks_of_toeplitz_blocks():
    T = toeplitz_matrix(torch.randn(2, 3), (3, 4)).view(4, 6, 3, 4)  # rows s t, columns i j
    for s in range(3):
        for i in range(2):
            assert_close(T[s, :, i], T[s + 1, :, i + 1])  # blocks repeat
    assert_close(T[:, :-1, :, :-1], T[:, 1:, :, 1:])  # and each repeats its diagonals


def test_the_transpose_of_a_layer_is_the_full_convolution():
    w = torch.randn(2, 3)
    layer = toeplitz_matrix(w, (5, 6), "valid", correlate=True)
    assert_close(layer.T, toeplitz_matrix(w, (4, 4), "full"))


def test_gradients_reach_the_kernel():
    w = torch.randn(2, 2, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: toeplitz_matrix(w, (3, 3), "same"), w)


def test_a_size_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="does not fit into x of"):
        toeplitz_matrix(torch.zeros(3), 2, "valid")


@pytest.mark.parametrize(("size", "kernel", "stride"), [((9,), 3, 2), ((6, 7), (3, 2), 1)])
def test_unshared_kernels_are_a_convolution_when_tied(size, kernel, stride):
    kind = {1: torch.nn.Conv1d, 2: torch.nn.Conv2d}[len(size)]
    conv = kind(2, 3, kernel, stride=stride)
    layer = LocallyConnected(2, 3, kernel, size=size, stride=stride)
    x = torch.randn(4, 2, *size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        layer.weight.copy_(conv.weight.flatten(1).T.expand_as(layer.weight))
        layer.bias.copy_(conv.bias.expand_as(layer.bias))
    torch.testing.assert_close(layer(x), conv(x))


def test_unshared_kernels_belong_to_their_places():
    layer = LocallyConnected(1, 1, 3, size=(5, 5), bias=False)
    x = torch.randn(1, 1, 5, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    layer(x)[0, 0, 2, 2].backward()
    assert (x.grad[0, 0, :2] == 0).all() and (x.grad[0, 0, 2:, 2:] != 0).all()
    touched = layer.weight.grad.abs().sum((1, 2)) > 0
    assert touched.nonzero().squeeze(1).tolist() == [8]
    with pytest.raises(UsageError, match=r"built for \(5, 5\)"):
        layer(torch.zeros(1, 1, 6, 5))
