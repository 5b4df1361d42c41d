"""Linear models beyond the four classic families, against statsmodels and direct optimisation."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch
from scipy import stats
from scipy.optimize import minimize
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.othermod.betareg import BetaModel
from statsmodels.tools.numdiff import approx_hess

from ansatz.likelihoods import create, right_censored
from ansatz.linear import fit_linear
from ansatz.linear.residuals import residuals

N = 250
LOG = sm.families.links.Log()


@pytest.fixture
def x():
    """Columns of different units, one of them 0 or 1."""
    return torch.stack([torch.randn(N), 20 * torch.randn(N) + 300, torch.randint(0, 2, (N,))], 1)


@pytest.fixture
def eta(x):
    return 0.5 + 0.4 * x[:, 0] - 0.01 * (x[:, 1] - 300) + 0.3 * x[:, 2]


def quiet(model, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(disp=0, **options)


def design(x):
    return sm.add_constant(x.numpy())


def sample(likelihood, **parameters):
    return torch.as_tensor(likelihood.rvs(random_state=0, **parameters), dtype=torch.float64)


def test_negative_binomial_is_nb2(x, eta):
    mean = eta.exp().numpy()
    y = sample(stats.nbinom(2.0, 2.0 / (2.0 + mean)))
    fit = fit_linear(create("negative_binomial", dispersion="constant"), x, y)
    theirs = quiet(sm.NegativeBinomial(y.numpy(), design(x)), method="newton", maxiter=200)
    np.testing.assert_allclose(fit.coefficients[:, 0], theirs.params[:-1], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(fit.scales["alpha"], theirs.params[-1], rtol=1e-5)
    np.testing.assert_allclose(fit.standard_errors[:, 0], theirs.bse[:-1], rtol=1e-5)
    np.testing.assert_allclose([fit.log_likelihood, fit.aic], [theirs.llf, theirs.aic], rtol=1e-9)


def test_beta_is_beta_regression(x, eta):
    mean = torch.sigmoid(eta).numpy()
    y = sample(stats.beta(8 * mean, 8 * (1 - mean)))
    fit = fit_linear(create("beta", dispersion="constant"), x, y)
    theirs = quiet(BetaModel(y.numpy(), design(x)), method="newton", maxiter=200)
    np.testing.assert_allclose(fit.coefficients[:, 0], theirs.params[:-1], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(fit.scales["phi"], np.exp(theirs.params[-1]), rtol=1e-5)
    np.testing.assert_allclose(fit.standard_errors[:, 0], theirs.bse[:-1], rtol=1e-5)
    np.testing.assert_allclose(fit.log_likelihood, theirs.llf, rtol=1e-9)


def data_file(*parts):
    path = Path(os.environ.get("ANSATZ_DATA", "."), *parts)
    if "ANSATZ_DATA" not in os.environ or not path.exists():
        pytest.skip(f"{'/'.join(parts)} is not in $ANSATZ_DATA")
    return path


def test_gasoline_yield_is_the_published_beta_regression():
    frame = pd.read_csv(data_file("proportions", "gasoline_yield.csv"))
    columns = pd.get_dummies(frame["batch"].astype(str), dtype=float).drop(columns="10")
    columns["temp"] = frame["temp"].astype(float)
    likelihood, y = (
        create("beta", dispersion="constant"),
        torch.tensor(frame["yield"].to_numpy(float)),
    )
    fit = fit_linear(likelihood, torch.tensor(columns.to_numpy()), y, feature_names=list(columns))
    assert fit.parameters == 12 and fit.converged
    assert fit.log_likelihood == pytest.approx(84.798, abs=5e-4)
    assert fit.scales["phi"] == pytest.approx(440.28, abs=5e-3)
    assert fit.coefficients[0, 0] == pytest.approx(-6.15957, abs=5e-6)
    assert fit.coefficients[-1, 0] == pytest.approx(0.010967, abs=5e-7)


def test_wind_directions_without_columns_reach_the_known_concentration():
    frame = pd.read_csv(data_file("wind-direction", "col_de_la_roa_wind.csv"))
    y = torch.tensor(frame["direction_radians"].to_numpy(float))
    fit = fit_linear(create("von_mises"), torch.zeros(len(y), 0), y)
    assert fit.converged and fit.coefficients[0].norm().item() == pytest.approx(1.76786, abs=5e-6)


def test_races_without_columns_reach_the_known_likelihood():
    """Nascar 2002 without the four drivers who only ever came last."""
    frame = pd.read_csv(data_file("rankings", "nascar2002_orderings.csv"))
    order = torch.tensor(frame.to_numpy()) - 1
    y = torch.where(order < 83, order, -1)
    fit = fit_linear(create("plackett_luce", unranked="absent"), torch.zeros(36, 0), y)
    assert fit.converged and fit.parameters == 82
    assert fit.log_likelihood == pytest.approx(-4191.097, abs=5e-4)


@pytest.mark.parametrize("option", ["plain", "weight", "precision", "offset"])
@pytest.mark.parametrize("name", ["inverse_gaussian", "tweedie"])
def test_dispersed_families_are_glms_with_log_link(x, eta, name, option):
    mean = eta.exp().numpy()
    if name == "tweedie":
        with torch.no_grad():
            likelihood = create("tweedie", dispersion=0.7, power=1.5)
            y = likelihood.distribution(eta.unsqueeze(1)).sample()
        family = sm.families.Tweedie(var_power=1.5, link=LOG)
        ours = create("tweedie", dispersion="constant", power=1.5)
    else:
        y = sample(stats.invgauss(0.3 * mean, scale=1 / 0.3))
        family = sm.families.InverseGaussian(LOG)
        ours = create("inverse_gaussian", dispersion="constant")
    value = {"weight": torch.randint(1, 4, (N,)).double(), "precision": 0.5 + torch.rand(N)}
    value["offset"] = 0.3 * torch.randn(N)
    theirs = {"weight": "freq_weights", "precision": "var_weights", "offset": "offset"}
    chosen = {} if option == "plain" else {option: value[option]}
    fit = fit_linear(ours, x, y, **chosen)
    renamed = {theirs[key]: v.numpy() for key, v in chosen.items()}
    glm = sm.GLM(y.numpy(), design(x), family=family, **renamed).fit(tol=1e-14, maxiter=300)
    np.testing.assert_allclose(fit.coefficients[:, 0], glm.params, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_errors[:, 0], glm.bse, rtol=1e-6)
    np.testing.assert_allclose(fit.residual_deviance, glm.deviance, rtol=1e-6)
    np.testing.assert_allclose(fit.null_deviance, glm.null_deviance, rtol=1e-6)
    np.testing.assert_allclose(fit.dispersion, glm.scale, rtol=1e-6)
    assert fit.converged and fit.uses_t


def test_exponential_is_the_gamma_glm_with_scale_one(x, eta):
    y = sample(stats.expon(scale=eta.exp().numpy()))
    fit = fit_linear(create("exponential"), x, y)
    glm = sm.GLM(y.numpy(), design(x), family=sm.families.Gamma(LOG))
    theirs = glm.fit(tol=1e-14, maxiter=300, scale=1.0)
    np.testing.assert_allclose(fit.coefficients[:, 0], theirs.params, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_errors[:, 0], theirs.bse, rtol=1e-6)
    np.testing.assert_allclose(fit.residual_deviance, theirs.deviance, rtol=1e-8)
    np.testing.assert_allclose(fit.log_likelihood, theirs.llf, rtol=1e-8)


def test_ordinal_is_the_ordered_logit(x, eta):
    y = torch.bucketize(eta + sample(stats.logistic(), size=N), torch.tensor([-0.5, 0.5, 2.0]))
    fit = fit_linear(create("ordinal"), x, y, class_names=["bad", "fair", "good", "best"])
    model = OrderedModel(y.numpy(), x.numpy(), distr="logit")
    theirs = quiet(model, method="bfgs", gtol=1e-9, maxiter=1000)
    np.testing.assert_allclose(fit.coefficients[1:, 0], theirs.params[:3], rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(fit.standard_errors[1:, 0], theirs.bse[:3], rtol=1e-4)
    np.testing.assert_allclose(fit.log_likelihood, theirs.llf, rtol=1e-9)
    thresholds = model.transform_threshold_params(theirs.params)[1:-1]
    assert list(fit.scales) == ["threshold bad|fair", "threshold fair|good", "threshold good|best"]
    np.testing.assert_allclose(list(fit.scales.values()), thresholds, rtol=1e-5)
    assert fit.coefficients[0, 0].abs() < 1e-12 and "(Intercept)" not in str(fit.summary())
    np.testing.assert_allclose(
        fit.likelihood.probs(fit.predict_raw(x)).detach(), theirs.predict(), rtol=1e-4, atol=1e-6
    )


def test_zero_inflated_poisson_with_columns_in_both_parts(x, eta):
    extra = torch.rand(N) < torch.sigmoid(-0.5 + 0.5 * x[:, 0])
    y = torch.where(extra, 0.0, torch.poisson((1 + eta).exp()))
    x = (x - torch.tensor([0.0, 300.0, 0.0])) / torch.tensor([1.0, 20.0, 1.0])  # for their sake
    fit = fit_linear(create("zero_inflated_poisson"), x, y)
    model = sm.ZeroInflatedPoisson(y.numpy(), design(x), exog_infl=design(x))
    start = np.r_[fit.coefficients[:, 1], fit.coefficients[:, 0]]
    theirs = quiet(model, start_params=start + 0.01, method="bfgs", gtol=1e-8)
    np.testing.assert_allclose(fit.coefficients[:, 1], theirs.params[:4], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(fit.coefficients[:, 0], theirs.params[4:], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(fit.log_likelihood, theirs.llf, rtol=1e-9)
    errors = torch.cat([fit.standard_errors[:, 1], fit.standard_errors[:, 0]])
    hessian = approx_hess(np.asarray(theirs.params), model.loglike)  # their own bse has two digits
    np.testing.assert_allclose(errors, np.sqrt(np.diag(np.linalg.inv(-hessian))), rtol=1e-4)
    assert fit.outputs == ("counts", "extra zeros")


def test_hurdle_poisson_is_a_logistic_and_a_truncated_regression(x, eta):
    positive = torch.rand(N) < torch.sigmoid(0.5 + 0.5 * x[:, 0])
    y = torch.where(positive, 1 + torch.poisson(eta.exp()), 0.0)
    fit = fit_linear(create("hurdle_poisson"), x, y)
    logit = sm.Logit(positive.numpy().astype(float), design(x)).fit(disp=0, tol=1e-12)
    np.testing.assert_allclose(fit.coefficients[:, 1], logit.params, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_errors[:, 1], logit.bse, rtol=1e-6)
    truncated = fit_linear(
        create("truncated", likelihood="poisson", lower=0), x[positive], y[positive]
    )
    np.testing.assert_allclose(fit.coefficients[:, 0], truncated.coefficients[:, 0], rtol=1e-6)
    np.testing.assert_allclose(fit.log_likelihood, truncated.log_likelihood + logit.llf, rtol=1e-9)


def test_hurdle_negative_binomial_is_a_logistic_and_a_truncated_regression(x, eta):
    """The truncated one is the maximum that a naive optimiser finds with SciPy's density."""
    positive = torch.rand(N) < torch.sigmoid(0.5 + 0.5 * x[:, 0])
    y = torch.where(positive, 1 + torch.poisson(eta.exp() * 2 * torch.rand(N)), 0.0)
    fit = fit_linear(create("hurdle_negative_binomial", dispersion="constant"), x, y)
    logit = sm.Logit(positive.numpy().astype(float), design(x)).fit(disp=0, tol=1e-12)
    np.testing.assert_allclose(fit.coefficients[:, 1], logit.params, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_errors[:, 1], logit.bse, rtol=1e-6)
    X = np.column_stack([np.ones(N), x[:, 0], (x[:, 1] - 300) / 20, x[:, 2]])[positive.numpy()]
    counts = y[positive].numpy()

    def loss(theta):
        mu, n = np.exp(X @ theta[:-1]), np.exp(-theta[-1])
        p = n / (n + mu)
        return -(stats.nbinom.logpmf(counts, n, p) - np.log1p(-(p**n))).sum()

    direct = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-5})
    np.testing.assert_allclose(fit.log_likelihood, logit.llf - direct.fun, rtol=1e-8)
    assert fit.outputs == ("positive counts", "being positive")


