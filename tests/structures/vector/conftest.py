from tests.estimators.conftest import numbers as numbers
