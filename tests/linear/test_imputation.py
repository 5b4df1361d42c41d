import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch
from statsmodels.imputation import mice

from ansatz import Regressor, load
from ansatz.errors import UsageError
from ansatz.linear import impute, pool

N = 400


def make(seed=0, n=N):
    """y = 1 + 2 a + b; b is missing more often where a is large: not completely at random."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = 0.6 * a + 0.8 * rng.normal(size=n)
    site = np.where(rng.random(n) < 1 / (1 + np.exp(-a)), "x", "z")
    y = 1 + 2 * a + b + 0.5 * (site == "z") + rng.normal(size=n)
    table = pd.DataFrame({"a": a, "b": b, "site": site})
    gone = rng.random(n) < 1 / (1 + np.exp(-(y - 1)))
    table.loc[gone, "b"] = np.nan
    table.loc[rng.random(n) < 0.2, "site"] = None
    return table, y


def test_pooling_is_rubins_rules():
    rng = np.random.default_rng(1)
    q = rng.normal(size=(6, 2))
    u = np.stack([np.diag(rng.uniform(1, 2, 2)) for _ in range(6)])
    found = pool(torch.tensor(q), torch.tensor(u), df_complete=40.0)
    for j in range(2):
        within, between = u[:, j, j].mean(), q[:, j].var(ddof=1)
        total = within + 7 / 6 * between
        share = 7 / 6 * between / total
        old = 5 / share**2
        observed = 41 / 43 * 40 * (1 - share)
        df = old * observed / (old + observed)
        r = 7 / 6 * between / within
        assert float(found.estimate[j]) == pytest.approx(q[:, j].mean())
        assert float(found.covariance[j, j]) == pytest.approx(total)
        assert float(found.df[j]) == pytest.approx(df)
        assert float(found.missing_information[j]) == pytest.approx((r + 2 / (df + 3)) / (r + 1))


def test_completed_tables_keep_what_was_observed_and_possible():
    table, y = make()
    for each in impute(table, ["site"], outcome=y, imputations=3, cycles=2):
        assert not each.isna().any().any()
        for name in table:
            seen = table[name].notna()
            assert (each.loc[seen, name] == table.loc[seen, name]).all()
            assert set(each[name]) <= set(table.loc[seen, name])


def test_imputations_differ_and_are_reproducible():
    table, y = make()
    first, second = impute(table, ["site"], outcome=y, imputations=2, cycles=2)
    assert not first["b"].equals(second["b"])
    again = impute(table, ["site"], outcome=y, imputations=2, cycles=2)
    pd.testing.assert_frame_equal(again[1], second)


def test_pooled_estimates_hold_the_truth_where_complete_rows_do_not():
    """b is missing by y: rows without gaps are a selection, imputed tables are not."""
    table, y = make(3, 3000)
    model = Regressor("normal", network="linear", impute=5).fit(table, y)
    fit = model.linear_
    found = fit.coefficients[:, 0].numpy()
    apart = (found - [1.0, 2.0, 1.0, 0.5]) / fit.standard_errors[:, 0].numpy()
    assert (np.abs(apart) < 4).all()
    rows = table.notna().all(axis=1)
    x = pd.get_dummies(table[rows], drop_first=True).to_numpy(float)
    complete = sm.OLS(y[rows], sm.add_constant(x)).fit()
    assert abs(complete.params[1] - 2.0) > 5 * complete.bse[1]


def test_pooled_estimates_are_near_those_of_statsmodels():
    table, y = make(5)
    model = Regressor("normal", network="linear", impute=20).fit(table[["a", "b"]], y)
    data = mice.MICEData(table[["a", "b"]].assign(y=y), k_pmm=5)
    np.random.seed(0)
    expected = mice.MICE("y ~ a + b", sm.OLS, data).fit(n_burnin=3, n_imputations=20)
    errors = model.linear_.standard_errors[:, 0].numpy()
    np.testing.assert_allclose(errors, expected.bse, rtol=0.3)
    # Both draw: the estimates differ by a part of the between-table standard deviation.
    assert (np.abs(model.linear_.coefficients[:, 0].numpy() - expected.params) < errors).all()


def test_the_summary_shows_the_fraction_of_missing_information(tmp_path):
    table, y = make()
    model = Regressor("normal", network="linear", impute=4).fit(table, y)
    text = str(model.summary())
    assert "FMI" in text and "4 completed tables" in text
    shares = model.linear_.pooled.missing_information
    assert float(shares[2, 0]) > float(shares[1, 0])  # b has the gaps
    model.save(tmp_path / "model")
    rows = table.dropna()
    np.testing.assert_array_equal(load(tmp_path / "model").predict(rows), model.predict(rows))


def test_a_table_without_gaps_is_fitted_once():
    table, y = make()
    whole = table[["a"]]
    plain = Regressor("normal", network="linear").fit(whole, y)
    model = Regressor("normal", network="linear", impute=4).fit(whole, y)
    np.testing.assert_array_equal(model.predict(whole), plain.predict(whole))
    assert any("nothing was imputed" in message for message in model.linear_.messages)


def test_formulas_and_clusters_go_with_imputation():
    table, y = make()
    groups = np.arange(N) % 40
    model = Regressor("normal", network="linear", impute=3, formula="a * site + bs(b, 3)")
    model.fit(table, y, groups=groups)
    assert model.linear_.covariance_kind == "cluster"
    assert "bs(b, 3)[2]" in model.linear_.names
    assert bool(torch.isfinite(model.linear_.p_values).all())


def test_imputation_is_for_linear_models():
    table, y = make()
    with pytest.raises(UsageError, match="network='linear'"):
        Regressor("normal", impute=3).fit(table, y)
    with pytest.raises(UsageError, match="at least 2"):
        Regressor("normal", network="linear", impute=1).fit(table, y)
