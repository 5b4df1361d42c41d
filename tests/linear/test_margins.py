import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
import torch

from ansatz import Classifier, Regressor, load
from ansatz.errors import UsageError
from ansatz.likelihoods import create
from ansatz.linear import Estimates, f_test, fit_linear, likelihood_ratio_test, wald_test

N = 150
FAMILIES = {
    "poisson": sm.families.Poisson(),
    "bernoulli": sm.families.Binomial(),
    "gamma": sm.families.Gamma(sm.families.links.Log()),
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(11)
    frame = pd.DataFrame({"age": rng.normal(size=N), "site": rng.choice(["a", "b", "c"], N)})
    eta = 0.4 * frame["age"] + 0.5 * (frame["site"] == "b")
    frame["normal"] = eta + rng.normal(size=N)
    frame["poisson"] = rng.poisson(np.exp(eta)).astype(float)
    frame["gamma"] = rng.gamma(2.0, np.exp(eta) / 2)
    frame["bernoulli"] = (rng.random(N) < 1 / (1 + np.exp(-eta))).astype(float)
    return frame


def fitted(table, name, columns=("age", "site")):
    return Regressor(name, network="linear").fit(table[list(columns)], table[name])


def test_means_of_least_squares_are_those_of_get_prediction(table):
    expected = smf.ols("normal ~ age + site", table).fit().get_prediction(table[:20])
    found = fitted(table, "normal").interval(table[["age", "site"]][:20], 0.9, of="mean")
    np.testing.assert_allclose(found, expected.conf_int(alpha=0.1), rtol=1e-8)


@pytest.mark.parametrize("name", FAMILIES)
def test_means_of_a_glm_are_those_of_get_prediction(table, name):
    result = smf.glm(f"{name} ~ age + site", table, family=FAMILIES[name]).fit(tol=1e-12)
    expected = result.get_prediction(table[:20]).conf_int(alpha=0.1)
    model = fitted(table, name)
    found = model.interval(table[["age", "site"]][:20], 0.9, of="mean")
    # statsmodels takes normal quantiles where the dispersion is estimated; ours are Student's.
    rtol = 2e-3 if name == "gamma" else 1e-6
    np.testing.assert_allclose(found, expected, rtol=rtol)


def test_intervals_of_means_survive_saving(table, tmp_path):
    model, X = fitted(table, "poisson"), table[["age", "site"]]
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.interval(X, 0.9, of="mean"), model.interval(X, 0.9, of="mean")
    )
    pd.testing.assert_frame_equal(again.margins(X, "site"), model.margins(X, "site"))


def test_probabilities_of_classes_have_intervals_by_the_delta_method(table):
    """Against derivatives by differences of the probabilities."""
    X = table[["age"]].to_numpy()
    model = Classifier("categorical", network="linear").fit(X, table["site"])
    lower, upper = np.moveaxis(model.interval(X[:4], 0.95, of="mean"), -1, 0)
    estimates = Estimates.of(model.linear_)
    table_ = torch.nan_to_num(estimates.coefficients)
    full = torch.cat([torch.ones(4, 1), torch.tensor(X[:4])], 1)

    def probabilities(values):
        moved = table_.clone()
        moved[estimates.entries[:, 0], estimates.entries[:, 1]] = values
        return torch.softmax(full @ moved, -1)

    jacobian = torch.autograd.functional.jacobian(probabilities, estimates.values)  # (4, 3, T)
    errors = (jacobian @ estimates.covariance * jacobian).sum(-1).sqrt()
    np.testing.assert_allclose((upper - lower) / 2, 1.959964 * errors, rtol=1e-6)


