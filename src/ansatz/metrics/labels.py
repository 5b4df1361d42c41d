"""Metrics of predicted classes, by scikit-learn: precision, recall, F1, confusion matrix."""

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.metrics.weights import require_equal_shapes

Average = Literal["binary", "macro", "micro", "weighted"]


@takes_arrays
def precision(
    y: Tensor, predicted: Tensor, weight: Tensor | None = None, *, average: Average | None = None
) -> Tensor:
    r"""Computes the share of rows predicted to be of a class that are of it.

    .. math:: P_k = \frac{\sum_i w_i 1[\hat y_i = k] 1[y_i = k]}{\sum_i w_i 1[\hat y_i = k]}

    Of two classes, that of the second one (1, or the last label in sorted order); of more, the
    mean over the classes, ``"macro"``. 0 where no row is predicted to be of the class.

    Args:
        y: ``(N,)`` class codes or labels.
        predicted: ``(N,)``.
        weight: ``(N,)`` frequency weights.
        average: ``"binary"``, ``"macro"``, ``"micro"`` (over all rows), ``"weighted"`` (by the
            rows of each class).

    Example:
        >>> from ansatz.metrics import precision
        >>> float(precision(["no", "yes", "yes", "no"], ["yes", "yes", "no", "no"]))
        0.5
    """
    return _score("precision", y, predicted, weight, average)


@takes_arrays
def recall(
    y: Tensor, predicted: Tensor, weight: Tensor | None = None, *, average: Average | None = None
) -> Tensor:
    r"""Computes the share of the rows of a class that are predicted to be of it: sensitivity.

    .. math:: R_k = \frac{\sum_i w_i 1[\hat y_i = k] 1[y_i = k]}{\sum_i w_i 1[y_i = k]}

    Arguments and averages are those of :func:`precision`. 0 where no row is of the class.

    Example:
        >>> from ansatz.metrics import recall
        >>> float(recall([0, 1, 1, 1], [0, 1, 1, 0])) == 2 / 3
        True
    """
    return _score("recall", y, predicted, weight, average)


@takes_arrays
def f1(
    y: Tensor, predicted: Tensor, weight: Tensor | None = None, *, average: Average | None = None
) -> Tensor:
    r"""Computes the harmonic mean of precision and recall, :math:`2 P R / (P + R)`.

    Arguments and averages are those of :func:`precision`: the mean over classes is one of their
    F1 scores.

    Example:
        >>> from ansatz.metrics import f1
        >>> float(f1([0, 1, 1, 1], [0, 1, 1, 0]))
        0.8
    """
    return _score("f1", y, predicted, weight, average)


@takes_arrays
def confusion_matrix(
    y: Tensor, predicted: Tensor, weight: Tensor | None = None, *, classes: int | None = None
) -> Tensor:
    r"""Counts the rows of class i that are predicted to be of class j.

    .. math:: C_{ij} = \sum_n w_n 1[y_n = i] 1[\hat y_n = j]

    Args:
        y: ``(N,)`` class codes or labels.
        predicted: ``(N,)``.
        weight: ``(N,)`` frequency weights.
        classes: K; the classes that occur in either when not given, in sorted order.

    Shapes:
        - returns: ``(K, K)``, true classes in rows, predicted ones in columns.

    Example:
        >>> from ansatz.metrics import confusion_matrix
        >>> confusion_matrix([0, 1, 1, 2], [0, 1, 2, 2])
        array([[1, 0, 0],
               [0, 1, 1],
               [0, 0, 1]])
    """
    from sklearn.metrics import confusion_matrix as count

    known = None if classes is None else list(range(classes))
    codes, guesses, weights = _arrays("confusion_matrix", y, predicted, weight)
    return torch.as_tensor(count(codes, guesses, labels=known, sample_weight=weights))


def _score(
    name: str, y: Tensor, predicted: Tensor, weight: Tensor | None, average: Average | None
) -> Tensor:
    from sklearn import metrics

    codes, guesses, weights = _arrays(name, y, predicted, weight)
    labels = np.unique(np.concatenate([codes, guesses]))
    last = max(1, *labels[-1:].tolist()) if len(labels) else 1
    kind = average or ("binary" if len(labels) <= 2 else "macro")
    value = getattr(metrics, f"{name}_score")(
        codes,
        guesses,
        pos_label=last if kind == "binary" else 1,
        average=kind,
        sample_weight=weights,
        zero_division=0.0,
    )
    return torch.tensor(float(value), dtype=torch.float64)


def _arrays(name: str, y: Tensor, predicted: Tensor, weight: Tensor | None) -> tuple[Any, Any, Any]:
    require_equal_shapes(name, y, predicted)
    if y.ndim != 1:
        raise ValueError(f"{name} needs one class per row, (N,), got {tuple(y.shape)}.")
    for values in (y, predicted):
        if values.is_floating_point() and not bool((values == values.round()).all()):
            raise ValueError(
                f"{name} needs classes, got a value that is not whole: threshold probabilities "
                "first, p > 0.5, or take the argmax."
            )
    weights = None if weight is None else weight.detach().cpu().numpy()
    return y.detach().cpu().long().numpy(), predicted.detach().cpu().long().numpy(), weights