CENSORED = {  # standardised log density and log survival of log time, as in survreg
    "weibull": (lambda w: w - np.exp(w), lambda w: -np.exp(w)),
    "log_normal": (stats.norm.logpdf, stats.norm.logsf),
}


@pytest.mark.parametrize("name", CENSORED)
def test_censored_accelerated_failure_times_are_the_direct_maximum(x, eta, name):
    noise = torch.rand(N).log().neg().log() if name == "weibull" else torch.randn(N)
    time = (eta + 0.6 * noise).exp()
    end = 0.3 + 4 * torch.rand(N)
    event, time = (time <= end).double(), torch.minimum(time, end)
    likelihood = create("censored", likelihood=name, options={"dispersion": "constant"})
    fit = fit_linear(likelihood, x, right_censored(time, event))
    X = np.column_stack([np.ones(N), x[:, 0], (x[:, 1] - 300) / 20, x[:, 2]])
    t, d = time.numpy(), event.numpy() > 0
    density, survival = CENSORED[name]

    def loss(b):
        w = (np.log(t) - X @ b[:4]) / np.exp(b[4])
        return -np.where(d, density(w) - b[4] - np.log(t), survival(w)).sum()

    best = minimize(loss, np.r_[np.zeros(4), 0.0], method="BFGS", options={"gtol": 1e-7})
    assert fit.converged and fit.log_likelihood == pytest.approx(-best.fun, rel=1e-9)
    np.testing.assert_allclose(fit.coefficients[1, 0], best.x[1], rtol=1e-4)
    np.testing.assert_allclose(fit.coefficients[2, 0] * 20, best.x[2], rtol=1e-4)
    assert fit.scales["sigma"] == pytest.approx(np.exp(best.x[4]), rel=1e-5)
    # Censored rows have no residual yet; the others scatter.
    r = residuals(fit.likelihood, fit.predict_raw(x), right_censored(time, event), "quantile")
    assert (r.isnan() == (event == 0)).all()


