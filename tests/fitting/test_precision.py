import numpy as np
import pytest
import torch

from ansatz import Regressor
from ansatz.fitting.recipe import needs_double


@pytest.mark.parametrize(
    ("shift", "scale"), [(1e9, 1.0), (-1e6, 1e-3), (0.0, 1e30), (0.0, 1e-30), (1e18, 0.0)]
)
def test_outcomes_that_float32_cannot_tell_apart_need_double(shift, scale):
    assert needs_double(shift + scale * torch.randn(50))


@pytest.mark.parametrize(
    ("shift", "scale"), [(0.0, 1.0), (2000.0, 10.0), (0.0, 1e9), (0.0, 1e-9), (3.0, 0.0)]
)
def test_ordinary_outcomes_do_not(shift, scale):
    assert not needs_double(shift + scale * torch.randn(50))


def test_one_of_several_targets_is_enough_and_classes_never_need_it():
    y = torch.randn(50, 2)
    assert needs_double(y + torch.tensor([0.0, 1e9])) and not needs_double(y)
    assert not needs_double(torch.arange(50))


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_a_network_predicts_outcomes_that_are_far_from_zero_or_far_from_one(scale):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(120, 1))
    y = scale * (x[:, 0] + 0.1 * generator.normal(size=120) + (1e9 if scale == 1 else 0))
    model = Regressor(widths=(16,), epochs=60).fit(x, y)
    assert model.score(x, y) > 0.9
    assert model.recipe_.dtype == "float64"


def test_a_stream_keeps_the_arithmetic_it_began_with():
    x = np.random.default_rng(0).normal(size=(64, 1))
    model = Regressor(widths=(8,)).partial_fit(x, x[:, 0] + 1e9)
    model.partial_fit(x, x[:, 0])
    assert model.recipe_.dtype == "float64"
