import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.linear_model import LogisticRegression
from tests.estimators.conftest import TINY

from ansatz import Classifier, load
from ansatz.errors import AnsatzError, UsageError
from ansatz.likelihoods import Categorical

LABELS = {
    "text": ["no", "yes"],
    "int": [3, 7],
    "negative": [-1, 1],
    "bool": [False, True],
    "float": [0.0, 1.0],
    "object": np.array(["no", "yes"], dtype=object),
    "three": ["a", "b", "c"],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_come_back_as_they_were_given(mixed, labels):
    frame, _, _, count = mixed
    labels = np.asarray(labels)
    y = labels[np.minimum(count, len(labels) - 1)]
    model = Classifier(**TINY).fit(frame, y)
    assert_array_equal(model.classes_, labels)
    assert model.predict(frame).dtype == labels.dtype
    assert set(np.unique(model.predict(frame))) <= set(labels)
    assert set(np.unique(model.sample(frame, 20))) == set(labels)
    assert model.sample(frame, 20).shape == (20, 80)
    probability = model.predict_proba(frame)
    assert_allclose(probability.sum(1), 1, rtol=1e-12)
    assert_array_equal(model.classes_[probability.argmax(1)], model.predict(frame))


def test_a_series_of_categories_is_labels(mixed):
    frame, _, label, _ = mixed
    y = pd.Series(label, name="answer").astype("category")
    model = Classifier(**TINY).fit(frame, y)
    assert_array_equal(model.predict(frame), Classifier(**TINY).fit(frame, label).predict(frame))
    assert model.target_names_ == ["answer"]


def test_the_linear_model_is_logistic_regression(mixed):
    frame, _, label, _ = mixed
    X = frame[["a"]].to_numpy()
    ours = Classifier(network="linear").fit(X, label)
    theirs = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000).fit(X, label)
    rows = ours.model_.structure.from_python(X, estimator=ours, reset=False)
    _, raw = ours.model_.posterior.at_estimate().predictive(rows)
    assert_allclose(raw[:, 0].sigmoid(), theirs.predict_proba(X)[:, 1], atol=1e-6)


