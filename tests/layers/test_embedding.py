"""Periodic and piecewise linear embeddings, and the per-feature maps behind them."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import DataError, UsageError
from ansatz.layers import (
    CategoryEmbedding,
    FeatureLinear,
    PeriodicEmbedding,
    PiecewiseLinearEmbedding,
)


def test_an_embedding_is_a_linear_map_of_one_hot_codes():
    layer, codes = CategoryEmbedding([3, 5], dim=4), torch.tensor([[1, 0], [3, 5], [0, 2]])
    hot = [torch.nn.functional.one_hot(codes[:, c], n + 1).double() for c, n in [(0, 3), (1, 5)]]
    parts = [h @ t.weight for h, t in zip(hot, layer.tables, strict=True)]
    assert_close(layer(codes), torch.cat(parts, 1))


def test_the_unknown_level_starts_without_information():
    layer = CategoryEmbedding([3, 5])
    assert not layer(torch.zeros(2, 2, dtype=torch.long)).any()
    assert layer(torch.ones(2, 2, dtype=torch.long)).all()


def test_a_level_starts_with_norm_one_in_the_mean():
    square = (CategoryEmbedding([4000], dim=8).tables[0].weight[1:] ** 2).sum(1)
    # |v|^2 is chi2_8 / 8, of variance 1/4.
    assert square.mean().item() == pytest.approx(1, abs=5 * (0.25 / 4000) ** 0.5)


def test_only_the_levels_seen_get_a_gradient():
    layer = CategoryEmbedding([3], dim=2)
    layer(torch.tensor([[2], [2]])).sum().backward()
    assert layer.tables[0].weight.grad.tolist() == [[0, 0], [0, 0], [2, 2], [0, 0]]


@pytest.mark.parametrize("code", [-1, 4])
def test_a_code_out_of_range_is_named(code):
    layer, codes = CategoryEmbedding([9, 3]), torch.tensor([[1, 1], [1, code]])
    with pytest.raises(DataError, match=rf"column 1 must be in 0..3, got {code} in row 1"):
        layer(codes)


def test_bad_shapes_and_sizes_are_named():
    with pytest.raises(ValueError, match=r"shape \(B, 2\), got \(5, 3\)"):
        CategoryEmbedding([3, 3])(torch.zeros(5, 3, dtype=torch.long))
    for n in (-1, 2.5, float("nan"), True, 2**40):
        with pytest.raises(UsageError, match="cardinality of a column must be a whole number"):
            CategoryEmbedding([n])


def test_a_feature_linear_is_one_linear_map_per_feature():
    layer, x = FeatureLinear(3, 4, 5), torch.randn(7, 3, 4)
    for j in range(3):
        assert_close(layer(x)[:, j], x[:, j] @ layer.weight[j] + layer.bias[j])


def test_a_periodic_embedding_is_the_formula():
    layer, x = PeriodicEmbedding(2, dim=3, frequencies=4, scale=0.7), torch.randn(5, 2)
    for j in range(2):
        angle = 2 * math.pi * torch.outer(x[:, j], layer.frequencies[j])
        waves = torch.cat([angle.sin(), angle.cos()], 1)
        expected = (waves @ layer.linear.weight[j] + layer.linear.bias[j]).relu()
        assert_close(layer(x)[:, 3 * j : 3 * j + 3], expected)


def test_a_periodic_embedding_repeats_after_the_period_of_one_frequency():
    layer, x = PeriodicEmbedding(1, frequencies=1), torch.randn(5, 1)
    assert_close(layer(x + 1 / layer.frequencies.item()), layer(x))


def naive_code(x, edges):
    """Eq. 1 of Gorishniy et al., case by case, for one number."""
    T = len(edges) - 1
    code = []
    for t in range(1, T + 1):
        low, high = edges[t - 1], edges[t]
        if x < low and t > 1:
            code.append(0.0)
        elif x >= high and t < T:
            code.append(1.0)
        else:
            code.append((x - low) / (high - low))
    return code


def test_a_piecewise_linear_code_is_the_papers_equation():
    edges = [[-1.0, 0.5, 0.7, 2.0], [0.0, 1.0]]
    layer = PiecewiseLinearEmbedding(2, bins=3, edges=[torch.tensor(e) for e in edges])
    x = torch.randn(50, 2) * 2
    code = layer.encode(x)
    for i in range(50):
        assert_close(code[i, 0], torch.tensor(naive_code(x[i, 0].item(), edges[0])))
        padded = [*naive_code(x[i, 1].item(), edges[1]), 0.0, 0.0]
        assert_close(code[i, 1], torch.tensor(padded))


def test_the_code_with_steps_as_weights_rebuilds_x_so_nothing_is_lost():
    layer, x = PiecewiseLinearEmbedding(1, bins=4), 4 * torch.randn(20, 1)
    step = layer.edges.diff()[0]
    assert_close(layer.encode(x)[:, 0] @ step + layer.edges[0, 0], x[:, 0])


def test_observed_edges_are_quantiles_and_repeated_ones_are_dropped():
    x = torch.stack([torch.arange(101.0), (torch.arange(101) % 2).double(), torch.ones(101)], 1)
    layer = PiecewiseLinearEmbedding(3, bins=10)
    layer.observe(x)
    assert_close(layer.edges[0], torch.as_tensor(np.quantile(x[:, 0], np.linspace(0, 1, 11))))
    assert layer.encode(x)[:, 1].tolist() == [[i % 2.0] + [0.0] * 9 for i in range(101)]
    assert not layer.encode(x)[:, 2].any()  # a constant column says nothing
    y = layer(torch.tensor([[1e6, -1e6, 5.0]]))
    assert y.isfinite().all()


def test_edges_travel_with_the_state_dict():
    a, b = PiecewiseLinearEmbedding(2), PiecewiseLinearEmbedding(2)
    a.observe(torch.randn(100, 2) ** 3)
    b.load_state_dict(a.state_dict())
    x = torch.randn(5, 2)
    assert torch.equal(a(x), b(x))


@pytest.mark.parametrize("layer", [PeriodicEmbedding, PiecewiseLinearEmbedding])
def test_gradients_are_right_and_weights_come_from_the_generator(layer):
    state = torch.get_rng_state()
    a, b = (layer(3, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.autograd.gradcheck(a, torch.rand(2, 3, requires_grad=True))


def test_bad_options_are_named():
    for value in (0, -1, 2.5, float("nan"), 2**31):
        with pytest.raises(UsageError, match="dim of PeriodicEmbedding must be a whole number"):
            PeriodicEmbedding(2, dim=value)
        with pytest.raises(UsageError, match="bins of PiecewiseLinearEmbedding"):
            PiecewiseLinearEmbedding(2, bins=value)
    with pytest.raises(UsageError, match="scale of PeriodicEmbedding must be a positive number"):
        PeriodicEmbedding(2, scale=0.0)
    with pytest.raises(ValueError, match="needed for 2 columns, got 1"):
        PiecewiseLinearEmbedding(2, edges=[torch.tensor([0.0, 1.0])])
    with pytest.raises(ValueError, match="1 to 2 finite numbers"):
        PiecewiseLinearEmbedding(1, bins=1, edges=[torch.tensor([0.0, 1.0, 2.0])])
    with pytest.raises(ValueError, match=r"shape \(N, 2\)"):
        PiecewiseLinearEmbedding(2).observe(torch.zeros(4, 3))
