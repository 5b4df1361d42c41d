"""Classes as outcomes."""

from typing import ClassVar

from ansatz.outcomes.label import Label


class Classes(Label):
    """One of several classes."""

    name: ClassVar[str] = "class"
    estimator: ClassVar[str] = "ansatz.estimators.classifier:Classifier"