def imbalanced(rows, seed):
    """P(y = 1 | x) is logistic in x and small."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    p = 1 / (1 + np.exp(3.0 - x[:, 0]))
    return x, (rng.uniform(size=rows) < p).astype(int), p


@pytest.mark.parametrize("weight", ["balanced", {0: 1.0, 1: 9.0}])
@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_class_weights_move_decisions_and_leave_probabilities_calibrated(weight, network):
    X, y, p = imbalanced(4_000, seed=0)
    options = {"network": network}
    if network == "mlp":
        options |= {"widths": (8,), "epochs": 15, "learning_rate": 1e-2}
    plain = Classifier(**options).fit(X, y)
    weighted = Classifier(class_weight=weight, **options).fit(X, y)
    assert weighted.predict(X).mean() > 3 * plain.predict(X).mean() + 0.05
    # The mean of unbiased probabilities differs from the base rate by its standard error.
    error = np.sqrt((p * (1 - p)).sum()) / len(p)
    # Weighting makes the estimate noisier, by at most the largest weight ratio in variance.
    assert abs(weighted.predict_proba(X)[:, 1].mean() - p.mean()) < 4 * 3 * error
    assert weighted.predict_proba(X)[:, 1].mean() < 0.5 * weighted.predict(X).mean()
    assert weighted.log_score(X, y) > plain.log_score(X, y) - 0.02


def test_class_weights_with_three_classes_keep_the_base_rates():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3_000, 2))
    y = rng.choice(3, size=3_000, p=[0.9, 0.08, 0.02])
    model = Classifier(class_weight="balanced", network="linear").fit(X, y)
    base = np.bincount(y) / len(y)
    assert_allclose(model.predict_proba(X).mean(0), base, atol=4 * 0.02 / np.sqrt(20))
    assert np.bincount(model.predict(X), minlength=3).min() > 300


def test_weights_equal_to_one_change_nothing(mixed):
    frame, _, label, _ = mixed
    expected = Classifier(**TINY).fit(frame, label).predict_proba(frame)
    same = Classifier(class_weight={"no": 1.0, "yes": 1.0}, **TINY).fit(frame, label)
    assert_allclose(same.predict_proba(frame), expected, rtol=1e-12)


@pytest.mark.parametrize("bad", ["balance", {"maybe": 2.0}])
def test_wrong_class_weights_are_named(mixed, bad):
    frame, _, label, _ = mixed
    with pytest.raises((UsageError, ValueError), match="class_weight"):
        Classifier(class_weight=bad, **TINY).fit(frame, label)


def test_probabilities_are_calibrated_on_new_rows():
    """The log score of a right model is its expected one within four standard errors."""
    X, y, _ = imbalanced(3_000, seed=2)
    new, outcome, p = imbalanced(3_000, seed=3)
    model = Classifier(widths=(8,), epochs=20, learning_rate=1e-2).fit(X, y)
    gap = -np.log(np.where(outcome == 1, p, 1 - p)).mean() + model.log_score(new, outcome)
    spread = np.std(np.log(np.where(outcome == 1, p, 1 - p))) / np.sqrt(3_000)
    assert -4 * spread - 0.02 < gap < 4 * spread


def test_one_class_is_refused_and_a_class_with_one_row_is_not(mixed):
    frame, _, label, _ = mixed
    with pytest.raises(ValueError, match="only one class is present: every row has 'a'"):
        Classifier(**TINY).fit(frame, np.full(80, "a"))
    label = label.astype(object)
    label[0] = "maybe"
    model = Classifier(**TINY).fit(frame, label)
    assert model.classes_.tolist() == ["maybe", "no", "yes"]


@pytest.mark.parametrize("likelihood", ["categorical", "cross_entropy"])
def test_a_class_that_a_part_of_the_rows_does_not_show_keeps_its_place(mixed, likelihood):
    """Folds, held-out rows and the first rows of a stream may lack a class."""
    frame, _, label, _ = mixed
    rare = label.astype(object)
    rare[:1] = "zebra"
    for copies in (1, 2):  # folds below 100 rows, held-out rows above
        X, y = pd.concat([frame] * copies, ignore_index=True), np.tile(rare, copies)
        for seed in range(3):
            model = Classifier(likelihood, **TINY, random_state=seed).fit(X, y)
            assert model.predict_proba(X).shape == (80 * copies, 3)
    stream = Classifier(likelihood, widths=(8,))
    stream.partial_fit(frame[1:], label[1:], classes=["no", "yes", "zebra"])
    stream.partial_fit(frame, rare)
    assert (stream.predict_proba(frame)[:, 2] > 0).all()


def test_a_likelihood_of_ones_own_is_not_changed(mixed):
    frame, _, _, count = mixed
    likelihood = Categorical()
    Classifier(likelihood, **TINY).fit(frame, np.minimum(count, 2))
    assert likelihood.classes == 0


@pytest.mark.parametrize(
    "y, says",
    [
        (np.linspace(0, 1, 80), "continuous|Unknown label"),
        (np.where(np.arange(80) == 3, np.nan, 1.0), "NaN"),
        (np.zeros((80, 2)), r"1d array|shape"),
        (np.zeros(79), "79"),
    ],
)
def test_outcomes_that_are_no_classes_are_refused(mixed, y, says):
    with pytest.raises(ValueError, match=says):
        Classifier(**TINY).fit(mixed[0], y)


def test_missing_labels_are_named(mixed):
    frame, _, label, _ = mixed
    label = label.astype(object)
    label[5] = None
    with pytest.raises((ValueError, TypeError), match=r"None|NaN|missing|label|str"):
        Classifier(**TINY).fit(frame, label)


def test_a_column_of_labels_is_flattened_with_a_warning(mixed):
    frame, _, label, _ = mixed
    with pytest.warns(Warning, match="column-vector"):
        model = Classifier(**TINY).fit(frame, label[:, None])
    assert model.predict(frame).shape == (80,)


def test_a_likelihood_of_numbers_is_no_likelihood_of_classes(mixed):
    frame, _, label, _ = mixed
    with pytest.raises((AnsatzError, ValueError), match=r"normal|class"):
        Classifier("normal", **TINY).fit(frame, label)


def test_draws_have_the_predicted_frequencies(mixed):
    frame, _, label, _ = mixed
    model = Classifier(**TINY).fit(frame, label)
    draws = model.sample(frame, 2_000) == "yes"
    p = model.predict_proba(frame)[:, 1]
    z = (draws.sum(0) - 2_000 * p) / np.sqrt(2_000 * p * (1 - p))
    assert np.abs(z).max() < stats.norm.isf(1e-7)
    assert_array_equal(model.sample(frame, 2), model.sample(frame, 2))
    assert not np.array_equal(model.sample(frame, 9), model.sample(frame, 9, random_state=1))


def ordered_rows(count=400):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 2))
    return x, np.digitize(x[:, 0] + rng.logistic(size=count), [-1.0, 0.0, 1.0])


def test_ordered_classes_know_their_order():
    x, codes = ordered_rows()
    words = np.array(["never", "rarely", "often", "always"])[codes]
    with pytest.raises(UsageError, match=r"needs the order of the classes.*always"):
        Classifier("ordinal", network="linear").fit(x, words)
    order = ["never", "rarely", "often", "always"]
    named = Classifier("ordinal", classes=order, network="linear").fit(x, words)
    coded = Classifier("ordinal", network="linear").fit(x, codes)
    np.testing.assert_allclose(named.predict_proba(x), coded.predict_proba(x))
    assert named.classes_.tolist() == order
    column = pd.Series(pd.Categorical(words, categories=order, ordered=True))
    again = Classifier("ordinal", network="linear").fit(x, column)
    np.testing.assert_allclose(again.predict_proba(x), coded.predict_proba(x))


@pytest.mark.parametrize(
    "likelihood, options", [("focal", {"gamma": 2.0}), ("cross_entropy", {"label_smoothing": 0.2})]
)
def test_losses_that_estimate_no_probability_are_recalibrated_out_of_fold(
    likelihood, options, tmp_path
):
    """Their log score comes close to the likelihood's own; smoothing and focusing alone do not."""
    x, codes = ordered_rows(1000)
    plain = Classifier("categorical", network="linear").fit(x[:800], codes[:800])
    model = Classifier(likelihood, likelihood_options=options, network="linear").fit(
        x[:800], codes[:800]
    )
    assert model.model_.outcome.temperature != 1.0
    gap = plain.log_score(x[800:], codes[800:]) - model.log_score(x[800:], codes[800:])
    assert abs(gap) < 0.02
    again = load(model.save(tmp_path / "model"))
    np.testing.assert_allclose(again.predict_proba(x), model.predict_proba(x))
