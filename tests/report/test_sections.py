"""Numbers of the sections against what is known of them."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

import ansatz
from ansatz import Classifier, Regressor
from ansatz.data import Column
from ansatz.figures.number_format import number, percent, printable, with_error
from ansatz.fitting.model import estimator_of
from ansatz.fitting.replay import replay
from ansatz.outcomes.report.classes import spiegelhalter
from ansatz.report import gather, replayed
from ansatz.report.baselines import baselines, compare
from ansatz.report.costs import best_level, best_threshold, class_costs, number_costs
from ansatz.report.what_was_fitted import command_line
from ansatz.structures.vector.report.data_summary import summarize_column
from ansatz.structures.vector.report.effects import refit_models
from ansatz.structures.vector.report.extrapolation import extrapolated
from ansatz.structures.vector.report.subgroups import holm, subgroups


@pytest.mark.parametrize("kind", ["regression", "counts", "two classes", "several targets"])
def test_scores_are_those_of_the_fit(kind, fitted):
    fit = fitted(kind)
    found = compare(replayed(replay(fit)))
    for metric in found:
        for name, truth in (
            ("model", fit.metrics),
            ("linear", fit.linear),
            ("constant", fit.constant),
        ):
            if name in metric.scores:
                assert metric.scores[name].value == pytest.approx(truth[metric.metric], rel=1e-6)
        if metric.metric != "ece":
            assert metric.scores["model"].error > 0


def test_the_estimates_behind_the_errors_have_the_values_of_the_metrics(fitted):
    for kind in ("regression", "two classes", "many classes", "several targets", "directions"):
        evidence = replayed(replay(fitted(kind)))
        for forecast in baselines(evidence).forecasts:
            evaluated = forecast.evaluate(evidence.weight)
            for name, estimate in evidence.outcome_report.estimates(evidence, forecast).items():
                assert estimate.value == pytest.approx(evaluated[name], rel=1e-6, abs=1e-9), name


def test_a_paired_difference_is_that_of_the_rows(fitted):
    evidence = replayed(replay(fitted("regression")))
    model, linear = (baselines(evidence).find(name).losses for name in ("model", "linear"))
    gap = (linear - model).numpy()
    found = compare(evidence)[0].better["linear"]
    assert found.value == pytest.approx(gap.mean())
    assert found.error == pytest.approx(stats.sem(gap))


def test_boosted_trees_are_scikit_learns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    y = (x[:, 0] + rng.normal(size=200) > 0).astype(int)
    model = Classifier(network="linear").fit(x[:150], y[:150])
    evidence = gather(model, x[150:], y[150:], training=(x[:150], y[:150]))
    trees = HistGradientBoostingClassifier(random_state=0).fit(x[:150], y[:150])
    truth = log_loss(y[150:], trees.predict_proba(x[150:]))
    assert float(baselines(evidence).find("boosted trees").losses.mean()) == pytest.approx(truth)


def test_spiegelhalters_z_is_standard_normal_for_calibrated_forecasts():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 300)
    draws = [
        spiegelhalter(
            torch.from_numpy((rng.random(300) < p).astype(float)),
            torch.from_numpy(p),
            torch.ones(300),
        )
        for _ in range(400)
    ]
    assert stats.kstest(draws, "norm").pvalue > 0.01


def test_the_best_threshold_and_level_cost_least():
    rng = np.random.default_rng(0)
    p = torch.from_numpy(rng.uniform(size=200_000))
    event = (torch.from_numpy(rng.uniform(size=200_000)) < p).long()
    grid = np.linspace(0.05, 0.95, 19)
    costs = [float(class_costs(event, (p >= t).long(), 4.0, 1.0).mean()) for t in grid]
    assert grid[np.argmin(costs)] == pytest.approx(best_threshold(4.0, 1.0), abs=0.051)
    y = torch.from_numpy(rng.normal(size=200_000))
    levels = stats.norm.ppf(grid)
    costs = [float(number_costs(y, torch.full_like(y, q), 3.0, 1.0).mean()) for q in levels]
    assert grid[np.argmin(costs)] == pytest.approx(best_level(3.0, 1.0), abs=0.051)


def test_a_group_is_evaluated_against_the_other_rows():
    """Two means of independent rows: Welch's standard error, up to n - 1 against n."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"k": np.repeat(["a", "b"], 100)})
    y = rng.normal(size=200) * np.where(frame.k == "b", 3, 1)
    evidence = gather(Regressor("normal", network="linear").fit(frame, y), frame, y)
    worst = subgroups(evidence)[0]
    losses = evidence.row_losses().numpy()
    truth = stats.ttest_ind(losses[100:], losses[:100], equal_var=False)
    assert (worst.level, worst.rows) == ("b", 100)
    assert worst.worse / worst.worse_error == pytest.approx(truth.statistic, rel=0.01)
    adjusted = holm(np.array([0.01, 0.5, 0.02]))
    assert adjusted.tolist() == pytest.approx([0.03, 0.5, 0.04])


