import numpy as np
import pytest
import statsmodels.api as sm
import torch

from ansatz.likelihoods import create
from ansatz.linear import fit_linear
from ansatz.linear.design import DesignRows
from ansatz.linear.overdispersion import pearson_ratio

N = 300


def poisson(alpha):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(N, 2))
    mean = np.exp(1 + 0.3 * x[:, 0])
    if alpha:
        mean = mean * rng.gamma(1 / alpha, alpha, N)
    return x, rng.poisson(mean).astype(float)


def rows_of(x, y):
    x, y = torch.tensor(x), torch.tensor(y)
    return DesignRows.of(x, y, None, None, None, ["a", "b"], y.ndim - 1)


def test_the_ratio_of_counts_is_that_of_statsmodels():
    x, y = poisson(0.5)
    result = sm.GLM(y, sm.add_constant(x), family=sm.families.Poisson()).fit(tol=1e-12)
    fit = fit_linear(create("poisson"), torch.tensor(x), torch.tensor(y))
    raw = fit.predict_raw(torch.tensor(x))
    ratio, df = pearson_ratio(fit.likelihood, raw, rows_of(x, y), fit.rank)
    assert ratio == pytest.approx(result.pearson_chi2 / result.df_resid) and df == N - 3
    assert any(f"X2 / df is {ratio:.3g}" in message for message in fit.messages)


def test_the_ratio_of_successes_is_that_of_statsmodels():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(N, 2))
    p = rng.beta(2, 3, N)
    trials = rng.integers(1, 20, N)
    y = np.column_stack([rng.binomial(trials, p), trials]).astype(float)
    table = np.column_stack([y[:, 0], y[:, 1] - y[:, 0]])
    result = sm.GLM(table, sm.add_constant(x), family=sm.families.Binomial()).fit(tol=1e-12)
    fit = fit_linear(create("binomial"), torch.tensor(x), torch.tensor(y))
    raw = fit.predict_raw(torch.tensor(x))
    ratio, _ = pearson_ratio(fit.likelihood, raw, rows_of(x, y), fit.rank)
    assert ratio == pytest.approx(result.pearson_chi2 / result.df_resid)
    assert any("beta_binomial" in message for message in fit.messages)


def test_counts_of_the_right_likelihood_have_no_note():
    x, y = poisson(0)
    fit = fit_linear(create("poisson"), torch.tensor(x), torch.tensor(y))
    assert not any("overdispersion" in message for message in fit.messages)


def test_robust_errors_are_mentioned_where_they_are_used():
    x, y = poisson(0.5)
    fit = fit_linear(create("poisson"), torch.tensor(x), torch.tensor(y), covariance="HC3")
    assert any("the HC3 standard errors allow for it" in message for message in fit.messages)
