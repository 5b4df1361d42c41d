import json
import re

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from tests.estimators.conftest import TINY

import ansatz
from ansatz import Classifier, Regressor

FAMILIES = {
    "normal": (sm.families.Gaussian(), lambda n, c: n),
    "poisson": (sm.families.Poisson(), lambda n, c: c),
    "gamma": (sm.families.Gamma(sm.families.links.Log()), lambda n, c: np.exp(n)),
}


@pytest.mark.parametrize("likelihood", FAMILIES)
@pytest.mark.parametrize("extra", ["plain", "weights", "offset"])
def test_coefficients_and_errors_are_statsmodels(mixed, likelihood, extra):
    frame, number, _, count = mixed
    family, outcome = FAMILIES[likelihood]
    data = frame[["a", "town"]].assign(y=outcome(number, count))
    weight = np.arange(80) % 3 + 1 if extra == "weights" else None
    offset = np.linspace(-0.5, 0.5, 80) if extra == "offset" else None
    model = Regressor(likelihood, network="linear").fit(
        data[["a", "town"]], data["y"], weight, offset=offset
    )
    glm = smf.glm("y ~ a + town", data, family=family, freq_weights=weight, offset=offset).fit(
        tol=1e-12, maxiter=200
    )
    table = model.summary().to_dict()
    found = {row["name"]: row for row in table["coefficients"]}
    for ours, theirs in {
        "(Intercept)": "Intercept",
        "a": "a",
        "town[Jena]": "town[T.Jena]",
        "town[Weimar]": "town[T.Weimar]",
    }.items():
        assert found[ours]["estimate"] == pytest.approx(glm.params[theirs], rel=1e-6, abs=1e-8)
        assert found[ours]["standard_error"] == pytest.approx(glm.bse[theirs], rel=1e-6)
    assert_allclose(model.predict(data[["a", "town"]], offset=offset), glm.fittedvalues, rtol=1e-6)


def test_classes_are_logistic_regression(mixed):
    frame, _, label, _ = mixed
    data = frame[["a", "town"]].assign(y=(label == "yes").astype(int))
    model = Classifier(network="linear").fit(data[["a", "town"]], label)
    logit = smf.logit("y ~ a + town", data).fit(disp=0, tol=1e-12)
    # The mean of the probabilities over the sampling distribution of the coefficients.
    eta = logit.model.exog @ logit.params.to_numpy()
    error = np.sqrt(((logit.model.exog @ logit.cov_params().to_numpy()) * logit.model.exog).sum(1))
    grid = np.linspace(-8, 8, 801)
    density = np.exp(-(grid**2) / 2) / np.exp(-(grid**2) / 2).sum()
    p = (density / (1 + np.exp(-(eta[:, None] + error[:, None] * grid)))).sum(1)
    assert_allclose(model.predict_proba(data[["a", "town"]])[:, 1], p, rtol=1e-4)
    assert "town[Jena]" in str(model.summary())


def test_it_reads_like_rs(mixed):
    frame, number, _, _ = mixed
    model = Regressor(network="linear").fit(frame, pd.Series(number, name="price"))
    text = str(model.summary())
    for part in (
        r"^Call: price ~ a \+ b \+ town$",
        r"^Likelihood: normal, link identity$",
        r"^Coefficients:$",
        r"Estimate +Std\. Error +t value +Pr\(>\|t\|\)",
        r"^\(Intercept\) ",
        r"^town\[Jena\] ",
        r"^b\[missing\] ",
        r"Dispersion parameter",
        r"Null deviance: .* on 79 +degrees of freedom",
        r"Residual deviance: .* on 74 +degrees of freedom",
        r"AIC: ",
    ):
        assert re.search(part, text, flags=re.MULTILINE), part


def test_what_went_wrong_is_said_in_words(mixed):
    frame, number, _, _ = mixed
    twice = frame[["a"]].assign(b=2 * frame["a"])
    assert "b" in str(Regressor(network="linear").fit(twice, number).summary())
    dropped = Regressor(network="linear").fit(twice, number).linear_.messages
    assert any("determined by others" in said for said in dropped)
    perfect = np.where(frame["a"] > 0, "yes", "no")
    said = Classifier(network="linear").fit(frame[["a"]], perfect).linear_.messages
    assert any("separation" in sentence for sentence in said)


