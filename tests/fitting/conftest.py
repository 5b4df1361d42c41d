from tests.estimators.conftest import mixed as mixed
from tests.estimators.conftest import numbers as numbers
