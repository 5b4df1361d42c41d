"""Rosenblatt's perceptron: the linear threshold unit and its learning rule."""

import math
import numbers
import warnings
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

Form = Literal["signs", "zero_one"]
_LOOK_AHEAD = 64  # rows evaluated at once while no mistake is found; doubled as long as none is


class UnitTraining(NamedTuple):
    """The weight and the mistakes of the training of one unit."""

    weight: NDArray[np.float64]
    mistakes: int
    epochs: int
    wrong: int
    history: NDArray[np.float64] | None = None


def run(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    *,
    form: Form = "signs",
    rate: float = 1.0,
    max_epochs: int = 1000,
    pocket: bool = False,
    random: np.random.RandomState | None = None,
    keep_history: bool = False,
) -> UnitTraining:
    """The mistake-driven perceptron algorithm from the weight 0, without a bias.

    Args:
        X: points, ``(N, D)``; append a column of ones for a bias.
        y: labels -1 and 1, ``(N,)``.
        form: how the update is written, see :class:`Perceptron`.
        rate: the length of an update in units of the point.
        max_epochs: passes after which it gives up.
        pocket: if it gives up, return the weight that was best at the end of a pass, not the last.
        random: shuffles the rows anew for each pass; default: their own order.
        keep_history: also return the weight after every update.
    """
    weight, mistakes, wrong, epochs = np.zeros(X.shape[1]), 0, 1, 0
    history: list[NDArray[np.float64]] = []
    fewest, best = len(X) + 1, weight
    while wrong and epochs < max_epochs:
        order = slice(None) if random is None else random.permutation(len(X))
        points, labels = X[order], y[order]
        wrong, position, ahead = 0, 0, _LOOK_AHEAD
        while position < len(points):
            there = slice(position, position + ahead)
            scores = points[there] @ weight
            found = np.flatnonzero(labels[there] * scores <= 0)  # a score of 0 is a mistake
            if not len(found):
                position, ahead = position + ahead, 2 * ahead
                continue
            position += int(found[0])
            change = _change(form, labels[position], float(scores[found[0]]))
            weight = weight + rate * change * points[position]
            wrong, position, ahead = wrong + 1, position + 1, _LOOK_AHEAD
            if keep_history:
                history.append(weight)
        mistakes, epochs = mistakes + wrong, epochs + 1
        errors = int((y * (X @ weight) <= 0).sum()) if pocket and wrong else 0
        if errors < fewest:
            fewest, best = errors, weight
    kept = np.array(history).reshape(len(history), X.shape[1]) if keep_history else None
    return UnitTraining(best if pocket else weight, mistakes, epochs, wrong, kept)


def _change(form: Form, y: float, score: float) -> float:
    """Gives the factor of the rate and the point in an update: +1 or -1 by either form."""
    if form == "signs":
        return y
    target = (y + 1) / 2
    output = float(score > 0) if score else 1 - target  # at 0 the unit is held to be wrong
    return target - output


