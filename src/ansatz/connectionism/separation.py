"""Margins of a linear threshold unit, and the set of all units that separate the data."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog


def margins(
    X: ArrayLike, y: ArrayLike, weight: ArrayLike, bias: float = 0.0
) -> NDArray[np.float64]:
    r"""Computes how far each point lies on the right side of a hyperplane.

    .. math:: \gamma(x, y) = \frac{y\,(w^\top x + b)}{\lVert w \rVert}

    It is the distance to the hyperplane, with a minus sign where the point is on the wrong side.

    Args:
        X: points, ``(N, D)``.
        y: labels -1 and 1, ``(N,)``.
        weight: :math:`w`, ``(D,)``, not zero.
        bias: :math:`b`.

    Example:
        >>> from ansatz.connectionism import margins
        >>> margins([[3.0, 0.0], [-1.0, 5.0]], [1, 1], [2.0, 0.0]).tolist()
        [3.0, -1.0]

    References:
        Novikoff (1962), On convergence proofs on perceptrons.
    """
    points, labels = _checked(X, y)
    w = np.asarray(weight, dtype=np.float64)
    if w.shape != points.shape[1:]:
        raise ValueError(f"weight needs shape {points.shape[1:]}, got {w.shape}.")
    norm = np.linalg.norm(w)
    if norm == 0:
        raise ValueError("the margin of the weight 0 is not defined: it has no hyperplane.")
    found: NDArray[np.float64] = labels * (points @ w + bias) / norm
    return found


def margin(X: ArrayLike, y: ArrayLike, weight: ArrayLike, bias: float = 0.0) -> float:
    r"""Computes the smallest margin of a set of points, positive if all are right.

    .. math:: \gamma(S) = \min_{(x, y) \in S} \frac{y\,(w^\top x + b)}{\lVert w \rVert}

    Args:
        X: points, ``(N, D)``.
        y: labels -1 and 1, ``(N,)``.
        weight: :math:`w`, ``(D,)``.
        bias: :math:`b`.

    Example:
        >>> from ansatz.connectionism import margin
        >>> margin([[3.0, 0.0], [-1.0, 5.0]], [1, -1], [2.0, 0.0])
        1.0

    References:
        Novikoff (1962), On convergence proofs on perceptrons.
    """
    return float(margins(X, y, weight, bias).min())


class VersionSpace(NamedTuple):
    """The answer of :func:`version_space`.

    Args:
        empty: whether no unit does: the data are not linearly separable.
        weight: of the unit with the largest functional margin among those in the box [-1, 1];
            zeros if there is none.
        bias: of the same unit.
        margin: its functional margin, the smallest :math:`y (w^T x + b)`; 0 if there is none.

    Example:
        >>> from ansatz.connectionism import version_space
        >>> version_space([[0.0], [1.0]], [-1, 1]).empty
        False
    """

    empty: bool
    weight: NDArray[np.float64]
    bias: float
    margin: float


def version_space(X: ArrayLike, y: ArrayLike, *, fit_intercept: bool = True) -> VersionSpace:
    r"""Finds whether a linear threshold unit separates the data, and one that does.

    .. math:: V(S) = \{(w, b): y_i (w^\top x_i + b) > 0 \;\forall i\}, \qquad
        \max_{m, w, b}\; m \;\text{ with }\; y_i (w^\top x_i + b) \ge m,\;
        |w_j| \le 1,\; |b| \le 1

    V is an open cone: it is empty if and only if the linear program has the maximum 0. A unit that
    is returned separates the data in floating-point arithmetic, which is checked; "empty" is
    true up to the program's tolerance, :math:`10^{-10}` of the largest coordinate.

    Args:
        X: points, ``(N, D)``.
        y: labels -1 and 1, ``(N,)``.
        fit_intercept: False holds b = 0.

    Example:
        >>> from ansatz.connectionism import version_space
        >>> corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
        >>> version_space(corners, [-1, 1, 1, -1]).empty  # exclusive or
        True
        >>> round(version_space(corners, [-1, -1, -1, 1]).margin, 6)  # and
        0.333333

    References:
        Minsky and Papert (1969), Perceptrons.
    """
    points, labels = _checked(X, y)
    if fit_intercept:
        points = np.column_stack([points, np.ones(len(points))])
    scale = float(np.abs(points).max(initial=0.0)) or 1.0
    signed = labels[:, None] * points / scale  # (N, D or D + 1)
    columns = signed.shape[1]
    answer = linprog(
        np.append(np.zeros(columns), -1.0),
        A_ub=np.column_stack([-signed, np.ones(len(signed))]),
        b_ub=np.zeros(len(signed)),
        bounds=[(-1, 1)] * columns + [(0, None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if not answer.success:
        raise RuntimeError(f"the linear program of the version space failed: {answer.message}")
    w = np.clip(answer.x[:-1], -1, 1)
    found = float((signed @ w).min())
    if found <= max(1e-10, 4 * columns * np.finfo(float).eps):
        return VersionSpace(True, np.zeros(columns - fit_intercept), 0.0, 0.0)
    bias = float(w[-1]) if fit_intercept else 0.0
    return VersionSpace(False, w[:-1] if fit_intercept else w, bias, found * scale)


def _checked(X: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    points, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if points.ndim != 2 or labels.shape != points.shape[:1] or not len(points):
        raise ValueError(
            f"points X need shape (N, D) and labels y (N,), got {points.shape} and {labels.shape}."
        )
    if not np.isfinite(points).all():
        raise ValueError("points X must be finite.")
    wrong = np.flatnonzero(np.abs(labels) != 1)
    if len(wrong):
        raise ValueError(f"labels y are -1 and 1, got {labels[wrong[0]]} at y[{wrong[0]}].")
    return points, labels