def test_rows_beyond_the_training_rows_are_flagged():
    learn = pd.DataFrame({"x": [0.0, 1.0, 2.0, 0.5], "k": ["a", "b", "a", "b"]})
    model = Regressor("normal", network="linear").fit(learn, [0.0, 1.0, 2.0, 0.3])
    test = pd.DataFrame({"x": [-1.0, 1.5, 9.0, np.nan, 1.0], "k": ["a", "c", "b", "a", "b"]})
    evidence = gather(model, test, np.zeros(5), training=(learn, [0.0, 1.0, 2.0, 0.3]))
    found, rows = extrapolated(evidence)
    assert rows.tolist() == [True, True, True, True, False]
    counts = {item.column: (item.below, item.above, item.unseen) for item in found}
    assert counts == {"x": (1, 1, 1), "k": (0, 0, 1)}


def test_refits_keep_groups_together(fitted):
    evidence = replayed(replay(fitted("groups")), settings={"refits": 2})
    models, words = refit_models(evidence)
    assert len(models) == 2 and "groups" in words
    a, b = (estimator_of(model).predict(evidence.X) for model in models)
    assert not np.allclose(a, b)


def test_columns_are_summed_up():
    found = summarize_column(pd.Series([np.nan, np.nan]), Column(name="a", role="constant"))
    assert found.words == "nothing" and found.missing == 2
    levels = summarize_column(pd.Series(list("aab")), Column(name="k", role="categorical"))
    assert levels.words == "a 67 %, b 33 %"


def test_the_command_of_a_report_repeats_the_fit(tmp_path, monkeypatch, capsys):
    import shlex

    from ansatz.cli.main import run

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a b": rng.normal(size=60), "k": rng.choice(["u", "v"], 60)})
    frame.assign(y=frame["a b"] + rng.normal(size=60)).to_csv("t.csv", index=False)
    options = {"likelihood": "student_t", "network": "linear", "seed": 3}
    fit = ansatz.fit("t.csv", target="y", roles={"k": "categorical"}, out="m", **options)
    command = command_line(replayed(replay(fit)))
    assert run([*shlex.split(command)[1:], "--out", "again", "-q", "--json"]) == 0
    again = ansatz.load("again")
    np.testing.assert_array_equal(again.predict(frame), fit.model.predict(frame))


@pytest.mark.parametrize(
    "value, text",
    [(0, "0"), (1e-12, "1e−12"), (123456.7, "123457"), (float("nan"), "–"), (-float("inf"), "−∞")],
)
def test_numbers_read_alike_everywhere(value, text):
    assert number(value) == text


def test_an_error_gives_the_digits_of_its_value():
    assert with_error(123.456, 9.87) == "123.5 ± 9.9"
    assert with_error(0.00012346, 0.0000042) == "0.0001235 ± 0.0000042"
    assert with_error(12345.6, 780.0) == "12350 ± 780"
    assert with_error(1.0, float("nan")) == "1"
    assert percent(0.0) == "0 %"


def test_names_are_printable():
    assert printable("a\u2028b\u200d\ud800") == "a\\u2028b\\u200d\\ud800"
    assert len(printable("x" * 10**6, 60)) == 60


def test_a_difference_is_written_in_standard_errors():
    from ansatz.report.baselines import Score
    from ansatz.report.score_tables import assess_difference

    vague = assess_difference("the linear model", "nll", Score(0.02, 0.05), 50)
    assert "not distinguishable" in vague and "0.4 standard errors (with 50 rows" in vague
    found = assess_difference("the linear model", "nll", Score(0.3, 1e-16), 500)
    assert found == (
        "It beats the linear model by 0.3 ± 1e−16 in nll, more than 1,000 standard errors."
    )
