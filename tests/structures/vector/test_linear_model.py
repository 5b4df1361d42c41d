import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

from ansatz import Regressor
from ansatz.errors import UsageError
from ansatz.likelihoods import Normal


def test_a_dispersion_that_is_asked_for_depends_on_x():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    y = x[:, 0] + np.exp(0.5 * x[:, 0]) * rng.normal(size=400)
    options = {"dispersion": "predicted"}
    for likelihood in ({"likelihood_options": options}, {"likelihood": Normal(**options)}):
        model = Regressor(network="linear", **likelihood).fit(x, y)
        low, high = model.predict_dist([[-2.0], [2.0]]).stddev.tolist()
        assert high > 3 * low
        assert model.linear_.parameters == 4
    alike = Regressor(network="linear").fit(x, y).predict_dist([[-2.0], [2.0]]).scale
    assert float(alike[0]) == pytest.approx(float(alike[1]), rel=0.01)


def test_precisions_are_weighted_least_squares(numbers):
    X, y = numbers
    precision = np.random.default_rng(0).uniform(0.5, 4, size=60)
    model = Regressor(network="linear").fit(X, y, precision=precision)
    wls = sm.WLS(y, sm.add_constant(X), weights=precision).fit()
    assert_allclose(model.predict(X), wls.fittedvalues, rtol=1e-8)
    errors = [row["standard_error"] for row in model.summary().to_dict()["coefficients"]]
    assert_allclose(errors, wls.bse, rtol=1e-6)
    with pytest.raises(UsageError, match="sample_weight"):
        Regressor(widths=(4,), epochs=1).fit(X, y, precision=precision)


def test_several_targets_are_fitted_as_if_alone(numbers):
    X, y = numbers
    both = Regressor(network="linear").fit(X, np.stack([y, y**2], 1)).predict_dist(X)
    for k, alone in enumerate((y, y**2)):
        single = Regressor(network="linear").fit(X, alone).predict_dist(X)
        assert_allclose(both.mean[:, k], single.mean, rtol=1e-9)
        assert_allclose(both.variance[:, k], single.variance, rtol=1e-9)