def test_a_tail_without_second_derivatives_gives_the_errors_of_a_numerical_hessian(x, eta):
    time = eta.exp() * torch.distributions.Gamma(2.0, 2.0).sample((N,))
    end = 0.3 + 4 * torch.rand(N)
    y = right_censored(torch.minimum(time, end), (time <= end).double())
    fit = fit_linear(
        create("censored", likelihood="gamma", options={"dispersion": "constant"}), x, y
    )
    X = np.column_stack([np.ones(N), x.numpy()])
    t, d = torch.minimum(time, end).numpy(), (time <= end).numpy()

    def loss(b):
        phi = np.exp(b[4])
        likelihood = stats.gamma(1 / phi, scale=phi * np.exp(X @ b[:4]))
        return -np.where(d, likelihood.logpdf(t), likelihood.logsf(t)).sum()

    assert fit.curvature == "differences"
    theta = np.r_[fit.coefficients[:, 0], np.log(fit.scales["phi"])]
    assert fit.converged and fit.log_likelihood == pytest.approx(-loss(theta), rel=1e-9)
    step = 2e-4 * np.r_[1, 1, 1 / 300, 1, 1]
    hessian = np.empty((5, 5))
    for i in range(5):
        for j in range(5):
            a, b = np.eye(5)[i] * step[i], np.eye(5)[j] * step[j]
            corners = loss(theta + a + b) - loss(theta + a - b) - loss(theta - a + b)
            hessian[i, j] = (corners + loss(theta - a - b)) / (4 * step[i] * step[j])
    errors = np.sqrt(np.diag(np.linalg.inv(hessian)))[:4]
    np.testing.assert_allclose(fit.standard_errors[:, 0], errors, rtol=1e-3)


