"""Tests of nested linear models in a comparison, against fits by hand and statsmodels."""

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

import ansatz
from ansatz.cli.main import run
from ansatz.errors import DataError
from ansatz.report.compare import compare


def make(rows=120):
    rng = np.random.default_rng(3)
    a, b, c = rng.normal(size=(3, rows))
    life = np.exp(0.5 * a) * rng.exponential(size=rows)
    end = rng.exponential(3.0, size=rows)
    return pd.DataFrame(
        {
            "a": a,
            "b": b,
            "c": c,
            "y": 1 + a + 0.3 * b + rng.normal(size=rows),
            "n": rng.poisson(np.exp(0.3 + 0.4 * a + 0.2 * c)),
            "t": np.minimum(life, end),
            "e": (life <= end).astype(int),
            "site": rng.integers(0, 15, size=rows),
            "w": rng.integers(1, 4, size=rows),
        }
    )


TABLE = make()


def fit(formula, likelihood="normal", test=0.0, **options):
    return ansatz.fit(
        TABLE, formula=formula, likelihood=likelihood, network="linear", test=test, **options
    )


def test_the_likelihood_ratio_is_that_of_statsmodels():
    found = compare(fit("n ~ a", "poisson"), fit("n ~ a + b + c", "poisson")).nested
    logs = [
        smf.glm(terms, TABLE, family=sm.families.Poisson()).fit().llf
        for terms in ("n ~ a", "n ~ a + b + c")
    ]
    ratio, wald = found.tests
    assert ratio.statistic == pytest.approx(2 * (logs[1] - logs[0]), rel=1e-6)
    assert (ratio.df, wald.df, found.added, found.rows) == (2, 2, ["b", "c"], 120)


def test_walds_test_of_a_normal_model_is_the_f_test_of_anova():
    """In whatever order the two models are given."""
    found = compare(fit("y ~ a + b + c"), fit("y ~ a")).nested
    small, large = smf.ols("y ~ a", TABLE).fit(), smf.ols("y ~ a + b + c", TABLE).fit()
    f, p, _ = large.compare_f_test(small)
    assert found.tests[1].statistic == pytest.approx(f, rel=1e-6)
    assert found.tests[1].p_value == pytest.approx(p, rel=1e-6)


def test_columns_that_are_combinations_are_nested_without_a_wald_test():
    """A line lies within a cubic spline, whose columns have other names."""
    found = compare(fit("y ~ a"), fit("y ~ bs(a, 5)")).nested
    assert [test.kind for test in found.tests] == ["likelihood ratio"]
    assert found.tests[0].df == 4


def test_cox_and_strata_compare_partial_likelihoods():
    columns = {"target": "t", "event": "e", "network": "linear", "test": 0.0, "strata": "site"}
    small = ansatz.fit(TABLE, drop=["b", "c", "y", "n", "w"], **columns)
    large = ansatz.fit(TABLE, drop=["y", "n", "w"], **columns)
    found = compare(small, large).nested
    logs = [each.fitted.linear[0].log_likelihood for each in (small, large)]
    assert found.tests[0].statistic == pytest.approx(2 * (logs[1] - logs[0]))
    assert found.added == ["b", "c"]


def test_a_robust_model_has_walds_test_alone():
    found = compare(fit("y ~ a", errors="HC3"), fit("y ~ a + b", errors="HC3")).nested
    own = smf.ols("y ~ a + b", TABLE).fit(cov_type="HC3", use_t=True)
    assert [test.kind for test in found.tests] == ["Wald"]
    assert found.tests[0].statistic == pytest.approx(float(own.tvalues["b"]) ** 2, rel=1e-6)


@pytest.mark.parametrize(
    "one, other",
    [
        (("y ~ a", "normal", {}), ("y ~ b + c", "normal", {})),  # other columns
        (("y ~ a", "normal", {}), ("y ~ a + b", "laplace", {})),  # another likelihood
        (("n ~ a", "poisson", {}), ("n ~ a + b", "poisson", {"link": "sqrt"})),
        (("y ~ a", "normal", {}), ("y ~ a + b", "normal", {"penalty": "ridge=0.1"})),
        (("y ~ a", "normal", {}), ("y ~ a + b", "normal", {"weights": "w"})),
    ],
)
def test_others_are_not_nested(one, other):
    fits = [fit(terms, name, group="site", test=0.3, **more) for terms, name, more in (one, other)]
    assert compare(*fits).nested is None


def test_the_test_rows_are_scored_as_well(tmp_path, capsys):
    """Groups split alike whatever the columns; saved models are fitted again for their test."""
    TABLE.to_csv(tmp_path / "table.csv", index=False)
    common = {"likelihood": "normal", "network": "linear", "group": "site", "test": 0.3}
    for name, terms in (("small", "y ~ a"), ("large", "y ~ a + b")):
        path = tmp_path / "table.csv"
        made = ansatz.fit(str(path), formula=terms, out=tmp_path / name, **common)
    names = [str(tmp_path / "small"), str(tmp_path / "large")]
    assert run(["compare", *names, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["scores"][0]["rows"] == made.rows["test"]
    assert document["nested"]["rows"] == made.rows["train"]
    assert run(["compare", *names]) == 0
    assert "is nested in" in capsys.readouterr().out


def test_without_test_rows_other_models_are_refused_with_advice():
    with pytest.raises(DataError, match="has no test rows"):
        compare(fit("y ~ a"), fit("y ~ b"))
    with pytest.raises(
        DataError, match=r"Nested linear models are tested on all rows: .* --test 0"
    ):
        compare(fit("y ~ a", test=0.3), fit("y ~ a + b", test=0.3))
