import math

import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.networks import Neocognitron
from ansatz.networks.neocognitron import CCells, SCells
from ansatz.spec import InputSpec


def edge(angle, size=15):
    """Bright to the left of a line through the middle in the direction ``angle``."""
    down, right = torch.meshgrid(*[torch.arange(size) - size // 2] * 2, indexing="ij")
    across = -math.sin(angle) * right - math.cos(angle) * down
    return torch.sigmoid(3 * across.double())[None, None]


def test_an_s_cell_answers_by_the_cosine_with_its_template():
    templates, x = torch.rand(3, 2, 5, 5), torch.rand(1, 2, 5, 5)
    for theta in (0.0, 0.5, 0.9):
        found = SCells(templates, theta)(x)[0, :, 2, 2]
        cosines = (templates * x).sum((1, 2, 3)) / templates.flatten(1).norm(dim=1) / x.norm()
        assert_close(found, x.norm() * (cosines - theta).clamp(min=0) / (1 - theta))


def test_an_s_cell_is_selective_however_bright_the_patch():
    cells, x = SCells(torch.rand(3, 2, 5, 5), 0.6), torch.rand(1, 2, 9, 9)
    assert_close(cells(7 * x), 7 * cells(x))


def test_c_cells_blur_and_keep_every_other_cell():
    x = torch.zeros(1, 1, 9, 9)
    x[0, 0, 4, 4] = 1
    y = CCells()(x)
    assert y.shape == (1, 1, 5, 5) and y.argmax() == 12
    assert_close(y, y.flip(2))
    assert_close(y, y.transpose(2, 3))


@pytest.mark.parametrize("k", range(8))
def test_the_edge_of_each_direction_is_seen_by_its_own_plane(k):
    network = Neocognitron(1, 2, stages=1)
    planes = network.features(edge(2 * math.pi * k / 8))[0, :, 3, 3]  # around the middle
    assert planes.argmax() == k
    assert planes[(k + 4) % 8] < 0.5 * planes[k]  # bright on the other side


def test_a_straight_contour_is_seen_by_a_straight_plane():
    network = Neocognitron(1, 2, stages=2)
    for k in range(8):
        planes = network.features(edge(2 * math.pi * k / 8, 31))[0, :, 4, 4]
        assert planes.argmax() == 8 + k  # bends: 0-7 to the right, 8-15 none, 16-23 to the left


def test_even_brightness_is_not_seen():
    network = Neocognitron(1, 2)
    inside = network.features(torch.full((1, 1, 64, 64), 0.7))[0, :, 4, 4]
    assert_close(inside, torch.zeros(24), atol=1e-6, rtol=0)


def test_a_shift_by_the_strides_shifts_the_answers():
    network, x = Neocognitron(1, 2), torch.zeros(1, 1, 128, 128)
    x[..., 48:64, 48:64] = torch.rand(16, 16)
    moved = network.features(x.roll((8, 16), (2, 3)))
    assert_close(moved, network.features(x).roll((1, 2), (2, 3)))


def test_the_filters_are_fixed_and_the_readout_is_trained():
    network = Neocognitron(3, 2)
    assert {name for name, _ in network.named_parameters()} == {"output.weight", "output.bias"}
    with pytest.raises(UsageError, match=r"neocognitron takes images, got a grid of 1 axis"):
        Neocognitron(InputSpec.grid(1, 40), 2)
