import json
import math

import pytest
import torch

from ansatz.likelihoods import create
from ansatz.linear import NetworkSummary, Summary, fit_linear
from ansatz.linear.effects import Effect
from ansatz.linear.summary import align, format_column, format_p


def dobson():
    """The randomised controlled trial of R's ``example(glm)``, Dobson (1990), page 93."""
    counts = torch.tensor([18, 17, 15, 20, 10, 20, 25, 13, 12]).double()
    outcome, treatment = torch.arange(9) % 3, torch.arange(9) // 3
    columns = [(outcome == 1), (outcome == 2), (treatment == 1), (treatment == 2)]
    names = ["outcome2", "outcome3", "treatment2", "treatment3"]
    return fit_linear(
        create("poisson"), torch.stack(columns, 1).double(), counts, feature_names=names
    )


def test_reads_like_r_on_rs_own_example():
    """Numbers as printed by R: summary(glm(counts ~ outcome + treatment, family = poisson()))."""
    text = str(dobson().summary(call="counts ~ outcome + treatment"))
    for words in (
        "Call: counts ~ outcome + treatment",
        "Likelihood: poisson, link log",
        "Estimate Std. Error z value Pr(>|z|)",
        "Signif. codes:  0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1",
        "(Dispersion parameter for poisson: 1)",
        "on 8  degrees of freedom",
        "on 4  degrees of freedom",
    ):
        assert words in text
    fit = dobson()
    assert fit.coefficients[:3, 0].tolist() == pytest.approx([3.045, -0.4543, -0.2930], abs=5e-4)
    assert fit.standard_errors[:3, 0].tolist() == pytest.approx([0.1709, 0.2022, 0.1927], abs=5e-5)
    assert fit.statistics[:3, 0].tolist() == pytest.approx([17.815, -2.247, -1.520], abs=5e-4)
    assert fit.p_values[1, 0] == pytest.approx(0.0246, abs=5e-5)
    assert fit.null_deviance == pytest.approx(10.5814, abs=5e-5)
    assert fit.residual_deviance == pytest.approx(5.1291, abs=5e-5)
    assert fit.aic == pytest.approx(56.76, abs=5e-3)
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert lines["(Intercept)"].endswith("<2e-16 ***")
    assert lines["outcome2"].endswith("0.0246 *")
    assert not lines["outcome3"].endswith("*")


def test_aliased_columns_are_na_and_messages_are_notes():
    x = torch.randn(30, 2)
    x = torch.cat([x, x[:, :1] + x[:, 1:]], 1)
    fit = fit_linear(create("normal", dispersion="constant"), x, torch.randn(30))
    text = str(fit.summary(rows_dropped=3))
    row = next(line for line in text.splitlines() if line.startswith("x3"))
    assert row.split() == ["x3", "NA", "NA", "NA", "NA"]
    assert "(3 rows with missing values dropped)" in text
    assert "Note: 1 column determined by others was dropped" in text
    assert "t value" in text and "by maximum likelihood" in text


def test_gamma_states_whose_aic_is_whose():
    y = torch.distributions.Gamma(2.0, 2.0).sample((40,))
    fit = fit_linear(create("gamma", dispersion="constant"), torch.randn(40, 1), y)
    text = str(fit.summary())
    assert f"AIC: {fit.aic:.6g}" in text
    assert f"(R: {fit.aic_as('R'):.6g}, statsmodels: {fit.aic_as('statsmodels'):.6g})" in text


def test_predicted_dispersion_has_a_second_table_and_no_deviance():
    x = torch.randn(60, 1)
    fit = fit_linear(create("normal"), x, x[:, 0] + torch.randn(60), dispersion="predicted")
    text = str(fit.summary())
    assert "Coefficients of location:" in text and "Coefficients of dispersion:" in text
    assert "-2 log-likelihood" in text and "deviance" not in text


def test_names_are_escaped_for_html_and_for_the_terminal():
    name = "<script>alert(1)</script>\x1b[2J\n"
    fit = fit_linear(create("poisson"), torch.randn(9, 1), torch.ones(9), feature_names=[name])
    summary = fit.summary()
    assert "\x1b" not in str(summary) and "\\x1b[2J\\n" in str(summary)
    assert "<script>" not in summary._repr_html_() and "&lt;script&gt;" in summary._repr_html_()


def test_the_dictionary_is_strict_json_with_the_same_numbers():
    fit = dobson()
    loaded = json.loads(json.dumps(Summary(fit).to_dict(), allow_nan=False))
    assert loaded["aic"] == fit.aic
    assert [row["name"] for row in loaded["coefficients"]] == list(fit.names)
    saturated = fit_linear(create("normal", dispersion="constant"), torch.eye(3), torch.ones(3))
    text = json.dumps(saturated.summary().to_dict(), allow_nan=False)
    assert json.loads(text)["dispersion"] is None


def test_a_networks_summary_has_no_aic():
    effects = [
        Effect("age", "per unit", 0.5, 0.25, 0.75, None),
        Effect("sex", "M - F", -1.0, -2.0, 0.5, None),
    ]
    arguments = {
        "call": "y ~ .",
        "likelihood": "gamma",
        "link": "log",
        "network": "mlp",
        "effects": effects,
        "held_out": 200,
        "parameters": 12,
    }
    summary = NetworkSummary(**arguments, deviance_explained=0.5, refits=20, level=0.9)
    text = str(summary)
    assert "AIC" not in text and "Held-out deviance explained: 50.0 % (200 rows)" in text
    assert "90 %, by the standard deviation over 20 bootstrap refits" in text
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert [float(v) for v in rows["sex"][-3:]] == [-1.0, -2.0, 0.5]
    without = str(NetworkSummary(**arguments, deviance_explained=None))
    assert "No intervals" in without and "no rows were held out" in without
    assert json.loads(json.dumps(summary.to_dict(), allow_nan=False))["effects"][0]["lower"] == 0.25
    assert math.isclose(summary.to_dict()["deviance_explained"], 0.5)


def test_columns_are_printed_as_r_prints_them():
    assert [format_p(p) for p in (1e-30, 0.01234, float("nan"))] == ["<2e-16", "0.0123", "NA"]
    assert format_column([1.5, -0.012345, float("nan")]) == ["1.5000", "-0.0123", "NA"]
    assert align(["", "Estimate", ""], [["a", "1.5", "*"]]) == ["  Estimate", "a      1.5 *"]


def test_the_likelihood_ratio_counts_the_slopes():
    x, y = torch.arange(4.0).unsqueeze(1), torch.tensor([1.0, 2.0, 4.0, 9.0])
    statistic, df, p = fit_linear(create("poisson"), x, y).likelihood_ratio
    assert (round(statistic, 3), df, round(p, 4)) == (9.036, 1, 0.0026)
