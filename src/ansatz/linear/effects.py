"""Average marginal effects, in the place of R's coefficient table for networks."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from ansatz.errors import UsageError
from ansatz.linear.summary import Printed, align, format_column, plain

if TYPE_CHECKING:
    import pandas


Predict = Callable[["pandas.DataFrame"], Any]


class Effect(NamedTuple):
    """The change of the predicted mean with one variable, on average over rows.

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
    r"""Computes the mean over rows of the derivative of the predicted mean by each variable.

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
        refits: the same model fitted to R bootstrap samples; intervals are the estimate plus and
            minus the standard deviation of their effects times Student's t with R - 1 degrees of
            freedom. Percentiles of 20 refits would hold 86 % instead of 95 %.
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
        if len(table) > 2:
            half = float(stats.t(len(table) - 2).ppf((1 + level) / 2) * table[1:, k].std(ddof=1))
            lower, upper = float(table[0, k]) - half, float(table[0, k]) + half
        output = None if single else k
        effects.append(Effect(name, contrast, float(table[0, k]), lower, upper, output))
    return effects


class NetworkSummary(Printed):
    """A fitted network: held-out deviance explained and average marginal effects.

    A deep network has no AIC and no in-sample deviance test: its parameters are more than the
    rows identify, and it was stopped, not maximised. The two numbers here mean something.

    Args:
        call: what the user asked for.
        likelihood: the likelihood's name.
        link: its link.
        network: the network in words.
        effects: of :func:`ansatz.linear.average_marginal_effects`.
        deviance_explained: 1 - deviance / deviance of the constant model, on rows that took no
            part in the fit; None if there were none.
        held_out: how many rows that was.
        parameters: number of weights.
        refits: how many bootstrap refits the intervals come from; 0 for no intervals.
        level: of the intervals.
        class_names: names of the K classes, where there are some.
        rows_dropped: rows that were left out for missing values before the fit.
        messages: further sentences.

    Example:
        >>> from ansatz.linear import Effect, NetworkSummary
        >>> effects = [Effect("age", "per unit", 0.5, 0.4, 0.6, None)]
        >>> print(NetworkSummary(call="y ~ age", likelihood="normal", link="identity",
        ...     network="mlp 2 x 128", effects=effects, deviance_explained=0.61, held_out=90,
        ...     parameters=17000, refits=20))
        Call: y ~ age
        <BLANKLINE>
        Likelihood: normal, link identity
        Network: mlp 2 x 128, 17000 parameters
        <BLANKLINE>
        Average marginal effects on the predicted mean:
                      Effect   Lower   Upper
        age per unit 0.50000 0.40000 0.60000
        Intervals: 95 %, by the standard deviation over 20 bootstrap refits.
        Effects describe the model's predictions; they are not causal by themselves.
        <BLANKLINE>
        Held-out deviance explained: 61.0 % (90 rows)
    """

    def __init__(
        self,
        *,
        call: str,
        likelihood: str,
        link: str,
        network: str,
        effects: Sequence[Effect],
        deviance_explained: float | None,
        held_out: int,
        parameters: int,
        refits: int = 0,
        level: float = 0.95,
        class_names: Sequence[str] | None = None,
        rows_dropped: int = 0,
        messages: Sequence[str] = (),
    ) -> None:
        self.call, self.likelihood, self.link, self.network = call, likelihood, link, network
        self.effects, self.deviance_explained = list(effects), deviance_explained
        self.held_out, self.parameters, self.refits = held_out, parameters, refits
        self.level, self.class_names = level, class_names
        self.rows_dropped, self.messages = rows_dropped, list(messages)

    def __str__(self) -> str:
        blocks = [
            [f"Call: {plain(self.call)}"],
            [
                f"Likelihood: {self.likelihood}, link {self.link}",
                f"Network: {plain(self.network)}, {self.parameters} parameters",
            ],
            self._effects(),
            [self._explained()],
            [f"({self.rows_dropped} rows with missing values dropped)"]
            if self.rows_dropped
            else [],
            [f"Note: {plain(message)}" for message in self.messages],
        ]
        return "\n\n".join("\n".join(block) for block in blocks if block)

    def _explained(self) -> str:
        if self.deviance_explained is None:
            return "Held-out deviance explained: no rows were held out"
        return (
            f"Held-out deviance explained: {100 * self.deviance_explained:.1f} % "
            f"({self.held_out} rows)"
        )

    def _effects(self) -> list[str]:
        if not self.effects:
            return []
        names = [self._label(effect) for effect in self.effects]
        columns = [format_column([effect.estimate for effect in self.effects])]
        header = ["", "Effect"]
        if self.refits:
            header += ["Lower", "Upper"]
            for end in ("lower", "upper"):
                ends = [getattr(effect, end) for effect in self.effects]
                columns.append(format_column([float("nan") if e is None else e for e in ends]))
        rows = [list(row) for row in zip(names, *columns, strict=True)]
        text = (
            f"Intervals: {100 * self.level:g} %, by the standard deviation over {self.refits} "
            "bootstrap refits."
            if self.refits
            else "No intervals: they need bootstrap refits."
        )
        return [
            "Average marginal effects on the predicted mean:",
            *align(header, rows),
            text,
            "Effects describe the model's predictions; they are not causal by themselves.",
        ]

    def _label(self, effect: Effect) -> str:
        label = f"{effect.name} {effect.contrast}"
        if effect.output is not None:
            names = self.class_names
            label += f" [{names[effect.output] if names else effect.output}]"
        return plain(label)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and strings."""
        return {
            "call": self.call,
            "likelihood": self.likelihood,
            "link": self.link,
            "network": self.network,
            "parameters": self.parameters,
            "deviance_explained": self.deviance_explained,
            "held_out": self.held_out,
            "effects": [effect._asdict() for effect in self.effects],
            "intervals": f"t over {self.refits} bootstrap refits" if self.refits else None,
            "level": self.level if self.refits else None,
            "rows_dropped": self.rows_dropped,
            "messages": self.messages,
        }