@pytest.mark.parametrize("option", ["plain", "weight", "offset"])
def test_binomial_is_the_glm_of_successes_and_failures(x, eta, option):
    trials = torch.randint(1, 12, (N,)).double()
    y = torch.stack([torch.binomial(trials, torch.sigmoid(eta)), trials], 1)
    value = {"weight": torch.randint(1, 4, (N,)).double(), "offset": 0.3 * torch.randn(N)}
    chosen = {} if option == "plain" else {option: value[option]}
    fit = fit_linear(create("binomial"), x, y, **chosen)
    theirs = {{"weight": "freq_weights"}.get(key, key): v.numpy() for key, v in chosen.items()}
    both = torch.stack([y[:, 0], trials - y[:, 0]], 1).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        glm = sm.GLM(both, design(x), family=sm.families.Binomial(), **theirs).fit(tol=1e-14)
    np.testing.assert_allclose(fit.coefficients[:, 0], glm.params, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_errors[:, 0], glm.bse, rtol=1e-6)
    np.testing.assert_allclose(fit.residual_deviance, glm.deviance, rtol=1e-7)
    np.testing.assert_allclose(fit.log_likelihood, glm.llf, rtol=1e-9)
    r = residuals(fit.likelihood, fit.predict_raw(x, chosen.get("offset")), y, "pearson")
    if option != "weight":  # theirs are multiplied by its root
        np.testing.assert_allclose(r, glm.resid_pearson, rtol=1e-6)


