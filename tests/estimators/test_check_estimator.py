from sklearn.utils.estimator_checks import parametrize_with_checks

from ansatz import Classifier, Regressor


@parametrize_with_checks([Regressor(), Classifier()])
def test_keeps_scikit_learns_conventions(estimator, check):
    check(estimator)