@pytest.mark.parametrize("name", ["poisson", "normal"])
def test_marginal_means_and_contrasts_are_averages_of_predictions(table, name):
    model, X = fitted(table, name), table[["age", "site"]]
    found = model.margins(X, "site").set_index("setting")
    means = {s: model.predict(X.assign(site=s)).mean() for s in "abc"}
    for level, mean in means.items():
        assert found.loc[f"site = {level}", "estimate"] == pytest.approx(mean)
    contrast = found.loc["site = b - site = a"]
    assert contrast["estimate"] == pytest.approx(means["b"] - means["a"])
    # The delta method, by differences of the coefficients.
    fit = model.linear_
    (x, y), step = (
        (model.model_.encoder.inputs(model.rows(X.assign(site=s)))[0] for s in "ba"),
        1e-6,
    )
    gradient = []
    for row, column in fit.entries:
        moved = []
        for sign in (1, -1):
            coefficients = fit.coefficients.clone()
            coefficients[row, column] += sign * step
            raw = [coefficients[0] + part @ coefficients[1:] for part in (x, y)]
            up, down = (fit.likelihood.point(each).mean() for each in raw)
            moved.append(up - down)
        gradient.append((moved[0] - moved[1]) / (2 * step))
    g = torch.stack(gradient)
    error = float((g @ fit.covariance @ g).sqrt())
    assert contrast["standard_error"] == pytest.approx(error, rel=1e-5)


def test_a_contrast_of_a_linear_normal_model_is_its_coefficient(table):
    model = fitted(table, "normal")
    contrast = model.margins(table[["age", "site"]], "site").set_index("setting")
    row = model.linear_.names.index("site[b]")
    found = contrast.loc["site = b - site = a", ["estimate", "standard_error", "p_value"]]
    expected = [model.linear_.coefficients, model.linear_.standard_errors, model.linear_.p_values]
    np.testing.assert_allclose(found.to_numpy(float), [float(e[row, 0]) for e in expected])


def both(table, name):
    """Nested fits: without and with the site."""
    x = torch.tensor(pd.get_dummies(table[["age", "site"]], drop_first=True).to_numpy(float))
    made = create(name, **({"dispersion": "constant"} if name in ("normal", "gamma") else {}))
    names = ["age", "b", "c"]
    y = torch.tensor(table[name].to_numpy())
    return [fit_linear(made, x[:, :k], y, feature_names=names[:k]) for k in (1, 3)]


def test_likelihood_ratio_and_wald_tests_are_those_of_statsmodels(table):
    small, large = both(table, "poisson")
    results = [
        smf.poisson(f"poisson ~ {terms}", table).fit(disp=0, tol=1e-12)
        for terms in ("age", "age + site")
    ]
    ratio = likelihood_ratio_test(small, large)
    assert ratio.statistic == pytest.approx(2 * (results[1].llf - results[0].llf), rel=1e-6)
    assert ratio.df == 2
    wald = wald_test(large, ["b", "c"])
    expected = results[1].wald_test("site[T.b] = 0, site[T.c] = 0", scalar=True)
    assert wald.statistic == pytest.approx(float(expected.statistic), rel=1e-6)
    assert wald.p_value == pytest.approx(float(expected.pvalue), rel=1e-6)


def test_f_tests_are_those_of_anova(table):
    small, large = both(table, "normal")
    models = [smf.ols(f"normal ~ {terms}", table).fit() for terms in ("age", "age + site")]
    expected = sm.stats.anova_lm(*models)
    found = f_test(small, large)
    assert found.statistic == pytest.approx(expected["F"].iloc[1], rel=1e-8)
    assert found.p_value == pytest.approx(expected["Pr(>F)"].iloc[1], rel=1e-8)
    assert wald_test(large, ["b", "c"]).statistic == pytest.approx(found.statistic, rel=1e-8)


def test_what_is_not_nested_is_refused(table):
    small, large = both(table, "poisson")
    with pytest.raises(UsageError, match="comes second"):
        likelihood_ratio_test(large, small)
    with pytest.raises(UsageError, match="one likelihood"):
        likelihood_ratio_test(both(table, "normal")[0], large)
    with pytest.raises(UsageError, match="take the likelihood ratio"):
        f_test(small, large)
    with pytest.raises(UsageError, match="no coefficient 'z'"):
        wald_test(large, ["z"])
    with pytest.raises(UsageError, match="network='linear'"):
        Regressor(epochs=1).fit(table[["age"]], table["normal"]).margins(table[["age"]], "age")
