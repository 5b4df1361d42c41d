import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import DataError, UsageError
from ansatz.layers import CategoryEmbedding


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
