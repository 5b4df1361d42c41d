"""The suite of coverage: what it simulates, what it measures, and that it goes on."""

import numpy as np
import pytest
import statsmodels.api as sm
import torch

from ansatz.bench import coverage
from ansatz.bench.finding import BenchOptions
from ansatz.likelihoods import Normal, Poisson


def test_a_replicate_is_a_function_of_case_and_number():
    x, y = coverage.simulate("gamma-100-5", 3)
    assert x.shape == (1_100, 5) and (y > 0).all()
    np.testing.assert_array_equal(y, coverage.simulate("gamma-100-5", 3)[1])
    assert not np.array_equal(y, coverage.simulate("gamma-100-5", 4)[1])
    assert set(coverage.simulate("binary-100-5", 0)[1]) == {0.0, 1.0}


@pytest.mark.parametrize("kind", ["normal", "poisson"])
def test_the_truth_holds_nine_tenths(kind):
    rng, raw = np.random.default_rng(0), torch.ones(40_000, 1, dtype=torch.float64)
    law = Normal(dispersion=1.0) if kind == "normal" else Poisson()
    y = rng.normal(1, 1, 40_000) if kind == "normal" else rng.poisson(np.e, 40_000).astype(float)
    found = coverage.held(law.distribution(raw), y)
    assert found == pytest.approx(0.9, abs=4 * (0.09 / 40_000) ** 0.5)


def test_the_slope_is_that_of_a_logistic_regression_on_the_log_odds():
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-2 * rng.normal(size=500)))
    y = (rng.uniform(size=500) < p).astype(float)
    odds = sm.add_constant(np.log(p / (1 - p)))
    expected = sm.Logit(y, odds).fit(disp=0).params[1]
    assert coverage.calibration_slope(y, p) == pytest.approx(expected, rel=1e-3)


def test_the_default_is_one_of_the_fitted_models():
    x, y = coverage.simulate("normal-100-5", 0)
    assert coverage._default("normal", x[:100], y[:100]) == "ensemble"
    assert coverage._default("normal", x, y) == "network"


def test_cases_run_in_parts_and_go_on(monkeypatch, tmp_path):
    asked = []

    def measure(case, replicate):
        asked.append((case, replicate))
        each = {"nll": 1.0 + replicate, "coverage": 0.9}
        names = ("linear", "ensemble", "default")
        return {**dict.fromkeys(names, each), "chosen": "ensemble", "seconds": 1.0}

    monkeypatch.setattr(coverage, "measure", measure)
    some = BenchOptions(only=("normal-100-5",), splits=(0, 1), folder=tmp_path)
    found = coverage.coverage(some)
    assert found[0].name == "normal-100-5: linear"
    assert [finding.holds for finding in found] == [True] * 3
    assert found[-1].facts["chosen"] == "ensemble" and found[-1].facts["nll"] == 1.5
    more = BenchOptions(only=("normal-100-5", "gamma-100-5"), splits=(0, 1, 2), folder=tmp_path)
    coverage.coverage(more)
    assert asked.count(("normal-100-5", 0)) == 1 and ("gamma-100-5", 2) in asked
