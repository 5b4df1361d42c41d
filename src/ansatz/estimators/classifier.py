"""Classes as outcomes."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from ansatz import outcomes
from ansatz.estimators.arguments import Arguments
from ansatz.estimators.estimator import Estimator
from ansatz.estimators.predictor import FittedAttribute
from ansatz.likelihoods import Likelihood


class Classifier(ClassifierMixin, Estimator, without=("calibration",)):
    """A network, or a linear model, that predicts the probability of each class.

    Args:
        likelihood: ``"auto"`` (bernoulli for two classes, categorical for more), a name or an
            instance.
        classes: all classes in their order, which ``"ordinal"`` needs where the order is not that
            of numbers; default: those that occur, sorted.
        class_weight: ``"balanced"``, a mapping class -> weight, or None. Weights move the decision
            of ``predict``; ``predict_proba`` takes them out again and keeps estimating P(y | x).

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> x = np.linspace(-1, 1, 60).reshape(-1, 1)
        >>> model = Classifier().fit(x, np.where(x[:, 0] > 0, "yes", "no"))
        >>> model.predict([[-0.9], [0.9]]).tolist()
        ['no', 'yes']

    References:
        Bishop (2006), Pattern Recognition and Machine Learning, section 4.3.4.
    """

    outcome = "class"
    classes_ = FittedAttribute(lambda model: model.outcome.labels)

    def __init__(
        self,
        likelihood: str | Likelihood = "auto",
        *,
        classes: Sequence[Any] | None = None,
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        **options: Unpack[Arguments],
    ) -> None:
        super().__init__(likelihood, **options)
        self.classes = classes
        self.class_weight = class_weight

    def partial_fit(  # type: ignore[override]  # scikit-learn's order: classes before weights
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Makes one pass over the rows, from where the last call left weights and optimiser.

        Args:
            X: rows as in ``fit``.
            y: ``(N,)`` classes.
            classes: all classes there will ever be; needed at the first call only.
            sample_weight: ``(N,)`` frequency weights.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        before = getattr(self, "model_", None)
        outcome = None
        if before is None:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            outcome = outcomes.create(self.outcome)
            outcome.name_classes(np.unique(np.asarray(classes)))
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} differ from the first call's {self.classes_!r}.")
        return self._partial_fit(*self._continue(X, y, sample_weight, offset, outcome))

    def predict_proba(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predicts P(y = class | x), ``(N, K)`` in the order of ``classes_``.

        Args:
            X: rows as in ``fit``.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        served = self._served(X, offset)
        found: NDArray[np.float64] = self.model_.of_classes.probabilities(served).numpy()
        return found

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
