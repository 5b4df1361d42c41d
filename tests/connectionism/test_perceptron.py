import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from ansatz.connectionism import Perceptron, margin


@parametrize_with_checks(
    [
        Perceptron(max_epochs=30),
        Perceptron("zero_one", learning_rate=0.1, shuffle=True, max_epochs=30),
    ]
)
@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.SkipTestWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def by_the_book(X, y, epochs, bias=True):
    """Row by row: on a mistake w += y x, b += y."""
    w, b, mistakes = np.zeros(X.shape[1]), 0.0, 0
    for _ in range(epochs):
        wrong = 0
        for x, label in zip(X, y, strict=True):
            if label * (w @ x + b) <= 0:
                w, b, wrong = w + label * x, b + bias * label, wrong + 1
        mistakes += wrong
        if not wrong:
            break
    return w, b, mistakes


def separable(rows=200, features=5, seed=0):
    random = np.random.default_rng(seed)
    X = random.integers(-8, 9, (rows, features)).astype(float)  # sums of whole numbers are exact
    score = X @ random.normal(size=features) + 0.3
    return X[np.abs(score) > 0.5], np.sign(score[np.abs(score) > 0.5])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_makes_the_steps_of_the_algorithm(bias):
    X, y = separable()
    w, b, mistakes = by_the_book(X, y, 200, bias)
    model = Perceptron(max_epochs=200, fit_intercept=bias).fit(X, y)
    assert (model.coef_[0] == w).all() and model.intercept_[0] == b
    assert model.mistakes_ == mistakes


def test_separable_data_end_without_mistakes_and_with_a_margin():
    X, y = separable()
    model = Perceptron().fit(X, y)
    assert model.converged_ and model.score(X, y) == 1
    assert model.margin_ == pytest.approx(margin(X, y, model.coef_[0], model.intercept_[0]))
    assert model.margin_ > 0


def test_both_forms_make_the_same_steps_up_to_the_rate():
    X, y = separable()
    signs = Perceptron().fit(X, y)
    zero_one = Perceptron("zero_one", learning_rate=0.25).fit(X, y)
    assert (0.25 * signs.coef_ == zero_one.coef_).all()
    assert signs.mistakes_ == zero_one.mistakes_


def test_inseparable_data_spend_the_budget_and_say_so():
    X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    with pytest.warns(ConvergenceWarning, match="mistakes on 4 rows in pass 7"):
        model = Perceptron(max_epochs=7).fit(X, [0, 1, 1, 0])
    assert not model.converged_ and model.n_iter_ == 7 and model.margin_ <= 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_pocket_keeps_the_best_end_of_a_pass():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    y = np.sign(X[:, 0] + 0.7 * random.normal(size=80))
    ends = [Perceptron(max_epochs=k, pocket=False).fit(X, y).score(X, y) for k in range(1, 13)]
    assert Perceptron(max_epochs=12).fit(X, y).score(X, y) == max(ends) > ends[-1]


def test_a_score_of_zero_is_positive_in_prediction_and_a_mistake_in_training():
    model = Perceptron(fit_intercept=False).fit([[1.0], [-1.0]], [1, -1])
    assert model.mistakes_ == 1  # the weight 0 scores 0, which is a mistake although y is 1
    assert model.predict([[0.0]]).tolist() == [1]


def test_three_classes_are_each_reported_from_the_rest():
    random = np.random.default_rng(0)
    centres = np.array([[5.0, 0], [-5, 5], [-5, -5]])
    y = random.integers(0, 3, 90)
    model = Perceptron(shuffle=True).fit(centres[y] + random.normal(size=(90, 2)), y)
    assert model.coef_.shape == (3, 2) and model.converged_ and model.margin_ > 0
    assert model.predict(centres).tolist() == [0, 1, 2]


def test_iris_has_one_class_apart_and_two_that_are_not():
    X, y = load_iris(return_X_y=True)
    assert Perceptron().fit(X, y == 0).converged_
    with pytest.warns(ConvergenceWarning):
        assert not Perceptron(max_epochs=20).fit(X, y == 1).converged_


@pytest.mark.parametrize("options, message", [
    ({"form": "hinge"}, "'signs' or 'zero_one'"), ({"learning_rate": 0}, "must be > 0, got 0"),
    ({"max_epochs": 0}, "whole number >= 1, got 0"),
])  # fmt: skip
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Perceptron(**options).fit([[0.0], [1.0]], [0, 1])