def test_a_saved_linear_model_keeps_its_summary(mixed, tmp_path):
    frame, number, _, _ = mixed
    model = Regressor(network="linear").fit(frame, number)
    again = ansatz.load(model.save(tmp_path / "model"))
    assert str(again.summary()) == str(model.summary())
    assert again.summary().to_dict() == model.summary().to_dict()


def test_several_targets_have_a_summary_each(mixed):
    frame, number, _, _ = mixed
    both = pd.DataFrame({"u": number, "v": -number})
    text = str(Regressor(network="linear").fit(frame, both).summary())
    assert "Call: u ~ a + b + town" in text and "Call: v ~ a + b + town" in text


# Networks.


def test_a_network_has_effects_with_intervals_in_that_place(mixed):
    frame, number, _, _ = mixed
    frame = frame[["a", "town"]]
    model = Regressor(widths=(16,), epochs=150, learning_rate=1e-2).fit(frame, number)
    summary = model.summary(frame, number, training=(frame, number), refits=3)
    text = str(summary)
    assert "AIC" not in text and "3 bootstrap refits" in text
    effects = {effect.name: effect for effect in summary.effects if effect.name == "a"}
    assert effects["a"].estimate == pytest.approx(1.0, abs=0.4)  # y = a + town + noise
    assert effects["a"].lower <= effects["a"].upper
    share = float(re.search(r"deviance explained: ([\d.]+) %", text)[1]) / 100
    assert share == pytest.approx(
        1 - np.mean((number - model.predict(frame)) ** 2) / np.var(number), abs=0.02
    )


def test_without_rows_a_network_says_what_it_needs(numbers):
    text = str(Regressor(**TINY).fit(*numbers).summary())
    assert "summary(X, y)" in text and "no rows were held out" in text


def test_an_array_names_its_columns_by_number(numbers):
    X, y = numbers
    model = Regressor(**TINY).fit(X, y)
    names = {effect.name for effect in model.summary(X, y, refits=0).effects}
    assert names == {"x1", "x2", "x3"}


def test_a_likelihood_without_deviance_has_effects_all_the_same(numbers):
    X, y = numbers
    summary = Regressor("laplace", **TINY).fit(X, y).summary(X, y, refits=0)
    assert summary.deviance_explained is None and len(summary.effects) == 3


def test_effects_on_classes_are_on_their_probabilities(mixed):
    frame, _, label, _ = mixed
    model = Classifier(**TINY).fit(frame[["a", "town"]], label)
    assert "yes" in str(model.summary(frame[["a", "town"]], label, refits=0))


def test_names_are_escaped_in_a_notebook(numbers):
    X, y = numbers
    frame = pd.DataFrame(X, columns=["<script>alert(1)</script>", "b", "c"])
    for model in (Regressor(network="linear"), Regressor(**TINY)):
        summary = model.fit(frame, y).summary(frame, y, refits=0)
        assert "<script>" not in summary._repr_html_()


def test_the_call_names_the_columns_that_were_used_and_the_offset():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "same": 7, "years": rng.uniform(1, 2, size=60)})
    frame["n"] = rng.poisson(frame["years"])
    fit = ansatz.fit(frame, target="n", exposure="years", network="linear")
    assert "Call: n ~ x + offset(log(years))\n" in str(fit.summary())


def test_what_is_described_is_plain_data(mixed):
    frame, number, label, _ = mixed
    for model, y in ((Regressor(**TINY), number), (Classifier(network="linear"), label)):
        described = model.fit(frame, y).describe()
        assert json.loads(json.dumps(described)) == described
        assert [column["name"] for column in described["columns"]] == ["a", "b", "town"]
    assert described["classes"] == ["no", "yes"] and described["network"] == "linear"


def test_a_fit_describes_its_evidence(mixed, tmp_path):
    frame, number, _, _ = mixed
    table = frame.assign(price=number)
    fit = ansatz.fit(
        table, target="price", likelihood="normal", out=tmp_path / "model", options=TINY
    )
    described = ansatz.load(tmp_path / "model").describe()
    assert described == fit.model.describe()
    assert described["metrics"] == fit.metrics and described["rows"] == fit.rows
    assert described["recipe"] == fit.recipe["recipe"] and described["target"] == ["price"]
