"""Average marginal effects: what takes the coefficients' place when a model is not linear."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ansatz.errors import UsageError

if TYPE_CHECKING:
    import pandas

Predict = Callable[["pandas.DataFrame"], Any]


class Effect(NamedTuple):
    """How the predicted mean changes with one variable, on average over rows.

    Args:
        name: the column.
        contrast: ``"per unit"`` of a number, or ``"level - reference"`` of a category.
        estimate: in the outcome's unit.
        lower: end of the interval; None without refits.
        upper: end of the interval; None without refits.
        output: which column of the mean, for classes; None for a single one.

    Example:
        >>> from ansatz.linear import Effect
        >>> Effect("age", "per unit", 0.5, 0.4, 0.6, None).estimate
        0.5
    """

    name: str
    contrast: str
    estimate: float
    lower: float | None
    upper: float | None
    output: int | None


def average_marginal_effects(
    predict_mean: Predict,
    frame: "pandas.DataFrame",
    columns: Mapping[str, Sequence[Any] | None] | None = None,
    *,
    refits: Sequence[Predict] = (),
    level: float = 0.95,
    weight: Any = None,
) -> list[Effect]:
    r"""The mean over rows of the derivative of the predicted mean by each variable.

    .. math:: \frac1n \sum_i \frac{\mu(x_i + h e_j) - \mu(x_i - h e_j)}{2h}, \qquad
              h = \frac{sd(x_j)}{100}

    for numbers, in the outcome's unit per unit of the column; for categories the mean of
    :math:`\mu(x_i : x_j = \text{level}) - \mu(x_i : x_j = \text{reference})`. For the linear normal
    model these are its coefficients. They describe the model, and are causal only if it is.

    Args:
        predict_mean: rows -> predicted means, ``(N,)`` or ``(N, K)`` for K classes.
        frame: the rows to average over, in original units.
        columns: name -> None for a number, or the levels of a category, the reference first.
            Default: numbers by their type, all other columns with the levels that occur, sorted.
        refits: the same model fitted to bootstrap samples; intervals are the percentiles of their
            effects.
        level: of the intervals.
        weight: ``(N,)`` frequency weights.

    Returns:
        One effect per number, one per level but the reference of a category; for K classes, K
        times as many.

    Example:
        >>> import pandas as pd
        >>> from ansatz.linear import average_marginal_effects
        >>> rows = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
        >>> effect = average_marginal_effects(lambda rows: rows["a"].to_numpy() ** 2, rows)[0]
        >>> round(effect.estimate, 6)  # mean of 2 a
        4.0

    References:
        Leeper (2017), Interpreting regression results using average marginal effects.
    """
    if not 0 < level < 1:
        raise UsageError(f"level of the intervals must be in (0, 1), got {level}.")
    if columns is None:
        columns = {str(name): _levels(frame[name]) for name in frame.columns}
    weight = np.ones(len(frame)) if weight is None else np.asarray(weight, dtype=float)
    effects: list[Effect] = []
    for name, levels in columns.items():
        if name not in frame.columns:
            raise UsageError(f"no column '{name}' to take a marginal effect of.")
        for contrast, low, high, step, rows in _contrasts(frame, name, levels):
            values = [
                _mean_change(predict, low, high, step, weight[rows])
                for predict in (predict_mean, *refits)
            ]
            effects += _with_intervals(name, contrast, values, level)
    return effects


def _levels(column: Any) -> list[Any] | None:
    if column.dtype.kind in "iuf":
        return None
    return sorted(column.dropna().unique().tolist(), key=str)


def _contrasts(
    frame: "pandas.DataFrame", name: str, levels: Sequence[Any] | None
) -> list[tuple[str, "pandas.DataFrame", "pandas.DataFrame", float, Any]]:
    """(contrast, rows moved down, rows moved up, their distance, which rows) of one column."""
    if levels is None:
        present = frame[name].notna().to_numpy()
        rows = frame[present]
        x = rows[name].astype(float)
        step = float(x.std(ddof=0)) / 100
        if not step > 0:
            return []  # a constant column has no derivative that data could show
        low, high = rows.assign(**{name: x - step}), rows.assign(**{name: x + step})
        return [("per unit", low, high, 2 * step, present)]
    every = np.ones(len(frame), dtype=bool)
    base = frame.assign(**{name: _constant(frame, name, levels[0])}) if levels else frame
    return [
        (
            f"{level} - {levels[0]}",
            base,
            frame.assign(**{name: _constant(frame, name, level)}),
            1.0,
            every,
        )
        for level in levels[1:]
    ]


def _constant(frame: "pandas.DataFrame", name: str, level: Any) -> Any:
    import pandas

    return pandas.Series([level] * len(frame), index=frame.index, dtype=frame[name].dtype)


def _mean_change(
    predict: Predict, low: "pandas.DataFrame", high: "pandas.DataFrame", step: float, weight: Any
) -> Any:
    change = np.asarray(predict(high), dtype=float) - np.asarray(predict(low), dtype=float)
    return np.average(change, axis=0, weights=weight) / step


def _with_intervals(name: str, contrast: str, values: list[Any], level: float) -> list[Effect]:
    table = np.stack([np.atleast_1d(value) for value in values])  # (1 + R, K)
    single = np.ndim(values[0]) == 0
    effects = []
    for k in range(table.shape[1]):
        lower = upper = None
        if len(table) > 1:
            tail = (1 - level) / 2
            lower, upper = (float(q) for q in np.quantile(table[1:, k], [tail, 1 - tail]))
        output = None if single else k
        effects.append(Effect(name, contrast, float(table[0, k]), lower, upper, output))
    return effects
