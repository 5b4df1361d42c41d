"""Survival by predicted risk, in the report."""

import numpy as np
import pandas as pd

import ansatz
from ansatz import SurvivalRegressor
from ansatz.figures.section import Figure, Table
from ansatz.likelihoods import Weibull
from ansatz.outcomes.cox_comparison import CoxComparison
from ansatz.outcomes.report.risk_groups import risk_groups, section
from ansatz.report import gather


def cohort(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    time = rng.weibull(1.5, n) * np.exp(1 - 0.9 * x[:, 0])
    end = rng.exponential(6, n)
    return x, np.minimum(time, end), (time <= end).astype(float)


def test_groups_are_thirds_by_risk_and_ties_stay_together():
    risk = np.random.default_rng(0).normal(size=300)
    group = risk_groups(risk, np.ones(300))
    assert np.bincount(group).tolist() == [100, 100, 100]
    assert risk[group == 0].max() < risk[group == 1].min()
    tied = risk_groups(np.repeat([0.0, 1.0], 50), np.ones(100))
    assert len(set(tied[:50])) == len(set(tied[50:])) == 1


def test_the_report_shows_curves_numbers_at_risk_and_the_test():
    x, time, event = cohort()
    model = SurvivalRegressor("cox", network="linear").fit(x[:150], time[:150], event=event[:150])
    y = np.stack([time[150:], event[150:]], 1)
    found = section(gather(model, x[150:], y))
    assert found is not None
    assert "Log-rank test of the 3 groups" in found.lead
    assert "Median follow-up" in found.lead
    figures = [part for part in found.parts if isinstance(part, Figure)]
    at_risk, events = [part for part in found.parts if isinstance(part, Table)]
    assert len(figures) == 1
    assert [row[1] for row in at_risk.rows] == ["50", "50", "50"]
    numbers = np.array([[float(cell) for cell in row[1:]] for row in at_risk.rows])
    assert (np.diff(numbers, axis=1) <= 0).all()
    assert sum(float(row[2]) for row in events.rows) == event[150:].sum()


def test_an_automatic_likelihood_that_cox_beats_is_noted():
    assert CoxComparison(0.607, 0.616, 0.004).note == (
        "linear cox orders the test rows better: c_index 0.616 against 0.607 (difference 0.009, "
        "standard error 0.004). To take it: --likelihood cox --network linear."
    )
    assert CoxComparison(0.616, 0.607, 0.004).note == ""
    x, time, event = cohort(200)
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "t": time, "e": event})
    poor = {"widths": [2], "epochs": 1, "learning_rate": 1e-6}
    fit = ansatz.fit(table, target="t", event="e", options=poor)
    (note,) = [note for note in fit.notes if "linear cox" in note]
    assert f"against {fit.metrics['c_index']:.3f}" in note
    named = ansatz.fit(table, target="t", event="e", likelihood="weibull", options=poor)
    assert isinstance(named.fitted.likelihood.likelihood, Weibull)
    assert not [note for note in named.notes if "linear cox" in note]
