"""Capacity and covering numbers against whole-number arithmetic and networks."""

import itertools
import math
from decimal import Decimal, localcontext

import pytest

from ansatz.errors import UsageError
from ansatz.networks import MLP
from ansatz.theory import (
    half_space_growth,
    log2_relu_growth,
    log10_covering_deep,
    log10_covering_shallow,
    log10_equivalent_weights,
    pseudo_dimension_rate,
    relu_vc_bound,
    sauer_bound,
)


def test_the_bound_covers_what_one_affine_map_can_do():
    for d in (1, 2, 5):
        assert relu_vc_bound((d, 1)) >= d + 1
        growth = half_space_growth(50, d)
        assert math.log2(growth) <= log2_relu_growth(50, [1], [d + 1])


def test_two_to_the_n_exceeds_the_growth_just_beyond_the_bound():
    widths = (3, 8, 1)
    v = relu_vc_bound(widths)
    units, parameters = widths[1:], [4 * 8, 4 * 8 + 9]
    assert log2_relu_growth(v, units, parameters) >= v
    assert log2_relu_growth(v + 1, units, parameters) < v + 1


def test_depth_costs_capacity_in_proportion():
    assert pseudo_dimension_rate(6, 1000) == pytest.approx(2 * pseudo_dimension_rate(3, 1000))


def test_the_factorial_of_128_has_216_digits():
    assert log10_equivalent_weights([128]) == pytest.approx(math.log10(math.factorial(128)))
    assert len(str(math.factorial(128))) == 216


def test_the_shallow_number_is_its_formula_in_exact_arithmetic():
    with localcontext() as context:
        context.prec, context.Emax = 60, 10**9
        levels = 16 * Decimal(2) ** 2 * (3 + 1) * Decimal(5).sqrt() * 7 / Decimal("0.25")
        exact = levels ** (5 * 7 + 2 * 7 + 1) * Decimal("1.5") ** (5 * 7 + 7) / math.factorial(7)
        truth = float(exact.log10())
    found = log10_covering_shallow(
        5, 7, radius=0.25, weight_bound=2.0, input_bound=3.0, lipschitz=1.5
    )
    assert found == pytest.approx(truth, rel=1e-13)


@pytest.mark.parametrize("widths", [(3, 4), (2, 16, 16), (5, 4, 3, 2)])
def test_the_exponent_is_the_number_of_parameters(widths):
    network = MLP(widths[0], 1, widths=widths[1:])
    size = sum(p.numel() for p in network.parameters())
    tenth = log10_covering_deep(widths, radius=0.01) - log10_covering_deep(widths, radius=0.1)
    assert tenth == pytest.approx(size)


def test_a_steep_activation_counts_once_per_layer_for_every_weight():
    widths, steep = (3, 4, 5), 7.0
    flat = log10_covering_deep(widths, radius=0.1)
    size = sum(p.numel() for p in MLP(3, 1, widths=(4, 5)).parameters())
    found = log10_covering_deep(widths, radius=0.1, lipschitz=steep) - flat
    assert found == pytest.approx(size * 2 * math.log10(steep))
    assert log10_covering_deep(widths, radius=0.1, lipschitz=0.5) == flat


def test_the_discount_is_the_factorials():
    with_, without = (
        log10_covering_deep((2, 5, 6), radius=0.1, discount=flag) for flag in (True, False)
    )
    assert 10 ** (without - with_) == pytest.approx(120 * 720)


def test_impossible_arguments_are_named():
    with pytest.raises(UsageError, match="one output"):
        relu_vc_bound((2, 3))
    with pytest.raises(UsageError, match="same layers, got 2 and 1"):
        log2_relu_growth(5, [2, 1], [3])
    with pytest.raises(UsageError, match="inputs and hidden units"):
        log10_covering_deep((3,), radius=0.1)
    with pytest.raises(UsageError, match="radius > 0"):
        log10_covering_shallow(2, 3, radius=0.0)
    with pytest.raises(UsageError, match="at least 1"):
        log10_covering_shallow(0, 3, radius=1.0)
    with pytest.raises(UsageError, match=">= 1, got 0"):
        pseudo_dimension_rate(0, 3)


def test_half_lines_label_sorted_points_in_two_n_ways():
    """On the line a threshold cuts n points in n + 1 places, from either side."""
    for n in range(1, 8):
        labels = {tuple(i < cut for i in range(n)) for cut in range(n + 1)}
        labels |= {tuple(not label for label in each) for each in labels}
        assert half_space_growth(n, 1) == len(labels)


@pytest.mark.parametrize("d", [0, 1, 2, 5])
def test_everything_is_possible_up_to_d_plus_one_points_and_not_beyond(d):
    assert half_space_growth(d + 1, d) == 2 ** (d + 1)
    assert half_space_growth(d + 2, d) == 2 ** (d + 2) - 2  # Radon's partition and its mirror


def test_intervals_attain_sauers_bound():
    for n in range(8):
        cuts = itertools.combinations_with_replacement(range(n + 1), 2)
        labels = {tuple(a <= i < b for i in range(n)) for a, b in cuts}
        assert sauer_bound(n, 2) == len(labels)


def test_sauers_bound_covers_half_spaces():
    assert all(
        half_space_growth(n, d) <= sauer_bound(n, d + 1) for n in range(1, 20) for d in range(5)
    )


def test_a_count_is_a_whole_number():
    with pytest.raises(ValueError, match=r"n must be a whole number >= 0, got 2\.5"):
        sauer_bound(2.5, 1)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        half_space_growth(0, 2)
