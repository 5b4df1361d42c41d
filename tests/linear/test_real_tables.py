"""Abalone and diamonds, fitted by us and by statsmodels."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch

from ansatz.likelihoods import create
from ansatz.linear import fit_linear

LOG = sm.families.links.Log()


def data_file(*parts):
    path = Path(os.environ.get("ANSATZ_DATA", "."), *parts)
    if "ANSATZ_DATA" not in os.environ or not path.exists():
        pytest.skip(f"{'/'.join(parts)} is not in $ANSATZ_DATA")
    return path


def abalone():
    frame = pd.read_csv(data_file("abalone", "abalone.data"), header=None)
    dummies = pd.get_dummies(frame[0], dtype=float, drop_first=True)
    return pd.concat([frame.iloc[:, 1:8].astype(float), dummies], axis=1), frame[8].astype(float)


def diamonds():
    frame = pd.read_csv(data_file("diamonds", "diamonds.csv.gz")).sample(3000, random_state=0)
    dummies = pd.get_dummies(frame[["cut", "color", "clarity"]], dtype=float, drop_first=True)
    numbers = frame[["carat", "depth", "table"]].astype(float)
    return pd.concat([np.log(numbers), dummies], axis=1), frame["price"].astype(float)


def agree(likelihood, family, x, y):
    names = [str(name) for name in x.columns]
    fit = fit_linear(
        likelihood, torch.tensor(x.to_numpy()), torch.tensor(y.to_numpy()), feature_names=names
    )
    glm = sm.GLM(y.to_numpy(), sm.add_constant(x.to_numpy()), family=family)
    theirs = glm.fit(tol=1e-14, maxiter=300)
    assert fit.converged and fit.gradient < 1e-8
    np.testing.assert_allclose(fit.coefficients[:, 0], theirs.params, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_errors[:, 0], theirs.bse, rtol=1e-6)
    np.testing.assert_allclose(fit.residual_deviance, theirs.deviance, rtol=1e-8)
    np.testing.assert_allclose(fit.null_deviance, theirs.null_deviance, rtol=1e-8)
    np.testing.assert_allclose(fit.aic_as("statsmodels"), theirs.aic, rtol=1e-8)
    return fit


def test_abalone_counts():
    agree(create("poisson"), sm.families.Poisson(), *abalone())


def test_abalone_ages_as_gamma():
    agree(create("gamma", dispersion="constant"), sm.families.Gamma(LOG), *abalone())


def test_diamond_prices_as_gamma_explain_nearly_all_deviance():
    fit = agree(create("gamma", dispersion="constant"), sm.families.Gamma(LOG), *diamonds())
    assert fit.residual_deviance < 0.03 * fit.null_deviance


def test_abalone_spread_depends_on_x():
    """Rings scatter more on older animals: predicted dispersion beats a constant one by far."""
    x, y = abalone()
    x, y = torch.tensor(x.to_numpy()), torch.tensor(y.to_numpy())
    constant = fit_linear(create("normal"), x, y)
    predicted = fit_linear(create("normal"), x, y, dispersion="predicted")
    assert predicted.converged and predicted.aic < constant.aic - 500
