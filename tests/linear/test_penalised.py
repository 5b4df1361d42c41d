"""Ridge, lasso and elastic net against scikit-learn and by their optimality conditions."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import ElasticNet, Lasso, LassoCV, LogisticRegression, Ridge

import ansatz
from ansatz import Regressor
from ansatz.errors import UsageError
from ansatz.likelihoods import create
from ansatz.linear import fit_linear
from ansatz.linear.penalised import fit_penalised
from ansatz.linear.proximal_newton import MIXINGS

SKLEARN = {
    "l1": Lasso(alpha=0.05, tol=1e-14, max_iter=100_000),
    "l2": Ridge(alpha=0.05 * 442),
    "elastic_net": ElasticNet(alpha=0.05, l1_ratio=0.5, tol=1e-14, max_iter=100_000),
}


def standardised(x):
    return (x - x.mean(0)) / x.std(0)


def folds(count, number=4):
    fold = np.arange(count) % number
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(number)]


@pytest.mark.parametrize("penalty", SKLEARN)
def test_normal_outcomes_are_scikit_learns_in_units_of_their_sd(penalty):
    x, y = load_diabetes(return_X_y=True)
    normal = create("normal", dispersion="constant")
    fit = fit_penalised(
        normal, torch.from_numpy(x), torch.from_numpy(y), penalty=penalty, strength=0.05
    )
    theirs = SKLEARN[penalty].fit(standardised(x), (y - y.mean()) / y.std())
    assert_allclose(fit.path.standardised[0, 1:, 0] / y.std(), theirs.coef_, atol=1e-10)
    predicted = theirs.predict(standardised(x)) * y.std() + y.mean()
    assert_allclose(fit.predict_raw(torch.from_numpy(x))[:, 0], predicted, rtol=1e-9)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_two_classes_are_scikit_learns_logistic_regression(penalty):
    x, y = load_breast_cancer(return_X_y=True)
    x = x[:, :10]
    fit = fit_penalised(
        create("bernoulli"),
        torch.from_numpy(x),
        torch.from_numpy(y),
        penalty=penalty,
        strength=0.02,
    )
    solver = {"solver": "saga"} if penalty == "l1" else {}
    theirs = LogisticRegression(
        C=1 / (0.02 * len(y)), l1_ratio=MIXINGS[penalty], tol=1e-6, max_iter=50_000, **solver
    ).fit(standardised(x), y)
    assert_allclose(fit.path.standardised[0, 1:, 0], theirs.coef_[0], atol=1e-3)


@pytest.mark.parametrize("name", ["poisson", "gamma", "negative_binomial", "categorical"])
@pytest.mark.parametrize("penalty", MIXINGS)
def test_the_optimality_conditions_hold(name, penalty):
    """g_j + strength (a sign b_j + (1 - a) b_j) = 0, or |g_j| <= strength a where b_j = 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 6))
    mean = np.exp(1 + 0.4 * x[:, 0])
    y = {
        "poisson": rng.poisson(mean).astype(float),
        "gamma": rng.gamma(2, mean / 2),
        "negative_binomial": rng.negative_binomial(2, 2 / (2 + mean)).astype(float),
        "categorical": (rng.gumbel(size=(120, 3)) + x[:, :3]).argmax(1),
    }[name]
    options = {"dispersion": "constant"} if name in ("gamma", "negative_binomial") else {}
    likelihood = create(name, **options)
    data, outcome = torch.from_numpy(x), torch.from_numpy(y)
    strength, mixing = 0.05, MIXINGS[penalty]
    fit = fit_penalised(likelihood, data, outcome, penalty=penalty, strength=strength)
    z = torch.from_numpy(standardised(x))
    b = fit.path.standardised[0].clone().requires_grad_()  # (7, P)
    fitted = fit.likelihood
    if name == "gamma":  # the dispersion of the model without x
        fitted = fit_linear(likelihood, data[:, :0], outcome).likelihood
    raw = b[0] + z @ b[1:]
    fitted.loss(raw, outcome).mean().backward()
    g, value = b.grad[1:], b.detach()[1:]
    residual = g + strength * (mixing * value.sign() + (1 - mixing) * value)
    free = (b.grad[1:].abs().sum(0) > 0) & (value.abs().sum(0) > 0)  # not the reference class
    on = (value != 0) & free
    assert_allclose(residual[on], 0, atol=1e-6)
    assert (g[(value == 0) & free].abs() <= strength * mixing + 1e-9).all()
    assert_allclose(b.grad[0, free], 0, atol=1e-6)


def test_without_strength_it_is_maximum_likelihood():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(60, 3)))
    y = torch.from_numpy(rng.poisson(np.exp(x[:, 0].numpy())).astype(float))
    for penalty in MIXINGS:
        fit = fit_penalised(create("poisson"), x, y, penalty=penalty, strength=0.0)
        plain = fit_linear(create("poisson"), x, y)
        assert_allclose(fit.coefficients, plain.coefficients, atol=1e-7)


def test_the_path_begins_without_columns_and_cross_validation_finds_the_sparse_truth():
    rng = np.random.default_rng(0)
    n, x = 60, rng.normal(size=(360, 100))
    y = x[:, :3].sum(1) + rng.normal(size=360)
    model = Regressor("normal", network="linear", penalty="lasso").fit(x[:n], y[:n])
    path = model.linear_.path
    assert (path.standardised[0, 1:] == 0).all()
    assert path.losses.argmin() == path.chosen > 0
    assert (model.linear_.coefficients[1:4, 0].abs() > 0.3).all()

    def error(prediction):
        return np.sqrt(((prediction - y[n:]) ** 2).mean())

    theirs = LassoCV().fit(x[:n], y[:n])
    assert error(model.predict(x[n:])) < 1.1 * error(theirs.predict(x[n:])) < 1.5
    low, high = model.interval(x[n:], 0.9).T
    assert 0.75 < ((low < y[n:]) & (y[n:] < high)).mean() < 0.97


def test_a_summary_has_no_p_values_and_says_why():
    x, y = load_diabetes(return_X_y=True)
    model = Regressor("normal", network="linear", penalty="lasso=0.1").fit(x, y)
    text = str(model.summary())
    assert "Penalty: lasso, strength 0.1 (given)" in text
    assert "no standard errors and p-values" in text and "Pr(>" not in text
    with pytest.raises(UsageError, match="no confidence intervals"):
        model.linear_.confint()


def test_a_saved_penalised_model_predicts_the_same(tmp_path):
    x, y = load_diabetes(return_X_y=True)
    model = Regressor("normal", network="linear", penalty="ridge=0.1").fit(x, y)
    ansatz.estimators.save(model, tmp_path / "model")
    again = ansatz.load(tmp_path / "model")
    assert_allclose(again.interval(x[:5]), model.interval(x[:5]), rtol=1e-12)
    assert "ridge" in str(again.summary())


def test_what_cannot_be_penalised_is_refused():
    x, y = torch.zeros(4, 1), torch.arange(4.0)
    with pytest.raises(UsageError, match="ridge, lasso or elastic_net"):
        fit_penalised(create("poisson"), x, y, penalty="group", strength=1.0)
    with pytest.raises(UsageError, match="too few rows"):
        fit_penalised(create("poisson"), x, y, penalty="l1")
