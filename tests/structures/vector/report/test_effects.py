"""Accumulated local effects of functions whose effects are known."""

import numpy as np
import pytest

from ansatz.structures.vector.report.effects import accumulate, accumulate_levels, bin_edges


def curve(f, X, j, bins=40):
    """The effect of column j of f on the rows X."""

    def predict(rows, values):
        moved = X[rows].copy()
        moved[:, j] = values
        return f(moved)[:, None]

    return accumulate(predict, X[:, j], bin_edges(X[:, j], bins))


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(4_000, 2))


def test_of_an_additive_function_is_its_centred_part(X):
    found = curve(lambda x: np.sin(x[:, 0]) + 5 * x[:, 1] ** 2, X, 0)
    truth = np.sin(found.at)
    # Centring is over rows by the middle of each bin: exact up to the width of the bins.
    np.testing.assert_allclose(np.diff(found.effect[:, 0]), np.diff(truth), atol=1e-12)
    assert found.effect[:, 0].mean() == pytest.approx(
        (truth - np.sin(X[:, 0]).mean()).mean(), abs=0.02
    )


def test_of_a_linear_function_is_its_slope_whatever_goes_together(X):
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    found = curve(lambda x: 3 * x[:, 0] - 7 * x[:, 1], X, 0)
    np.testing.assert_allclose(np.diff(found.effect[:, 0]) / np.diff(found.at), 3)


def test_of_a_product_of_equal_columns_is_half_the_square_not_partial_dependence(X):
    """g'(z) = E[x2 | x1 = z] = z, so g = z^2 / 2; partial dependence would be z E[x2] = 0."""
    X[:, 1] = X[:, 0]
    found = curve(lambda x: x[:, 0] * x[:, 1], X, 0, bins=100)
    inner = np.abs(found.at) < 2
    truth = found.at[inner] ** 2 / 2
    gap = found.effect[inner, 0] - truth
    assert np.ptp(gap) < 0.05
    assert gap.mean() == pytest.approx(-0.5, abs=0.05)  # centred by E[x^2 / 2]


def test_of_a_column_that_is_not_used_is_zero(X):
    assert np.abs(curve(lambda x: x[:, 0] ** 3, X, 1).effect).max() == 0


def test_missing_values_take_no_part(X):
    found = curve(lambda x: 2 * x[:, 0], X, 0)
    X[::3, 0] = np.nan
    again = curve(lambda x: 2 * x[:, 0], X, 0)
    assert np.isfinite(again.effect).all()
    np.testing.assert_allclose(np.diff(again.effect[:, 0]) / np.diff(again.at), 2)
    assert len(found.at) >= len(again.at)


def test_levels_have_their_differences_in_any_order():
    worth = np.array([[1.0, 0.0], [4.0, 2.0], [-2.0, 1.0]])
    codes = np.random.default_rng(0).integers(0, 3, 300)
    mean = worth[codes].mean(axis=0)
    for order in ([0, 1, 2], [2, 0, 1]):
        found = accumulate_levels(lambda rows, level: worth[level], codes, order)
        np.testing.assert_allclose(found.effect, worth[order] - mean, atol=1e-12)
