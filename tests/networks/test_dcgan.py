"""Networks of a game on images: an example alone, patches, conditions."""

import pytest
import torch
from torch.testing import assert_close

from ansatz import networks
from ansatz.errors import UsageError

SIZES = [(13,), (12, 9), (8, 9, 10)]


@pytest.mark.parametrize("size", SIZES)
def test_an_example_does_not_depend_on_others(size):
    network = networks.create("dcgan", 5, 2, size=size, width=4)
    z = torch.randn(3, 5)
    x = network(z)
    assert x.shape == (3, 2, *size) and x.abs().max() < 1
    assert_close(network(z[1:2]), x[1:2])


@pytest.mark.parametrize("size", SIZES)
def test_a_patch_is_all_that_an_answer_sees(size):
    network = networks.create("patchgan", (2, *size), 3, width=4, depth=1)
    x = torch.randn(2, 2, *size, requires_grad=True)
    answer = network(x)
    assert answer.shape[:2] == (2, 3)
    first = (0, 0, *(0 for _ in size))
    (slope,) = torch.autograd.grad(answer[first], x)
    seen = slope[0].abs().sum(0)
    assert seen[tuple(0 for _ in size)] > 0 and not slope[1].any()
    assert not seen[tuple(-1 for _ in size)]  # 7 pixels and their padding, counted from a corner


def test_a_condition_moves_the_answer():
    z, x, given = torch.randn(2, 5), torch.randn(2, 1, 8, 8), torch.eye(2)
    draws = networks.create("dcgan", 5, 1, size=(8, 8), width=4, classes=2)
    discriminator = networks.create("patchgan", (1, 8, 8), 1, width=4, depth=1, classes=2)
    assert not torch.allclose(draws(z, given), draws(z, given.flip(0)))
    assert not torch.allclose(discriminator(x, given), discriminator(x, given.flip(0)))


def test_a_spectral_norm_bounds_the_slope():
    discriminator = networks.create("patchgan", (1, 8, 8), 1, width=4, depth=1, spectral_norm=True)
    for _ in range(50):
        discriminator(torch.randn(2, 1, 8, 8))
    weight = discriminator.layers[0].weight.detach()
    assert_close(
        torch.linalg.matrix_norm(weight.flatten(1), 2), torch.tensor(1.0), rtol=1e-3, atol=0
    )


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: networks.create("dcgan", 5, 1, size=(2, 2, 2, 2)), "one to three axes"),
        (lambda: networks.create("patchgan", 5, 1), "takes grids"),
        (lambda: networks.create("patchgan", (1, 4, 4), 1), "smaller depth"),
        (lambda: networks.create("dcgan", 5, 1, size=(8, 8))(torch.randn(2, 4)), r"\(B, 5\)"),
    ],
)
def test_what_does_not_fit_is_named(make, message):
    with pytest.raises(UsageError, match=message):
        make()
