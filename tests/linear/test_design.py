import pytest
import torch
from torch.testing import assert_close

from ansatz.linear import Design
from ansatz.linear.design import independent_columns, triangular_factor


def test_restored_coefficients_predict_the_same():
    x = torch.randn(40, 3) * torch.tensor([1.0, 1e5, 1e-4]) + torch.tensor([0.0, 1e6, 3.0])
    weight = torch.rand(40)
    design = Design.of(x, weight, ["a", "b", "c"])
    table = torch.randn(4, 2)
    full = design.restore(table, missing=0.0)
    assert_close(torch.cat([torch.ones(40, 1), x], 1) @ full, design.matrix @ table)


def test_columns_are_standardised_by_their_weights():
    x, weight = torch.randn(40, 2) * 7 + 3, torch.randint(0, 3, (40,)).double()
    design = Design.of(x, weight, ["a", "b"])
    repeated = design.matrix.repeat_interleave(weight.long(), 0)[:, 1:]
    assert_close(repeated.mean(0), torch.zeros(2))
    assert_close(repeated.var(0, correction=0), torch.ones(2))


@pytest.mark.parametrize("rows", [5, 64, 1000])
def test_the_factor_of_blocks_is_the_factor_of_the_whole(rows):
    x = torch.randn(300, 4)
    r = triangular_factor(x, rows)
    assert_close(r.T @ r, x.T @ x)


@pytest.mark.parametrize("seed", range(10))
def test_as_many_columns_are_kept_as_the_rank(seed):
    generator = torch.Generator().manual_seed(seed)
    rank = int(torch.randint(1, 6, (), generator=generator))
    x = torch.randn(30, rank, generator=generator) @ torch.randn(rank, 9, generator=generator)
    kept, combinations = independent_columns(x, torch.zeros(9, dtype=torch.bool))
    assert len(kept) == rank == torch.linalg.matrix_rank(x[:, kept])
    assert kept.tolist() == list(range(rank))  # R drops the later ones
    for j, combination in combinations.items():
        rebuilt = sum(value * x[:, kept[i]] for i, value in combination.items())
        assert_close(rebuilt, x[:, j], rtol=1e-5, atol=1e-4)


def test_close_but_independent_columns_are_kept():
    year = torch.arange(1950.0, 2020.0)
    x = torch.stack([year, year**2], 1)
    assert Design.of(x, torch.ones(70), ["year", "year2"]).aliased == {}


def test_columns_equal_up_to_float32_rounding_are_aliased():
    a, b = torch.randn(200, dtype=torch.float32), torch.randn(200, dtype=torch.float32)
    x = torch.stack([a, b, (a + b)], 1).double()
    assert Design.of(x, torch.ones(200), ["a", "b", "sum"]).aliased == {"sum": "a + b"}


def test_a_column_far_from_0_is_no_constant():
    x = torch.stack([1e9 + torch.randn(50), torch.full((50,), 1e9)], 1)
    design = Design.of(x, torch.ones(50), ["clock", "same"])
    assert list(design.aliased) == ["same"]
    assert_close(design.matrix[:, 1].std(correction=0).item(), 1.0)
    rounded = torch.ones(50, 1) + 1e-7 * torch.rand(50, 1)  # what float32 leaves of a constant
    assert Design.of(rounded, torch.ones(50), ["share"], torch.float32).aliased
