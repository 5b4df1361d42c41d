"""Numbers of the sections against what is known of them."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, precision_recall_fscore_support

import ansatz
from ansatz import Classifier, Regressor, SurvivalRegressor
from ansatz.data import Column
from ansatz.figures.number_format import number, percent, printable, with_error
from ansatz.fitting.model import estimator_of
from ansatz.fitting.replay import replay
from ansatz.outcomes.report.classes import spiegelhalter
from ansatz.report import gather, replayed
from ansatz.report.baselines import baselines, compare
from ansatz.report.costs import best_level, best_threshold, class_costs, number_costs
from ansatz.report.excess_loss import excess_losses
from ansatz.report.observed import observed_pairs
from ansatz.report.observed import section as observed
from ansatz.report.reliability import section as reliability
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


def test_a_group_with_larger_values_is_not_ranked_worse_under_a_scale_likelihood():
    """Gamma: the density scales as 1 / mu, so that the nll grows with log mu."""
    rng = np.random.default_rng(0)
    group = np.repeat(["large", "small", "noisy"], 300)
    mean = np.where(group == "large", 1000.0, 1.0)
    shape = np.where(group == "noisy", 0.7, 4.0)
    y = mean * rng.gamma(shape) / shape
    frame = pd.DataFrame({"k": group})
    model = Regressor("gamma", network="linear", likelihood_options={"dispersion": "constant"}).fit(
        frame, y
    )
    found = {each.level: each for each in subgroups(gather(model, frame, y))}
    assert max(found, key=lambda level: found[level].loss) == "large"
    assert next(iter(found)) == "noisy"
    assert found["large"].worse < 0 and found["noisy"].worse > 3 * found["noisy"].worse_error
    assert found["large"].excess == pytest.approx(found["small"].excess, abs=0.1)


@pytest.mark.parametrize("likelihood", ["normal", "student_t", "poisson", "bernoulli"])
def test_the_excess_loss_of_a_calibrated_model_is_zero_on_average(likelihood):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 1))
    outcomes = {
        "normal": x[:, 0] + rng.normal(size=4000),
        "student_t": x[:, 0] + rng.standard_t(5, size=4000),
        "poisson": rng.poisson(np.exp(x[:, 0])),
        "bernoulli": rng.uniform(size=4000) < 1 / (1 + np.exp(-x[:, 0])),
    }
    kind = Classifier if likelihood == "bernoulli" else Regressor
    model = kind(likelihood, network="linear").fit(x, outcomes[likelihood])
    found = excess_losses(gather(model, x, outcomes[likelihood]))
    assert found is not None and found.name == "nll - entropy"
    error = float(found.value.std()) / len(x) ** 0.5
    assert abs(float(found.value.mean())) < 3 * error


def test_the_excess_loss_of_censored_times_comes_from_their_normal_scores():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(3000, 1))
    time, end = np.exp(x[:, 0]) * rng.exponential(size=3000), rng.exponential(3, size=3000)
    y = np.column_stack([np.minimum(time, end), time <= end])
    model = SurvivalRegressor("weibull", network="linear").fit(x, y)
    found = excess_losses(gather(model, x, y))
    assert found is not None and found.name.startswith("(z")
    assert abs(float(found.value.mean())) < 3 * float(found.value.std()) / 3000**0.5


def test_predictions_are_drawn_against_outcomes(fitted):
    evidence = replayed(replay(fitted("regression")))
    ((name, predicted, seen),) = observed_pairs(evidence)
    assert name == "" and (predicted == evidence.point).all()
    assert (seen == evidence.y.to_numpy()).all()
    found = observed(evidence)
    slope = stats.linregress(predicted, seen).slope
    assert f"the prediction is {number(slope, 3)}, 1 if calibrated" in found.lead
    assert len(observed_pairs(replayed(replay(fitted("several targets"))))) > 1
    for kind in ("two classes", "directions"):
        assert observed(replayed(replay(fitted(kind)))) is None


def test_precision_and_recall_of_each_class_are_sklearns(fitted):
    evidence = replayed(replay(fitted("many classes")))
    (table,) = [p for p in reliability(evidence).parts if getattr(p, "head", [""])[0] == "class"]
    assert table.head == ["class", "rows", "precision", "recall", "F1"]
    code = evidence.distribution.probs.argmax(-1).numpy()
    truth = precision_recall_fscore_support(evidence.value.numpy(), code, zero_division=np.nan)
    for k, row in enumerate(table.rows):
        assert row[1] == truth[3][k]
        assert row[2:] == [
            None if np.isnan(value) else percent(value) for value in (t[k] for t in truth[:3])
        ]


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
    [(0, "0"), (1e-12, "1e−12"), (123456.7, "123,457"), (float("nan"), "–"), (-float("inf"), "−∞")],
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
