"""Metrics take tensors, NumPy arrays, lists and pandas columns, and give back what they got."""

import numpy as np
import pandas
import pytest
import torch
from sklearn import metrics as theirs

from ansatz import metrics

Y = np.array([0.5, 2.0, 1.0, 4.0])
POINT = np.array([1.0, 1.5, 1.0, 3.0])
CODES = np.array([0, 1, 2, 2, 1, 0])
GUESSES = np.array([0, 2, 2, 2, 1, 1])
KINDS = {
    "array": lambda a: a,
    "list": lambda a: a.tolist(),
    "series": pandas.Series,
    "reversed view": lambda a: a[::-1].copy()[::-1],
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("name", ["mse", "rmse", "mae", "r2"])
def test_arrays_and_lists_give_the_number_of_tensors(name, kind):
    metric = getattr(metrics, name)
    tensors = metric(torch.from_numpy(Y), torch.from_numpy(POINT))
    found = metric(kind(Y), kind(POINT))
    assert isinstance(found, np.floating) and isinstance(tensors, torch.Tensor)
    assert found == tensors.item()


def test_one_tensor_among_arrays_makes_the_result_a_tensor():
    found = metrics.mae(Y, torch.from_numpy(POINT))
    assert isinstance(found, torch.Tensor)
    assert found.item() == metrics.mae(Y, POINT)


def test_rows_come_back_as_an_array():
    samples = np.random.default_rng(0).normal(size=(9, 4))
    found = metrics.sample_crps(samples, Y)
    expected = metrics.sample_crps(torch.from_numpy(samples), torch.from_numpy(Y))
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, expected.numpy())


def test_a_weight_may_be_a_list():
    expected = theirs.mean_absolute_error(Y, POINT, sample_weight=[1, 2, 0, 1])
    assert metrics.mae(Y, POINT, [1, 2, 0, 1]) == pytest.approx(expected)


def test_truth_values_are_0_and_1():
    y, p = CODES > 0, np.array([0.1, 0.9, 0.6, 0.2, 0.5, 0.3])
    assert metrics.brier(y, p) == pytest.approx(theirs.brier_score_loss(y, p))


def test_a_distribution_with_an_array_of_outcomes():
    distribution = torch.distributions.Exponential(torch.ones(4, dtype=torch.float64))
    assert metrics.log_score(distribution, Y) == pytest.approx(-Y.mean())


@pytest.mark.parametrize("average", [None, "macro", "micro", "weighted"])
@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_scores_of_classes_are_scikit_learns(name, average):
    reference = getattr(theirs, f"{name}_score")
    expected = reference(CODES, GUESSES, average=average or "macro", zero_division=0)
    assert getattr(metrics, name)(CODES, GUESSES, average=average) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_of_two_labels_the_last_one_is_the_class(name):
    y, guess = np.array(["no", "yes", "yes", "no", "yes"]), np.array("yes yes no no yes".split())
    expected = getattr(theirs, f"{name}_score")(y, guess, pos_label="yes")
    assert getattr(metrics, name)(y, guess) == pytest.approx(expected)
    assert metrics.accuracy(y, guess) == pytest.approx(theirs.accuracy_score(y, guess))


def test_a_class_that_nobody_predicts_has_precision_0():
    assert metrics.precision([0, 1], [0, 0]) == 0
    assert metrics.recall([0, 0], [0, 0]) == 0


def test_confusion_matrix_counts_by_the_definition():
    found = metrics.confusion_matrix(torch.from_numpy(CODES), torch.from_numpy(GUESSES), classes=4)
    for i in range(4):
        for j in range(4):
            assert found[i, j] == ((CODES == i) & (GUESSES == j)).sum()


def test_roc_auc_is_scikit_learns():
    y, score = [0, 1, 1, 0, 1], [0.2, 0.4, 0.9, 0.4, 0.1]
    assert metrics.roc_auc(y, score) == pytest.approx(theirs.roc_auc_score(y, score))


def test_probabilities_are_not_classes():
    with pytest.raises(ValueError, match=r"f1 needs classes.*threshold"):
        metrics.f1([0, 1], [0.2, 0.9])
