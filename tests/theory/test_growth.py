"""Counts of labellings against enumeration."""

import itertools

import pytest

from ansatz.theory import half_space_growth, sauer_bound


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
