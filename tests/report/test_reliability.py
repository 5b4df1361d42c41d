"""Reliability and decomposed scores against isotonic regression, areas against naive sums."""

import math

import numpy as np
import pytest
import torch
from sklearn import metrics as sklearn_metrics
from sklearn.isotonic import IsotonicRegression

from ansatz import Classifier
from ansatz.figures.section import Figure
from ansatz.metrics import auc_estimate, influence_error
from ansatz.report import gather
from ansatz.report.corp import add, decompose, reliability
from ansatz.report.discrimination import (
    bootstrap_counts,
    confusion,
    logit_interval,
    precision_recall_curve,
    roc_curve,
)
from ansatz.report.reliability import questions, section


def forecasts(n=400, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 1.2, n).round(2)  # with ties
    return (rng.random(n) < p).astype(float), p


def test_the_line_is_sklearns_isotonic_regression():
    y, p = forecasts()
    found = reliability(y, p, resamples=2)
    theirs = IsotonicRegression(y_min=0, y_max=1).fit(p, y)
    np.testing.assert_allclose(found.calibrated, theirs.predict(found.forecast), atol=1e-12)
    assert found.weight.sum() == len(y)


def test_pooling_adjacent_violators_by_hand():
    found = reliability([0, 1, 0, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.9], resamples=2)
    np.testing.assert_allclose(found.calibrated, [0, 1 / 3, 1 / 3, 1 / 3, 1])


@pytest.mark.parametrize("score", ["brier", "log"])
def test_the_parts_of_a_score_add_up_to_it_and_none_is_negative(score):
    y, p = forecasts()
    p = p.clip(0.01, 0.99)
    found = decompose(y, p, score)
    plain = (p - y) ** 2 if score == "brier" else -np.log(np.where(y > 0, p, 1 - p))
    assert found.score == pytest.approx(plain.mean(), abs=1e-14)
    total = found.miscalibration - found.discrimination + found.uncertainty
    assert total == pytest.approx(found.score, abs=1e-14)
    assert min(found) >= 0


def test_the_brier_score_of_classes_is_the_sum_over_classes():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 2, 3], 300)
    code = np.array([rng.choice(3, p=row) for row in probs])
    total = add([decompose((code == k) * 1.0, probs[:, k]) for k in range(3)])
    assert total.score == pytest.approx(((probs - np.eye(3)[code]) ** 2).sum(1).mean())
    parts = total.miscalibration - total.discrimination + total.uncertainty
    assert parts == pytest.approx(total.score)


def test_weights_are_rows_repeated():
    y, p = forecasts(80)
    times = np.arange(80) % 3
    weighted, spelled = (
        decompose(y, p, weight=times),
        decompose(np.repeat(y, times), np.repeat(p, times)),
    )
    np.testing.assert_allclose(weighted, spelled)


def test_right_probabilities_stay_in_the_band_and_wrong_ones_leave_it():
    shares = []
    for seed in range(12):
        y, p = forecasts(600, seed)
        shares.append(reliability(y, p, seed=seed, resamples=100).outside)
    assert abs(np.mean(shares) - 0.1) < 0.06  # 10 % at each forecast
    y, p = forecasts(2000)
    sharp = p**2 / (p**2 + (1 - p) ** 2)  # too sure
    assert reliability(y, sharp, resamples=100).outside > 0.5
    assert decompose(y, sharp).miscalibration > 3 * decompose(y, p).miscalibration


def delong(y, s):
    """Placement values by the double loop."""
    up, down = s[y == 1], s[y == 0]
    psi = (up[:, None] > down) + 0.5 * (up[:, None] == down)
    v10, v01 = psi.mean(1), psi.mean(0)
    return psi.mean(), math.sqrt(v10.var(ddof=1) / len(up) + v01.var(ddof=1) / len(down))


def test_the_area_and_its_error_are_delongs_by_the_double_loop():
    y, s = forecasts(150)
    area, error = delong(y, s)
    found = auc_estimate(torch.from_numpy(y), torch.from_numpy(s))
    assert found.value == pytest.approx(area)
    assert influence_error(found.influence) == pytest.approx(error, rel=1e-9)
    curve = roc_curve(y, s)
    assert (curve.low, curve.high) == pytest.approx(logit_interval(area, error))


def test_delongs_error_is_that_of_the_bootstrap():
    y, s = forecasts(300)
    found = auc_estimate(torch.from_numpy(y), torch.from_numpy(s))
    samples = [
        sklearn_metrics.roc_auc_score(y, s, sample_weight=counts)
        for counts in bootstrap_counts(300, 300, seed=1)
    ]
    assert influence_error(found.influence) == pytest.approx(np.std(samples), rel=0.15)


def test_the_curves_are_sklearns():
    y, s = forecasts()
    roc, pair = roc_curve(y, s), precision_recall_curve(y, s, resamples=10)
    false, true, _ = sklearn_metrics.roc_curve(y, s, drop_intermediate=False)
    np.testing.assert_allclose(roc.x, false)
    np.testing.assert_allclose(roc.y, true)
    assert pair.area == pytest.approx(sklearn_metrics.average_precision_score(y, s))
    assert pair.low < pair.area < pair.high
    precision, recall, _ = sklearn_metrics.precision_recall_curve(y, s)
    np.testing.assert_allclose(pair.y[1:], precision[:-1][::-1])
    np.testing.assert_allclose(pair.x[1:], recall[:-1][::-1])


def test_bootstrap_draws_groups_whole():
    group = np.array(list("aabbbc"))
    for counts in bootstrap_counts(6, 5, group=group):
        assert counts[0] == counts[1] and counts[2] == counts[3] == counts[4]


def test_confusion_is_sklearns():
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    expected = sklearn_metrics.confusion_matrix(y, predicted)
    np.testing.assert_array_equal(confusion(y, predicted, 4), expected)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    code = (x[:, 0] + rng.logistic(size=300) > 0).astype(int) + (x[:, 0] > 1)
    return x, np.array(["low", "middle", "top"])[code]


def test_several_classes_are_asked_for_one_by_one_and_for_the_predicted_one(table):
    x, y = table
    evidence = gather(Classifier(network="linear").fit(x, y), x, y)
    assert [q.name for q in questions(evidence)] == ["low", "middle", "top", "the predicted class"]
    found = section(evidence)
    assert sum(isinstance(part, Figure) for part in found.parts) == 2
    assert any("All classes together" in getattr(part, "text", "") for part in found.parts)


def test_ordered_classes_are_asked_for_their_thresholds(table):
    x, y = table
    model = Classifier("ordinal", network="linear", classes=["low", "middle", "top"]).fit(x, y)
    asked = questions(gather(model, x, y))
    assert [q.name for q in asked] == ["middle or more", "top or more"]
    np.testing.assert_allclose(asked[1].probability, model.predict_proba(x)[:, 2])
    assert (asked[0].probability >= asked[1].probability).all()


def test_two_classes_are_one_question(table):
    x, y = table
    y = np.where(y == "low", "no", "yes")
    found = section(gather(Classifier(network="linear").fit(x, y), x, y))
    assert found.lead.startswith("Predicted probabilities")


def test_diagrams_of_many_classes_are_labelled_once_a_line_and_say_what_is_left_out():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(90, 2)), np.arange(90) % 9
    found = section(gather(Classifier(network="linear").fit(x, y), x, y)).parts[0]
    assert found.svg.count(">observed<") == 2  # seven diagrams, four in a line
    assert "3 rarer classes are left out" in found.caption
