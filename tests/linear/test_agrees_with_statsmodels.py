"""The linear model is the GLM of statsmodels, number by number."""

import warnings

import numpy as np
import pytest
import statsmodels.api as sm
import torch

from ansatz.likelihoods import create
from ansatz.linear import fit_linear, leverage

N = 200
FAMILIES = {
    "normal": sm.families.Gaussian(),
    "bernoulli": sm.families.Binomial(),
    "poisson": sm.families.Poisson(),
    "gamma": sm.families.Gamma(sm.families.links.Log()),
}
every_family = pytest.mark.parametrize("name", FAMILIES)


def likelihood(name):
    return create(name, dispersion="constant") if name in ("normal", "gamma") else create(name)


@pytest.fixture
def table():
    """Columns of very different units, a three-level factor in treatment coding, outcomes."""
    units = torch.tensor([1.0, 1e3, 1e-2])
    x = torch.randn(N, 3) * units + torch.tensor([0.0, 5e3, 7.0])
    level = torch.randint(0, 3, (N,))
    x = torch.cat([x, torch.nn.functional.one_hot(level, 3)[:, 1:].double()], 1)
    eta = 0.5 * x[:, 0] + 3e-4 * (x[:, 1] - 5e3) + 0.4 * x[:, 3] - 0.2
    y = {
        "normal": 40 + 10 * eta + torch.randn(N),
        "bernoulli": (torch.rand(N) < eta.sigmoid()).double(),
        "poisson": torch.poisson(eta.exp()),
        "gamma": eta.exp() * torch.distributions.Gamma(3.0, 3.0).sample((N,)),
    }
    return x, y


OPTIONS = {  # ours -> statsmodels'
    "plain": (),
    "weight": ("freq_weights",),
    "precision": ("var_weights",),
    "offset": ("offset",),
    "all": ("freq_weights", "var_weights", "offset"),
}
OURS = {"freq_weights": "weight", "var_weights": "precision", "offset": "offset"}


def both(name, x, y, options):
    values = {
        "freq_weights": torch.randint(1, 4, (N,)).double(),
        "var_weights": 0.5 + torch.rand(N),
        "offset": 0.3 * torch.randn(N),
    }
    ours = fit_linear(likelihood(name), x, y, **{OURS[o]: values[o] for o in options})
    design = sm.add_constant(x.numpy())
    theirs = {o: values[o].numpy() for o in options}
    with warnings.catch_warnings():  # statsmodels warns of weights with its Binomial
        warnings.simplefilter("ignore")
        result = sm.GLM(y.numpy(), design, family=FAMILIES[name], **theirs)
        return ours, result.fit(tol=1e-14, maxiter=300)


@every_family
@pytest.mark.parametrize("option", OPTIONS)
def test_estimates_errors_deviances_and_aic_are_those_of_glm(table, name, option):
    x, y = table
    fit, glm = both(name, x, y[name], OPTIONS[option])
    close = {"rtol": 1e-6, "atol": 0}
    np.testing.assert_allclose(fit.coefficients[:, 0], glm.params, **close)
    np.testing.assert_allclose(fit.standard_errors[:, 0], glm.bse, **close)
    np.testing.assert_allclose(fit.residual_deviance, glm.deviance, **close)
    np.testing.assert_allclose(fit.null_deviance, glm.null_deviance, **close)
    np.testing.assert_allclose(fit.dispersion, glm.scale, **close)
    np.testing.assert_allclose(fit.aic_as("statsmodels"), glm.aic, **close)
    assert (fit.df_residual, fit.df_null) == (glm.df_resid, glm.df_resid + 5)
    assert fit.converged and fit.gradient < 1e-8 and fit.messages == ()


@every_family
def test_log_likelihood_is_theirs_at_the_same_dispersion(table, name):
    x, y = table
    fit, glm = both(name, x, y[name], OPTIONS["precision"])
    theirs = glm.model.loglike(fit.coefficients[:, 0].numpy(), scale=fit.dispersion_ml)
    np.testing.assert_allclose(fit.log_likelihood, theirs, rtol=1e-9)


