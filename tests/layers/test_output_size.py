from itertools import product

import numpy as np
import pytest
import torch
from torch.nn.functional import conv1d, conv2d, conv_transpose1d, pad
from torch.testing import assert_close

from ansatz.layers import (
    cross_correlate,
    output_size,
    pixel_utilization,
    toeplitz_matrix,
    transposed_output_size,
)

SMALL = [
    case
    for case in product(range(1, 10), (1, 2, 3), (1, 2, 3), (0, 1, 2), (1, 2))  # x k s p d
    if case[0] + 2 * case[3] >= case[4] * (case[1] - 1) + 1
]


def test_every_small_size_is_torchs():
    for x, k, s, p, d in SMALL:
        y = conv1d(torch.zeros(1, 1, x), torch.zeros(1, 1, k), None, s, p, d)
        assert output_size(x, k, s, p, d) == y.shape[2]


def test_the_transposed_size_is_torchs_and_leads_back():
    for x, k, s, p, d in SMALL:
        length, rest = output_size(x, k, s, p, d), (x + 2 * p - d * (k - 1) - 1) % s
        assert transposed_output_size(length, k, s, p, d, rest) == x
        if rest < max(s, d) and x > 0:
            z = torch.zeros(1, 1, length)
            back = conv_transpose1d(z, torch.zeros(1, 1, k), None, s, p, rest, 1, d)
            assert back.shape[2] == x


def test_axes_may_differ():
    x, w = torch.zeros(1, 1, 9, 12), torch.zeros(1, 1, 3, 2)
    y = conv2d(x, w, None, (2, 1), (1, 0), (1, 3))
    assert output_size((9, 12), (3, 2), (2, 1), (1, 0), (1, 3)) == tuple(y.shape[2:])


def test_published_sizes():
    assert output_size(output_size(224, 11, 4, 2), 3, 2) == 27  # AlexNet
    assert output_size(output_size(224, 7, 2, 3), 3, 2, 1) == 56  # ResNet
    assert output_size(32, 5) == 28  # LeNet-5
    assert output_size(3, 3, padding=1) == 3 and output_size(3, 3) == 1  # 3 x 3 padded to 5 x 5


@pytest.mark.parametrize(
    "case, message",
    [
        (lambda: output_size(3, 5), "window of 5 does not fit into 3 cells"),
        (lambda: output_size((3, 3), (2, 2, 2)), "kernel must be a number or one per axis, 2"),
        (lambda: output_size(3, 2, 0), "stride must be at least 1, got 0"),
        (lambda: output_size(3, 2, padding=-1), "padding must be at least 0"),
        (lambda: transposed_output_size(1, 2, padding=2), "padding of 2 leaves nothing of 1"),
    ],
)
def test_impossible_sizes_are_refused(case, message):
    with pytest.raises(ValueError, match=message):
        case()


def test_the_documents_tables_of_pixel_utilisation():
    assert pixel_utilization((3, 3), 2).tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    ramp = torch.tensor([1, 2, 3, 2, 1])
    assert torch.equal(pixel_utilization((5, 5), 3), torch.outer(ramp, ramp))
    assert (pixel_utilization((5, 5), 3, padding=2) == 9).all()  # every pixel equally often


def test_utilisation_counts_the_ones_of_the_matrix():
    for x, k, s, p, d in SMALL[::7]:
        A = torch.autograd.functional.jacobian(
            lambda v, c=(k, s, p, d): conv1d(
                v.view(1, 1, -1), torch.ones(1, 1, c[0]), None, c[1], c[2], c[3]
            ).flatten(),
            torch.zeros(x),
        )
        assert torch.equal(pixel_utilization(x, k, s, p, d), A.sum(0).long())
    A = toeplitz_matrix(torch.ones(2, 3), (4, 5), "valid")
    assert_close(pixel_utilization((4, 5), (2, 3)).flatten(), A.sum(0).long())


def test_a_stride_beyond_the_kernel_leaves_pixels_unseen():
    assert pixel_utilization(7, 2, 3).tolist() == [1, 1, 0, 1, 1, 0, 0]


def test_padding_with_zeros_is_the_full_correlation():
    x, w = torch.randn(3, 3), torch.randn(3, 3)
    assert_close(cross_correlate(pad(x, (1, 1, 1, 1)), w), cross_correlate(x, w, "same"))


def test_numbers_of_numpy_are_numbers():
    found = output_size(np.int64(10), kernel=np.int32(3), stride=np.int64(2))
    assert found == 4 and type(found) is int
    assert output_size((np.int64(10), 9), kernel=3) == (8, 7)


def test_sizes_are_whole_numbers_of_numpy_too_and_nothing_else():
    assert pixel_utilization(np.int64(3), 2).tolist() == [1, 2, 1]
    assert toeplitz_matrix(torch.ones(2), np.int64(3)).shape == (4, 3)
    for call, name in (
        (lambda: output_size(7.0, 3), "size"),
        (lambda: output_size(7, 2.5), "kernel"),
        (lambda: output_size(7, 3, padding="same"), "padding"),
        (lambda: output_size((7, None), 3), "size"),
    ):
        with pytest.raises(ValueError, match=f"{name} must be a whole number, or one per axis"):
            call()
