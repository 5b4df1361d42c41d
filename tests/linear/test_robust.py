import numpy as np
import pytest
import statsmodels.api as sm
import torch
from torch.testing import assert_close

from ansatz import Regressor
from ansatz.errors import DataError, UsageError
from ansatz.likelihoods import create, survival_outcome
from ansatz.linear import fit_linear

N = 160
MODELS = {"normal": sm.OLS, "bernoulli": sm.Logit, "poisson": sm.Poisson}


@pytest.fixture(scope="module")
def table():
    """Columns, groups and outcomes whose groups have effects of their own."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(N, 2))
    group = rng.integers(0, 16, N)
    eta = 0.3 + x @ [0.5, -0.2] + 0.5 * rng.normal(size=16)[group]
    outcomes = {
        "normal": eta + rng.normal(size=N) * np.exp(0.4 * x[:, 0]),
        "bernoulli": (rng.random(N) < 1 / (1 + np.exp(-eta))).astype(float),
        "poisson": rng.poisson(np.exp(eta)).astype(float),
        "negative_binomial": rng.negative_binomial(2, 2 / (2 + np.exp(eta))).astype(float),
    }
    return x, group, outcomes


def fitted(table, name, kind, **options):
    x, group, outcomes = table
    made = create(name, **({} if name in ("bernoulli", "poisson") else {"dispersion": "constant"}))
    arguments = {"groups": torch.tensor(group), "covariance": kind, **options}
    return fit_linear(made, torch.tensor(x), torch.tensor(outcomes[name]), **arguments)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["HC0", "cluster"])
def test_standard_errors_are_those_of_statsmodels(table, name, kind):
    x, group, outcomes = table
    options = {} if name == "normal" else {"disp": 0, "tol": 1e-12}
    if kind == "cluster":
        options["cov_kwds"] = {"groups": group}
    expected = MODELS[name](outcomes[name], sm.add_constant(x)).fit(cov_type=kind, **options)
    found = fitted(table, name, kind).standard_errors[:, 0]
    assert_close(found, torch.tensor(expected.bse), rtol=1e-6, atol=0)


@pytest.mark.parametrize("kind", ["HC1", "HC2", "HC3"])
def test_small_sample_forms_of_ols_are_those_of_statsmodels(table, kind):
    x, _, outcomes = table
    expected = sm.OLS(outcomes["normal"], sm.add_constant(x)).fit(cov_type=kind)
    fit = fitted(table, "normal", kind)
    assert_close(fit.standard_errors[:, 0], torch.tensor(expected.bse), rtol=1e-6, atol=0)


@pytest.mark.parametrize("kind", ["HC1", "HC2", "HC3"])
def test_small_sample_forms_of_a_logit_are_those_of_the_hat_matrix(table, kind):
    """What R's sandwich::vcovHC computes from the hat values of a glm."""
    x, _, outcomes = table
    X, y = sm.add_constant(x), outcomes["bernoulli"]
    p = sm.Logit(y, X).fit(disp=0, tol=1e-12).predict()
    inverse = np.linalg.inv(X.T @ (X * (p * (1 - p))[:, None]))
    hat = p * (1 - p) * ((X @ inverse) * X).sum(1)
    factor = {"HC1": N / (N - 3), "HC2": 1 / (1 - hat), "HC3": 1 / (1 - hat) ** 2}[kind]
    meat = X.T @ (X * ((y - p) ** 2 * factor)[:, None])
    expected = np.sqrt(np.diag(inverse @ meat @ inverse))
    found = fitted(table, "bernoulli", kind).standard_errors[:, 0]
    assert_close(found, torch.tensor(expected), rtol=1e-6, atol=0)


