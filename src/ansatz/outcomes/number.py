"""Numbers as outcomes: regression with any likelihood."""

from typing import ClassVar

from ansatz.outcomes.quantity import Quantity


class Number(Quantity):
    """A number, several numbers at once, or a vector of them."""

    name: ClassVar[str] = "number"
    estimator: ClassVar[str] = "ansatz.estimators.regressor:Regressor"
