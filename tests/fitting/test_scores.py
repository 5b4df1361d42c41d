import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

import ansatz
from ansatz import Classifier, Regressor, structures
from ansatz.fitting.replay import replay
from ansatz.fitting.scores import constant_predictive, evaluate_predictive
from ansatz.likelihoods import Bernoulli, Gamma, Normal, Poisson


def rare(rows=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, 2)), columns=["a", "b"])
    frame["y"] = np.where(frame["a"] + rng.normal(size=rows) > 2, "yes", "no")
    return frame


@pytest.mark.parametrize("weight", ["balanced", {"no": 1.0, "yes": 9.0}])
@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_class_weights_are_no_rows_when_a_fit_is_evaluated(weight, network):
    """Its scores are those that ``evaluate`` gives for the same rows."""
    frame, options = rare(), {"class_weight": weight}
    if network == "mlp":
        options |= {"widths": [4], "epochs": 2}
    fit = ansatz.fit(frame, target="y", network=network, options=options)
    test = frame.iloc[fit.split_problem[2].test]
    expected = fit.model.evaluate(test[["a", "b"]], test["y"])
    assert {name: fit.metrics[name] for name in expected} == pytest.approx(expected)
    share = (frame["y"] == "yes").iloc[fit.split_problem[2].learn].mean()
    right = np.where(test["y"] == "yes", share, 1 - share)
    assert fit.constant["nll"] == pytest.approx(-np.log(right).mean(), rel=0.02)


def test_class_weights_do_not_move_the_split():
    options = {"widths": [4], "epochs": 1}
    plain = ansatz.fit(rare(), target="y", network="mlp", options=options)
    options["class_weight"] = {"no": 1.0, "yes": 30.0}
    tilted = ansatz.fit(rare(), target="y", network="mlp", options=options)
    assert tilted.rows == plain.rows and plain.rows["test"] == 80
    for a, b in zip(plain.split_problem[2], tilted.split_problem[2], strict=True):
        np.testing.assert_array_equal(a, b)


def test_class_weights_tilt_no_baseline():
    """The report and the fit compare with the same linear and constant models."""
    from ansatz.report import replayed
    from ansatz.report.baselines import baselines

    options = {"class_weight": "balanced", "widths": [4], "epochs": 2}
    fit = ansatz.fit(rare(), target="y", network="mlp", options=options)
    evidence = replayed(replay(fit))
    for name, expected in {"linear": fit.linear, "constant": fit.constant}.items():
        found = baselines(evidence).find(name).evaluate(evidence.weight)
        assert found["nll"] == pytest.approx(expected["nll"])


X = np.random.default_rng(0).normal(size=(200, 2))


def jobs(y, kind=Regressor, **options):
    model = kind()
    return (
        model.read(X[:120], y[:120], **{k: v[:120] for k, v in options.items()}),
        model.read(X[120:], y[120:], **{k: v[120:] for k, v in options.items()}),
    )


def evaluate_constant(likelihood, learn, test):
    return evaluate_predictive(constant_predictive(likelihood, learn, test), test.y, test.weight)


def evaluate_linear(likelihood, learn, test):
    model, notes = structures.create("vector").baseline(likelihood, learn, seed=0)
    found = model.predictive(test.rows, test.offset, notes=[])
    return evaluate_predictive(found, test.y, test.weight), notes


def test_the_constant_is_the_maximum_likelihood_one():
    y = 3 + 2 * X[:, 0] + np.random.default_rng(1).normal(size=200)
    learn, test = jobs(y)
    found = evaluate_constant(Normal(), learn, test)
    likelihood = stats.norm(y[:120].mean(), y[:120].std())
    assert found["nll"] == pytest.approx(-likelihood.logpdf(y[120:]).mean(), rel=1e-6)