class Perceptron(ClassifierMixin, BaseEstimator):
    r"""The perceptron: a linear threshold unit trained on its mistakes.

    .. math:: f(x) = \mathrm{sgn}(w^\top x + b), \qquad
        \text{on a mistake: } w \leftarrow w + \eta\, y x,\; b \leftarrow b + \eta\, y

    with :math:`y = \pm 1` (``form="signs"``), or with labels and outputs 0 and 1
    (``form="zero_one"``), :math:`w \leftarrow w + \eta (y - \hat{y}) x`. Both make the same steps:
    :math:`y - \hat{y}` is the sign of the label on a mistake and 0 otherwise. In training a score
    of exactly 0 is a mistake; in prediction :math:`\mathrm{sgn}(0) = 1`. From the weight 0 the rate
    only scales w and b and changes no prediction.

    If the data are separable with margin :math:`\gamma` by a unit vector and
    :math:`\lVert (x, 1) \rVert \le R`, the rule ends after at most
    :math:`\lfloor R^2/\gamma^2 \rfloor` mistakes. If they are not, it would never end:
    ``max_epochs`` is the budget, a warning reports its end, and the weight stays that made
    the fewest mistakes at the end of a pass (``pocket``), since the last one may be bad.
    More than two classes: one unit for each class against the rest, and the largest score wins.

    Args:
        form: ``"signs"`` or ``"zero_one"``; which labels the rule is written for.
        learning_rate: :math:`\eta`.
        max_epochs: passes over the rows, at most.
        pocket: False keeps the last weight even if the budget is spent.
        fit_intercept: False holds b = 0.
        shuffle: whether each pass takes the rows in a new order.
        random_state: seed of the order, or a numpy generator.

    Attributes:
        classes_: labels, sorted.
        coef_: w, ``(1, D)``, or ``(K, D)`` with K > 2 classes.
        intercept_: b, ``(1,)`` or ``(K,)``.
        converged_: whether the last pass of every unit made no mistake.
        mistakes_: updates made, over all units.
        n_iter_: passes over the rows, the most that a unit took.
        margin_: the smallest geometric margin :math:`y (w^T x + b) / \lVert w \rVert` of a training
            row, over all units; positive if and only if every unit is right about every row.

    Example:
        >>> import numpy as np
        >>> from ansatz.connectionism import Perceptron
        >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        >>> model = Perceptron().fit(X, ["no", "no", "no", "yes"])
        >>> model.predict(X).tolist(), model.converged_
        (['no', 'no', 'no', 'yes'], True)

    References:
        Rosenblatt (1958), The perceptron. https://doi.org/10.1037/h0042519
        Novikoff (1962), On convergence proofs on perceptrons.
        Gallant (1990), Perceptron-based learning algorithms. https://doi.org/10.1109/72.80230
    """

    def __init__(
        self,
        form: Form = "signs",
        *,
        learning_rate: float = 1.0,
        max_epochs: int = 1000,
        pocket: bool = True,
        fit_intercept: bool = True,
        shuffle: bool = False,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.form = form
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.pocket = pocket
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learns until a pass makes no mistake, or the budget is spent.

        Args:
            X: features, ``(N, D)``.
            y: classes, ``(N,)``.
        """
        self._check_options()
        features, targets = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(targets)
        self.classes_, codes = np.unique(targets, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"Perceptron needs at least 2 classes, got 1 class: {self.classes_[0]}"
            )
        ones = np.ones((len(features), int(self.fit_intercept)))
        points = np.column_stack([features, ones])
        random = check_random_state(self.random_state) if self.shuffle else None
        which = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        labels = [np.where(codes == k, 1.0, -1.0) for k in which]
        settings: dict[str, Any] = {"form": self.form, "rate": float(self.learning_rate)}
        settings |= {"max_epochs": self.max_epochs, "pocket": self.pocket, "random": random}
        runs = [run(points, signs, **settings) for signs in labels]
        self._keep(runs)
        self.margin_ = self._margin(features, labels)
        if not self.converged_:
            warnings.warn(self._advice(runs, len(features)), ConvergenceWarning, stacklevel=2)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """The scores w·x + b: ``(N,)`` of the second class, or ``(N, K)``."""
        check_is_fitted(self)
        features = validate_data(self, X, reset=False, dtype=np.float64)
        scores: NDArray[np.float64] = features @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each row; a score of 0 is the second class of two."""
        scores = self.decision_function(X)
        codes = (scores >= 0).astype(int) if scores.ndim == 1 else scores.argmax(1)
        found: NDArray[Any] = self.classes_[codes]
        return found

    def _check_options(self) -> None:
        if self.form not in ("signs", "zero_one"):
            raise ValueError(f"form of Perceptron is 'signs' or 'zero_one', got {self.form!r}.")
        rate = self.learning_rate
        if not isinstance(rate, numbers.Real) or not 0 < rate < math.inf:
            raise ValueError(f"learning_rate of Perceptron must be > 0, got {rate!r}.")
        if not isinstance(self.max_epochs, numbers.Integral) or self.max_epochs < 1:
            raise ValueError(
                f"max_epochs of Perceptron must be a whole number >= 1, got {self.max_epochs!r}."
            )

    def _keep(self, runs: list[UnitTraining]) -> None:
        weights = np.array([run.weight for run in runs])
        self.coef_ = weights[:, :-1] if self.fit_intercept else weights
        self.intercept_ = weights[:, -1] if self.fit_intercept else np.zeros(len(runs))
        self.mistakes_ = sum(run.mistakes for run in runs)
        self.n_iter_ = max(run.epochs for run in runs)
        self.converged_ = not any(run.wrong for run in runs)

    def _margin(self, X: NDArray[np.float64], labels: list[NDArray[np.float64]]) -> float:
        scores = np.array(labels).T * (X @ self.coef_.T + self.intercept_)  # (N, units)
        norms = np.linalg.norm(self.coef_, axis=1)
        # All weights zero: the unit answers by its bias alone, at no distance from any hyperplane.
        return float((scores.min(0) / np.where(norms > 0, norms, np.inf)).min())

    def _advice(self, runs: list[UnitTraining], rows: int) -> str:
        wrong = max(run.wrong for run in runs)
        return (
            f"the perceptron still made {wrong} mistakes on {rows} rows in pass {self.n_iter_}: "
            "the data are not linearly separable, or more passes are needed (max_epochs). "
            "ansatz.connectionism.version_space tells which."
        )
