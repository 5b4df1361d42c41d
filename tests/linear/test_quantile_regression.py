import numpy as np
import pytest
import statsmodels.api as sm
import torch

from ansatz.errors import UsageError
from ansatz.likelihoods import create
from ansatz.linear import fit_linear, quantile_regression
from ansatz.linear.quantile_fit import quantile_covariance

N = 301


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(9)
    x = rng.normal(size=(N, 2))
    return x, 1 + x @ [2.0, -1.0] + rng.standard_t(3, N) * np.exp(0.3 * x[:, 0])


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_estimates_and_errors_are_those_of_quantreg(table, level):
    x, y = table
    fit = quantile_regression(torch.tensor(x), torch.tensor(y), level)
    model = sm.QuantReg(y, sm.add_constant(x))
    expected = model.fit(q=level, p_tol=1e-10, max_iter=5000)
    # QuantReg iterates towards the solution that the linear programme has exactly.
    np.testing.assert_allclose(fit.coefficients, expected.params, atol=2e-5)
    # Its rows on the line fall to one side or the other by rounding: at its own residuals.
    design, ones = sm.add_constant(x), np.ones(N)
    covariance, _ = quantile_covariance(design, expected.resid, y, ones, level)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), expected.bse, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_errors, expected.bse, rtol=0.1)


def test_a_share_of_the_rows_lies_below(table):
    x, y = table
    fit = quantile_regression(torch.tensor(x), torch.tensor(y), 0.3)
    below = float((torch.tensor(y) < fit.predict(torch.tensor(x)) - 1e-9).double().mean())
    assert 0.3 - 3 / N <= below <= 0.3


def test_frequency_weights_repeat_rows(table):
    x, y = (torch.tensor(part) for part in table)
    times = torch.arange(N) % 3
    again = torch.arange(N).repeat_interleave(times)
    weighted = quantile_regression(x, y, 0.4, weight=times.double())
    repeated = quantile_regression(x[again], y[again], 0.4)
    torch.testing.assert_close(weighted.coefficients, repeated.coefficients)
    torch.testing.assert_close(weighted.covariance, repeated.covariance)


@pytest.mark.parametrize("name, options", [("mae", {}), ("quantiles", {"levels": [0.5]})])
def test_the_linear_median_has_the_standard_errors_of_quantreg(table, name, options):
    x, y = (torch.tensor(part) for part in table)
    fit = fit_linear(create(name, **options), x, y)
    expected = quantile_regression(x, y, 0.5)
    np.testing.assert_allclose(fit.coefficients[:, 0], expected.coefficients, atol=1e-7)
    np.testing.assert_allclose(fit.standard_errors[:, 0], expected.standard_errors, rtol=1e-5)


def test_a_level_outside_is_refused(table):
    with pytest.raises(UsageError, match="level of a quantile"):
        quantile_regression(torch.tensor(table[0]), torch.tensor(table[1]), 1.0)