def test_the_median_is_median_regression(x, eta):
    y = 5 + eta + torch.distributions.StudentT(3.0).sample((N,))
    fit = fit_linear(create("quantiles", levels=[0.5]), x, y)
    theirs = sm.QuantReg(y.numpy(), design(x)).fit(q=0.5, p_tol=1e-10, max_iter=5000)
    np.testing.assert_allclose(fit.coefficients[:, 0], theirs.params, rtol=1e-5)  # theirs iterates
    absolute = fit_linear(create("mae"), x, y)
    np.testing.assert_allclose(fit.coefficients, absolute.coefficients, rtol=1e-8)


def test_zero_inflated_negative_binomial_is_theirs(x, eta):
    extra = torch.rand(N) < 0.3
    mean = (1 + eta).exp().numpy()
    y = torch.where(extra, 0.0, sample(stats.nbinom(2.0, 2.0 / (2.0 + mean))))
    x = (x - torch.tensor([0.0, 300.0, 0.0])) / torch.tensor([1.0, 20.0, 1.0])  # for their sake
    fit = fit_linear(create("zero_inflated_negative_binomial", dispersion="constant"), x, y)
    model = sm.ZeroInflatedNegativeBinomialP(y.numpy(), design(x), exog_infl=design(x))
    own = np.r_[fit.coefficients[:, 1], fit.coefficients[:, 0], fit.scales["alpha"]]
    np.testing.assert_allclose(fit.log_likelihood, model.loglike(own), rtol=1e-9)
    theirs = quiet(model, start_params=own + 0.01, method="bfgs", gtol=1e-7)
    np.testing.assert_allclose(own, theirs.params, rtol=2e-4, atol=1e-4)
    assert theirs.llf <= fit.log_likelihood + 1e-8
