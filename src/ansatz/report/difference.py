"""Computes the mean of paired differences and its standard error."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.errors import UsageError
from ansatz.report.paired_scores import ScorePair

FEW_ROWS = 100  # below this the standard error of log scores is unreliable
FEW_GROUPS = 30  # the same for clustered standard errors
CLEAR = 2.0  # number of standard errors of a clear difference


class Difference(NamedTuple):
    r"""A mean difference of scores, :math:`\bar d = \sum_i w_i (a_i - b_i) / \sum_i w_i`."""

    mean: float  # of a - b
    error: float | None  # its standard error; None where it is undefined
    method: str  # how the standard error was computed, in words
    rows: int  # number of rows compared
    units: int  # number of independent rows, groups or time points
    worst_share: float | None  # of the 1 % of rows that differ most in the total; None if that is 0
    worst_rows: int  # number of these rows

    @property
    def is_clear(self) -> bool:
        """Whether the mean is at least two standard errors from 0."""
        if self.mean == 0 or math.isnan(self.mean):
            return False
        return math.isinf(self.mean) or (
            self.error is not None and abs(self.mean) >= CLEAR * self.error
        )


def paired_difference(
    a: ArrayLike,
    b: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    group: ArrayLike | None = None,
    time: ArrayLike | None = None,
) -> Difference:
    r"""Computes the mean difference of two scores of the same rows and its standard error.

    Rows that are independent of each other give

    .. math:: s^2 = \frac{1}{W (W - 1)} \sum_i w_i (d_i - \bar d)^2, \qquad W = \sum_i w_i,

    groups the clustered :math:`\frac{G}{G - 1} \sum_g S_g^2 / W^2` with
    :math:`S_g = \sum_{i \in g} w_i (d_i - \bar d)`, and an order in time that of Newey and West,
    with :math:`S_t` the sum over the rows of one time point, Bartlett's weights and
    :math:`L = \lfloor 4 (T / 100)^{2/9} \rfloor` lags:

    .. math:: \frac{T}{T - 1} \Big(\sum_t S_t^2 + 2 \sum_{l=1}^{L} \big(1 - \tfrac{l}{L + 1}\big)
              \sum_t S_t S_{t-l}\Big) / W^2 .

    With both, the larger of the two.

    Args:
        a: ``(N,)``.
        b: ``(N,)``.
        weight: ``(N,)`` frequency weights.
        group: ``(N,)`` group labels; a missing value is a group of its own.
        time: ``(N,)`` numbers or dates.

    References:
        Diebold and Mariano (1995), Comparing predictive accuracy.
        Newey and West (1987), A simple, positive semi-definite, heteroskedasticity and
        autocorrelation consistent covariance matrix.
        Liang and Zeger (1986), Longitudinal data analysis using generalized linear models.
    """
    first, second = (np.asarray(part, dtype=np.float64) for part in (a, b))
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise UsageError(
            f"paired scores must be two rows of equal length, got {first.shape} and {second.shape}."
        )
    w = np.ones(len(first)) if weight is None else np.asarray(weight, dtype=np.float64)
    # Two scores of minus infinity are equal: neither model is better there.
    d = np.subtract(first, second, out=np.zeros(len(first)), where=first != second)
    with np.errstate(invalid="ignore"):  # infinities of both signs have no mean
        mean = float(np.average(d, weights=w))
        share, worst = _worst_share(w * d)
    if not np.isfinite(d).all():
        return Difference(mean, None, "undefined", len(d), len(d), share, worst)
    found = [_alone(d, w, mean)] if group is None and time is None else []
    if group is not None:
        found.append(_clustered(d, w, mean, np.asarray(group)))
    if time is not None:
        found.append(_newey_west(d, w, mean, time))
    error, method, units = max(found, key=lambda item: -1.0 if item[0] is None else item[0])
    return Difference(mean, error, method, len(d), units, share, worst)


def corrected_error(
    differences: ArrayLike, tested: float, learned: float
) -> tuple[float, float | None]:
    r"""Computes mean and corrected standard error of the differences of J overlapping splits.

    .. math:: s \sqrt{\frac{1}{J} + \frac{n_{test}}{n_{train}}}

    Splits of one table share most of their training rows: :math:`s / \sqrt J` shrinks with every
    repetition although no row is added.

    Args:
        differences: ``(J,)``, the mean difference of each split.
        tested: number of test rows of a split.
        learned: number of training rows.

    Returns:
        The mean, and the standard error; None for a single split.

    References:
        Nadeau and Bengio (2003), Inference for the generalization error, equation 17.
        https://doi.org/10.1023/A:1024068626366
    """
    d = np.asarray(differences, dtype=np.float64)
    mean = float(d.mean())
    if len(d) < 2 or not np.isfinite(d).all():
        return mean, None
    return mean, float(d.std(ddof=1)) * math.sqrt(1 / len(d) + tested / learned)


def fits_verdict(a: str, b: str, difference: Difference, pair: ScorePair) -> tuple[str, str | None]:
    """Writes which of two models is better on the test rows; None if the difference is noise."""
    name = "loss" if pair.note and "is a loss" in pair.note else score_words(pair.name)
    rows = f"on {difference.rows} test rows"
    if math.isnan(difference.mean):
        return f"Not comparable: each model gives some outcomes probability 0 {rows}.", None
    winner, loser = (a, b) if difference.mean > 0 else (b, a)
    if math.isinf(difference.mean):
        count = int((~np.isfinite(pair.b if winner == a else pair.a)).sum())
        outcomes = "1 outcome" if count == 1 else f"{count} outcomes"
        return f"{winner} is better: {loser} gives {outcomes} probability 0 {rows}.", winner
    if difference.error is None:
        return f"Not distinguishable: too few {rows} for a standard error.", None
    if np.array_equal(pair.a, pair.b):
        return f"Not distinguishable: the models predict the same {rows}.", None
    size, error = f"{abs(difference.mean):.2g}", f"{difference.error:.2g}"
    if not difference.is_clear:
        words = f"the {name} differs by {size} with a standard error of {error} {rows}"
        return f"Not distinguishable: {words}.", None
    direction = "higher" if pair.higher else "lower"
    words = f"its {name} is {direction} by {size} (standard error {error}) {rows}"
    return f"{winner} is better: {words}.", winner


def score_words(score: str) -> str:
    """Names a score for a sentence."""
    return {"integrated_brier": "integrated Brier score"}.get(score, score)


Error = tuple[float | None, str, int]


def _alone(d: NDArray[np.float64], w: NDArray[np.float64], mean: float) -> Error:
    total = float(w.sum())
    if len(d) < 2 or total <= 1:
        return None, "undefined", len(d)
    return math.sqrt(float((w * (d - mean) ** 2).sum()) / (total - 1) / total), "rows", len(d)


def _clustered(
    d: NDArray[np.float64], w: NDArray[np.float64], mean: float, group: NDArray[Any]
) -> Error:
    import pandas as pd

    codes = pd.factorize(group)[0]
    alone = codes < 0
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(alone.sum())
    sums = np.bincount(codes, weights=w * (d - mean))
    count = len(sums)
    if count < 2:
        return None, "undefined", count
    variance = count / (count - 1) * float(sums @ sums) / float(w.sum()) ** 2
    return math.sqrt(variance), f"clustered, {count} groups", count


def _newey_west(
    d: NDArray[np.float64], w: NDArray[np.float64], mean: float, time: ArrayLike
) -> Error:
    sums = np.bincount(moments(time), weights=w * (d - mean))
    count = len(sums)
    if count < 2:
        return None, "undefined", count
    lags = min(int(4 * (count / 100) ** (2 / 9)), count - 1)
    total = float(sums @ sums)
    for lag in range(1, lags + 1):
        total += 2 * (1 - lag / (lags + 1)) * float(sums[lag:] @ sums[:-lag])
    variance = count / (count - 1) * total / float(w.sum()) ** 2
    return math.sqrt(max(variance, 0.0)), f"Newey-West, {lags} lags of {count} time points", count


def moments(time: ArrayLike) -> NDArray[np.intp]:
    """Ranks the time of each row among the distinct times."""
    import pandas as pd

    from ansatz.data.dates import as_dates

    column = pd.Series(np.asarray(time))
    values = column if pd.api.types.is_numeric_dtype(column.dtype) else as_dates(column)
    places: NDArray[np.intp] = np.unique(values.to_numpy(), return_inverse=True)[1]
    return places


def _worst_share(parts: NDArray[np.float64]) -> tuple[float | None, int]:
    """Computes the share of the total that comes from the 1 % of rows with the largest terms."""
    count = max(1, math.ceil(len(parts) / 100))
    total = float(parts.sum())
    if total == 0 or not math.isfinite(total):
        return None, count
    worst = np.argpartition(-np.abs(parts), count - 1)[:count]
    return float(parts[worst].sum()) / total, count