def test_a_constant_rate_is_per_exposure():
    exposure = np.random.default_rng(1).uniform(0.5, 5, size=200)
    y = np.random.default_rng(1).poisson(2 * exposure).astype(float)
    learn, test = jobs(y, offset=np.log(exposure))
    rate = y[:120].sum() / exposure[:120].sum()
    expected = -stats.poisson(rate * exposure[120:]).logpmf(y[120:]).mean()
    assert evaluate_constant(Poisson(), learn, test)["nll"] == pytest.approx(expected, rel=1e-8)


def test_the_linear_model_of_a_known_spread_is_least_squares():
    y = 3 + 2 * X[:, 0] + np.random.default_rng(1).normal(size=200)
    learn, test = jobs(y)
    found, _ = evaluate_linear(Normal(dispersion=1.0), learn, test)
    ols = sm.OLS(y[:120], sm.add_constant(X[:120])).fit()
    error = y[120:] - ols.predict(sm.add_constant(X[120:]))
    assert found["rmse"] == pytest.approx(np.sqrt((error**2).mean()), rel=1e-8)


def test_a_spread_that_depends_on_x_wins_where_it_does():
    y = X[:, 0] + np.log1p(np.exp(2 * X[:, 1])) * np.random.default_rng(3).normal(size=200)
    learn, test = jobs(y)
    found, _ = evaluate_linear(Normal(), learn, test)
    ols = sm.OLS(y[:120], sm.add_constant(X[:120])).fit()
    error = y[120:] - ols.predict(sm.add_constant(X[120:]))
    constant = -stats.norm(0, np.sqrt(ols.ssr / 120)).logpdf(error).mean()
    assert found["nll"] < constant - 0.1


def test_poisson_gamma_and_bernoulli_are_glms():
    mean = np.exp(0.5 + 0.4 * X[:, 0])
    cases = (
        (Poisson(), np.random.default_rng(1).poisson(mean).astype(float), sm.families.Poisson()),
        (
            Gamma(dispersion="constant"),
            np.random.default_rng(1).gamma(5, mean / 5),
            sm.families.Gamma(sm.families.links.Log()),
        ),
    )
    for likelihood, y, family in cases:
        learn, test = jobs(y)
        found, _ = evaluate_linear(likelihood, learn, test)
        glm = sm.GLM(y[:120], sm.add_constant(X[:120]), family).fit()
        error = y[120:] - glm.predict(sm.add_constant(X[120:]))
        assert found["rmse"] == pytest.approx(np.sqrt((error**2).mean()), rel=1e-5)
    y = (np.random.default_rng(1).uniform(size=200) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    learn, test = jobs(y, Classifier)
    found, _ = evaluate_linear(Bernoulli(), learn, test)
    glm = sm.GLM(y[:120], sm.add_constant(X[:120]), sm.families.Binomial()).fit()
    design = sm.add_constant(X[120:])
    error = np.sqrt(((design @ glm.cov_params()) * design).sum(1))
    grid = np.linspace(-8, 8, 801)
    density = np.exp(-(grid**2) / 2) / np.exp(-(grid**2) / 2).sum()
    p = (density / (1 + np.exp(-((design @ glm.params)[:, None] + error[:, None] * grid)))).sum(1)
    nll = -np.log(np.where(y[120:] == 1, p, 1 - p)).mean()
    assert found["nll"] == pytest.approx(nll, rel=1e-6)


def test_a_spread_with_as_many_coefficients_as_rows_allow_does_not_win():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(120, 35)), rng.normal(size=120)
    model = Regressor()
    learn, test = model.read(x[:90], y[:90]), model.read(x[90:], y[90:])
    found, notes = evaluate_linear(Normal(), learn, test)
    ols = sm.OLS(y[:90], sm.add_constant(x[:90])).fit()
    predicted = ols.get_prediction(sm.add_constant(x[90:]))
    t = stats.t(ols.df_resid, predicted.predicted_mean, predicted.se_obs)
    expected = -t.logpdf(y[90:]).mean()
    assert found["nll"] < expected - 0.1 and any("penalised" in note for note in notes)
