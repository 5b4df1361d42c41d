import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from ansatz.connectionism import Perceptron, margin, margins, version_space


def test_the_margin_is_the_distance_to_the_hyperplane():
    random = np.random.default_rng(0)
    x, w, b = random.normal(size=(1, 3)), random.normal(size=3), 0.7
    plane = {"type": "eq", "fun": lambda z: w @ z + b}
    nearest = minimize(lambda z: ((z - x[0]) ** 2).sum(), np.zeros(3), constraints=plane, tol=1e-12)
    assert abs(margins(x, [1], w, b)[0]) == pytest.approx(nearest.fun**0.5, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_empty_exactly_when_the_perceptron_cannot_end(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(12, 4))
    for _ in range(6):
        y = random.choice([-1, 1], 12)
        if abs(y.sum()) == 12:
            continue
        found = version_space(X, y)
        if found.empty:
            with pytest.warns(UserWarning):
                assert not Perceptron(max_epochs=300).fit(X, y).converged_
        else:
            assert margin(X, y, found.weight, found.bias) > 0
            assert Perceptron(max_epochs=100_000).fit(X, y).converged_


def test_the_point_has_the_largest_margin_in_the_box():
    X, y = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([-1, -1, -1, 1])
    found = version_space(X, y)
    assert found.margin == pytest.approx(1 / 3)  # w = (2/3, 2/3), b = -1
    assert found.weight == pytest.approx([2 / 3, 2 / 3]) and found.bias == pytest.approx(-1)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_units_of_measurement_do_not_matter(scale):
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 3)) * scale
    y = np.sign(X @ [1.0, -2.0, 0.5])
    assert not version_space(X, y, fit_intercept=False).empty
    y[0] = -y[0]
    X[1], y[1] = X[0], -y[0]  # the same point with both labels
    assert version_space(X, y, fit_intercept=False).empty


def test_agrees_with_a_hard_margin_support_vector_machine():
    random = np.random.default_rng(3)
    X = random.normal(size=(40, 2))
    y = np.where(X @ [1.0, 1.0] > 0.2, 1, -1)
    svm = LinearSVC(C=1e6, loss="hinge", max_iter=1_000_000).fit(X, y)
    assert not version_space(X, y).empty
    assert margin(X, y, svm.coef_[0], svm.intercept_[0]) > 0


def test_one_label_alone_is_separable_and_without_a_bias_the_origin_is_not():
    assert not version_space([[0.0], [1.0]], [1, 1]).empty
    assert version_space([[0.0], [1.0]], [1, 1], fit_intercept=False).empty


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match=r"labels y are -1 and 1, got 0.0 at y\[1\]"):
        version_space([[0.0], [1.0]], [1, 0])
    with pytest.raises(ValueError, match=r"shape \(N, D\)"):
        version_space([0.0, 1.0], [1, -1])
    with pytest.raises(ValueError, match="must be finite"):
        version_space([[np.nan]], [1])
    with pytest.raises(ValueError, match="no hyperplane"):
        margin([[1.0]], [1], [0.0])
    with pytest.raises(ValueError, match="weight needs shape"):
        margin([[1.0]], [1], [0.0, 1.0])
