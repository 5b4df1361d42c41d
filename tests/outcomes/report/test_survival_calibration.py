"""Observed risks against lifelines, and calibration of the right likelihood."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.duration.survfunc import SurvfuncRight

from ansatz import SurvivalRegressor
from ansatz.figures.section import Figure, Table
from ansatz.outcomes.report.horizons import (
    calibrate,
    choose_horizons,
    incidence_risk,
    observed_risk,
    reference_curve,
)
from ansatz.outcomes.report.survival_calibration import section
from ansatz.report import gather, pit, quantile_residuals, residual_panels
from ansatz.report import interval_coverage as intervals


def cohort(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    event_time = rng.weibull(1.5, n) * np.exp(1 - 0.7 * x[:, 0])
    censored = rng.exponential(6, n)
    time = np.minimum(event_time, censored)
    return x, time, (event_time <= censored).astype(float), event_time


def test_the_observed_risk_is_that_of_kaplan_meier_with_greenwoods_interval():
    _, time, event, _ = cohort(120)
    fitted = SurvfuncRight(time, event)
    at = float(np.median(time))
    place = np.searchsorted(fitted.surv_times, at, side="right") - 1
    survival, error = fitted.surv_prob[place], fitted.surv_prob_se[place]
    # The delta method for log(-log S): d = dS / (S log S).
    reach = 1.96 * error / abs(survival * np.log(survival))
    ends = survival ** np.exp([-reach, reach])
    expected = (1 - survival, 1 - ends[0], 1 - ends[1])
    np.testing.assert_allclose(observed_risk(time, event, at), expected, rtol=1e-9)


def test_weights_are_rows_repeated_and_entries_shrink_the_risk_set():
    time, event = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 0, 1, 1])
    weighted = observed_risk(time, event, 3.5, weight=[1, 2, 1, 1])
    spelled = observed_risk(np.repeat(time, [1, 2, 1, 1]), np.repeat(event, [1, 2, 1, 1]), 3.5)
    assert weighted == pytest.approx(spelled)
    late = observed_risk(time, event, 1.5, entry=[0, 0, 2.5, 2.5])
    assert late[0] == pytest.approx(0.5)


def test_the_incidence_of_a_cause_stays_below_one_minus_kaplan_meier():
    _, time, event, _ = cohort(150)
    cause = event * (1 + (np.arange(150) % 2))
    one = incidence_risk(time, cause, 3.0, 1, resamples=20)
    two = incidence_risk(time, cause, 3.0, 2, resamples=20)
    total = observed_risk(time, event, 3.0)[0]
    assert one[0] + two[0] == pytest.approx(total)
    assert one[1] < one[0] < one[2]


def test_right_risks_lie_in_the_intervals_and_doubled_ones_do_not():
    inside, doubled = [], []
    for seed in range(4):
        x, time, event, _ = cohort(800, seed)
        scale = np.exp(1 - 0.7 * x[:, 0])
        risk = 1 - np.exp(-((2.0 / scale) ** 1.5))
        found = calibrate(risk, time, event, 2.0)
        inside += [part.low <= part.predicted <= part.high for part in found]
        wrong = calibrate(np.minimum(1, 2 * risk), time, event, 2.0)
        doubled += [part.low <= part.predicted <= part.high for part in wrong]
    assert len(inside) == 40 and sum(inside) >= 33 > 15 > sum(doubled)


def test_horizons_are_quartiles_of_the_event_times():
    time, event = np.arange(1.0, 101.0), np.ones(100)
    assert choose_horizons(time, event) == [25.0, 50.0, 75.0]
    assert choose_horizons(time, np.zeros(100)) == []


def test_the_reference_is_the_training_rows_curve():
    np.testing.assert_allclose(reference_curve([1, 2, 3.0], [1, 0, 1], [0.5, 1.5]), [1, 2 / 3])


@pytest.mark.parametrize("likelihood", ["weibull", "cox"])
def test_every_section_of_a_survival_model_can_be_written(likelihood):
    x, time, event, _ = cohort(240)
    y = np.stack([time, event], 1)
    learn, test = slice(0, 120), slice(120, 240)
    model = SurvivalRegressor(likelihood, network="linear").fit(x[learn], y[learn])
    evidence = gather(model, x[test], y[test], training=(x[learn], y[learn]))
    found = section(evidence)
    assert sum(isinstance(part, Figure) for part in found.parts) == 2
    table = [part for part in found.parts if isinstance(part, Table)][-1]
    assert [row[0] for row in table.rows] == ["Harrell", "Uno", "Antolini"]
    assert float(table.rows[0][1]) == pytest.approx(
        model.evaluate(x[test], y[test])["c_index"], abs=1e-3
    )
    for module in (pit, intervals, quantile_residuals, residual_panels):
        assert module.section(evidence).parts
    assert "censoring is independent" in found.parts[-1].text


def test_late_entries_and_intervals_are_said_and_not_computed():
    x, time, event, _ = cohort(80)
    y = np.stack([time + 0.5, event, np.where(np.arange(80) % 2, 0.4, 0.0)], 1)
    model = SurvivalRegressor("weibull", network="linear").fit(x, y)
    found = section(gather(model, x, y))
    assert any("late entry" in getattr(part, "text", "") for part in found.parts)
    ends = pd.DataFrame({"lower": time, "upper": np.where(event > 0, time + 1, np.inf)})
    model = SurvivalRegressor("weibull", network="linear").fit(x, ends)
    evidence = gather(model, x, ends)
    assert "interval-censored" in section(evidence).lead
    assert pit.section(evidence).parts


def test_causes_are_calibrated_one_by_one():
    x, time, event, _ = cohort(120)
    cause = event * (1 + (np.arange(120) % 2))
    y = np.stack([time, cause], 1)
    model = SurvivalRegressor("discrete_hazard", epochs=1, widths=[4]).fit(x, y)
    found = section(gather(model, x, y))
    assert sum(isinstance(part, Figure) for part in found.parts) == 2
