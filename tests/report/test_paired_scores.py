"""One quantity on two scales: the slope is that of finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ansatz.report.paired_scores import find_change

FUNCTIONS = {
    "log": np.log,
    "log1p": np.log1p,
    "log10": np.log10,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "cube root": np.cbrt,
    "inverse": lambda a: 1 / a,
    "exp": np.exp,
    "expm1": np.expm1,
    "power of 10": lambda a: 10.0**a,
    "power of 2": lambda a: 2.0**a,
    "cube": lambda a: a**3,
    "square": np.square,
    "units": lambda a: 3.5 - 2.54 * a,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_function_is_found_with_its_slope(name):
    a = np.random.default_rng(0).uniform(0.2, 4.0, size=40)
    g = FUNCTIONS[name]
    change = find_change(a, g(a))
    assert change.name == name
    slope = (g(a + 1e-6) - g(a - 1e-6)) / 2e-6
    assert_allclose(np.exp(change.log_slope), np.abs(slope), rtol=1e-6)


def test_a_file_that_rounds_is_still_recognised():
    a = np.random.default_rng(1).uniform(1, 100, size=60).round(4)
    assert find_change(a, np.log(a).round(8)).name == "log"
    assert find_change(a, (a / 1000).round(7)).name == "units"


def test_other_outcomes_are_no_change_of_scale():
    a = np.random.default_rng(2).uniform(1, 2, size=40)
    b = np.log(a)
    b[7] += 0.01
    assert find_change(a, b) is None
    assert find_change(a, a[::-1]) is None
    assert find_change(np.ones(5), np.zeros(5)) is None


def test_a_square_folds_negative_numbers_and_is_none():
    a = np.linspace(-1, 1, 20)
    assert find_change(a, a**2) is None
