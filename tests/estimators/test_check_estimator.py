import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ansatz import Classifier, Regressor

SMALL = {"widths": (16,), "epochs": 30}  # learns what the checks ask for, in a fifth of the time


@parametrize_with_checks([Regressor(**SMALL), Classifier(**SMALL)])
def test_keeps_scikit_learns_conventions(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([Regressor(), Classifier()])
def test_keeps_scikit_learns_conventions_by_default(estimator, check):
    check(estimator)
