"""The picture shows every region, each kink once on either side, and the network's own values."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from ansatz.errors import UsageError
from ansatz.figures.style import figure, to_svg
from ansatz.networks import draw_regions, linear_regions


@pytest.fixture
def net():
    return nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2))


def test_a_unit_vanishes_on_each_line_of_its_layer(net):
    with figure() as paper:
        axes = paper.subplots()
        draw_regions(net, (-2, 2), axes, shade="none")
        layers = axes.collections
        assert [lines.get_label() for lines in layers] == ["layer 1", "layer 2"]
        for lines, until in zip(layers, (1, 3), strict=True):
            middles = torch.as_tensor(np.array(lines.get_segments()).mean(1))
            value = net[:until](middles).detach().abs().min(1).values
            assert value.max() < 1e-12


def test_each_region_has_one_tint_of_its_slope(net):
    with figure() as paper:
        axes = paper.subplots()
        regions = draw_regions(net, (-2, 2), axes, shade="slope", output=1)
        tints = axes.collections[0].get_array()
    x = torch.as_tensor(regions.centers).requires_grad_()
    (gradient,) = torch.autograd.grad(net(x)[:, 1].sum(), x)
    assert_allclose(tints, gradient.norm(dim=1))


def test_the_picture_is_drawn_for_every_shade_and_a_constant_network(net):
    for shade in ("output", "slope", "none"):
        with figure() as paper:
            found = draw_regions(net, [(-1, 1), (0, 3)], paper.subplots(), shade=shade)
            assert "<svg" in to_svg(paper)
        assert len(found) == len(linear_regions(net, [(-1, 1), (0, 3)]))
    with torch.no_grad():
        net[4].weight.zero_()
    with figure() as paper:
        assert draw_regions(net, (-1, 1), paper.subplots()).num_pieces == 1


def test_what_cannot_be_drawn_is_named(net):
    with figure() as paper:
        axes = paper.subplots()
        with pytest.raises(UsageError, match="2 inputs, got 3"):
            draw_regions(nn.Linear(3, 1), (-1, 1), axes)
        with pytest.raises(UsageError, match="in 0 to 1, got 2"):
            draw_regions(net, (-1, 1), axes, output=2)
        with pytest.raises(UsageError, match="output, slope or none"):
            draw_regions(net, (-1, 1), axes, shade="value")