def test_normal_is_ols_with_its_t_test_and_intervals(table):
    x, y = table
    fit = fit_linear(likelihood("normal"), x, y["normal"])
    ols = sm.OLS(y["normal"].numpy(), sm.add_constant(x.numpy())).fit()
    np.testing.assert_allclose(fit.coefficients[:, 0], ols.params, rtol=1e-9)
    np.testing.assert_allclose(fit.standard_errors[:, 0], ols.bse, rtol=1e-9)
    np.testing.assert_allclose(fit.p_values[:, 0], ols.pvalues, rtol=1e-6)
    np.testing.assert_allclose(fit.confint(0.9)[:, 0], ols.conf_int(0.1), rtol=1e-8)
    np.testing.assert_allclose(fit.covariance, ols.cov_params(), rtol=1e-8)
    np.testing.assert_allclose(fit.log_likelihood, ols.llf, rtol=1e-10)
    # R's AIC counts sigma, statsmodels' does not.
    np.testing.assert_allclose(fit.aic, ols.aic + 2, rtol=1e-10)
    np.testing.assert_allclose(fit.aic_as("R"), ols.aic + 2, rtol=1e-10)


def test_bernoulli_is_logit(table):
    x, y = table
    fit = fit_linear(likelihood("bernoulli"), x, y["bernoulli"])
    logit = sm.Logit(y["bernoulli"].numpy(), sm.add_constant(x.numpy())).fit(disp=0, tol=1e-12)
    np.testing.assert_allclose(fit.coefficients[:, 0], logit.params, rtol=1e-7)
    np.testing.assert_allclose(fit.p_values[:, 0], logit.pvalues, rtol=1e-6)
    np.testing.assert_allclose([fit.aic, fit.bic], [logit.aic, logit.bic], rtol=1e-10)


@pytest.mark.parametrize("reference", [True, False])
def test_categorical_is_mnlogit(table, reference):
    x, _ = table
    logits = torch.stack([torch.zeros(N), x[:, 0], 0.3 - 0.5 * x[:, 0]], 1)
    y = torch.multinomial(logits.softmax(1), 1).squeeze(1)
    fit = fit_linear(create("categorical", reference=reference), x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its gradient test is relative to its own start
        model = sm.MNLogit(y.numpy(), sm.add_constant(x.numpy()))
        theirs = model.fit(method="newton", disp=0, tol=1e-13)
    np.testing.assert_allclose(fit.coefficients[:, -2:], theirs.params, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_errors[:, -2:], theirs.bse, rtol=1e-6)
    np.testing.assert_allclose(fit.aic, theirs.aic, rtol=1e-10)
    np.testing.assert_allclose(
        fit.null_log_likelihood, theirs.llnull, rtol=1e-8
    )  # its null fit is loose
    np.testing.assert_allclose(fit.residual_deviance, -2 * theirs.llf, rtol=1e-10)


def test_sandwich_errors_with_sampling_weights_are_those_of_wls_hc0(table):
    x, y = table
    weight = 0.5 + torch.rand(N)
    fit = fit_linear(likelihood("normal"), x, y["normal"], weight=weight, covariance="sandwich")
    wls = sm.WLS(y["normal"].numpy(), sm.add_constant(x.numpy()), weights=weight.numpy())
    theirs = wls.fit(cov_type="HC0")
    np.testing.assert_allclose(fit.standard_errors[:, 0], theirs.bse, rtol=1e-8)
    np.testing.assert_allclose(fit.p_values[:, 0], theirs.pvalues, rtol=1e-6)


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
def test_sandwich_errors_are_those_of_glm_hc0(table, name):
    x, y = table
    fit = fit_linear(likelihood(name), x, y[name], covariance="sandwich")
    glm = sm.GLM(y[name].numpy(), sm.add_constant(x.numpy()), family=FAMILIES[name])
    theirs = glm.fit(tol=1e-14, maxiter=300, cov_type="HC0")
    np.testing.assert_allclose(fit.standard_errors[:, 0], theirs.bse, rtol=1e-6)


@every_family
def test_leverages_are_the_hat_matrix(table, name):
    x, y = table
    fit, glm = both(name, x, y[name], ())
    hat = glm.get_hat_matrix_diag(observed=False)  # R's: expected information
    np.testing.assert_allclose(leverage(fit, x), hat, rtol=1e-6)
    np.testing.assert_allclose(leverage(fit, x).sum(), 6, rtol=1e-8)


def test_huber_solves_its_estimating_equation(table):
    x, y = table
    outcome = y["normal"].clone()
    outcome[:10] += 500
    likelihood = create("huber")
    fit = fit_linear(likelihood, x, outcome)
    c = likelihood.delta * float(fit.likelihood.unit.value)
    r = outcome - fit.predict_raw(x)[:, 0]
    design = torch.cat([torch.ones(N, 1), x], 1)
    score = design.T @ r.clamp(-c, c)  # Huber's estimating equation
    assert (score.abs() < 1e-8 * (design.abs().T @ r.abs().clamp(max=c))).all()
    assert fit.aic is None and fit.covariance_kind == "sandwich"
