import pytest
import torch
from scipy.linalg import convolution_matrix
from torch.testing import assert_close

from ansatz.layers import convolve, cross_correlate, toeplitz_matrix


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