def test_hc3_of_any_likelihood_is_the_one_step_jackknife(table):
    """Leaves each row out and takes one Newton step, by derivatives of the log density."""
    x, _, outcomes = table
    fit = fitted(table, "negative_binomial", "HC3")
    y = torch.tensor(outcomes["negative_binomial"])
    X = torch.cat([torch.ones(N, 1), torch.tensor(x)], 1)
    alpha = torch.tensor(next(iter(fit.scales.values())))

    def losses(theta):
        mu, r = (X @ theta[:3]).exp(), 1 / theta[3]
        terms = torch.lgamma(y + r) - torch.lgamma(r) - torch.lgamma(y + 1)
        return -(terms + r * torch.log(r / (r + mu)) + y * torch.log(mu / (r + mu)))

    theta = torch.cat([fit.coefficients[:, 0], alpha.reshape(1)])
    gradients = torch.autograd.functional.jacobian(losses, theta)  # (N, 4)
    hessians = torch.stack(
        [torch.autograd.functional.hessian(lambda t, i=i: losses(t)[i], theta) for i in range(N)]
    )
    left = hessians.sum(0) - hessians
    change = torch.linalg.solve(left, gradients.unsqueeze(2)).squeeze(2)
    # Ours steps in log alpha: where the gradient is not 0 the two steps differ in second order.
    expected = (change.T @ change).diagonal().sqrt()[:3]
    assert_close(fit.standard_errors[:, 0], expected, rtol=0.01, atol=0)


def test_frequency_weights_repeat_rows(table):
    x, group, outcomes = table
    times = torch.arange(N) % 3
    again = times.repeat_interleave(times) * 0 + torch.arange(N).repeat_interleave(times)
    y = torch.tensor(outcomes["poisson"])
    for kind in ("HC0", "HC1", "HC3", "cluster"):
        weighted = fitted(table, "poisson", kind, weight=times.double())
        repeated = fit_linear(
            create("poisson"),
            torch.tensor(x)[again],
            y[again],
            groups=torch.tensor(group)[again],
            covariance=kind,
        )
        assert_close(weighted.covariance, repeated.covariance, rtol=1e-9, atol=1e-12)


def test_groups_of_one_row_are_hc0_up_to_the_small_sample_factor(table):
    alone = fitted(table, "poisson", "cluster", groups=torch.arange(N))
    factor = N / (N - 1) * (N - 1) / (N - 3)
    assert_close(alone.covariance, factor * fitted(table, "poisson", "HC0").covariance)


def test_clustered_cox_sums_score_residuals(table):
    """Each row twice, in a group of its own: the sandwich of the rows themselves."""
    x, _, outcomes = table
    time = torch.tensor(outcomes["poisson"]) + 1 + 0.01 * torch.arange(N)
    y = survival_outcome(time, torch.ones(N))
    once = fit_linear(create("cox"), torch.tensor(x), y, covariance="HC0")
    groups = torch.arange(N)
    assert_close(
        fit_linear(create("cox"), torch.tensor(x), y, groups=groups).covariance, once.covariance
    )
    with pytest.raises(UsageError, match="cox has no HC3 standard errors"):
        fit_linear(create("cox"), torch.tensor(x), y, covariance="HC3")


def test_clusters_use_t_with_the_number_of_groups(table):
    fit = fitted(table, "poisson", None)
    assert fit.covariance_kind == "cluster" and fit.df_statistics == 15 and fit.uses_t
    assert any("clustered by 16 groups" in message for message in fit.messages)
    ignored = fitted(table, "poisson", "model")
    assert any("take them as independent" in message for message in ignored.messages)


def test_an_estimator_clusters_by_its_groups(table):
    x, group, outcomes = table
    model = Regressor("normal", network="linear").fit(x, outcomes["normal"], groups=group)
    expected = sm.OLS(outcomes["normal"], sm.add_constant(x)).fit(
        cov_type="cluster", cov_kwds={"groups": group}
    )
    errors = torch.tensor(expected.bse)
    assert_close(model.linear_.standard_errors[:, 0], errors, rtol=1e-6, atol=0)
    assert "clustered standard errors" in str(model.summary())


def test_what_cannot_be_clustered_is_refused(table):
    x, _, outcomes = table
    with pytest.raises(UsageError, match="need groups"):
        Regressor("normal", network="linear", errors="cluster").fit(x, outcomes["normal"])
    with pytest.raises(DataError, match="at least 2 groups"):
        fitted(table, "normal", "cluster", groups=torch.zeros(N))
    with pytest.raises(UsageError, match="errors must be one of classical"):
        Regressor("normal", network="linear", errors="hc3").fit(x, outcomes["normal"])
    with pytest.raises(UsageError, match="network='linear'"):
        Regressor("normal", errors="HC3").fit(x, outcomes["normal"])
