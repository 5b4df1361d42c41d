"""Multiple imputation by chained equations, and Rubin's rules for what follows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.categorical import sort_levels, spelled
from ansatz.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

CYCLES = 10  # over the columns with missing values
DONORS = 5  # rows from which a missing number takes its value
RIDGE = 1e-5  # of the regressions, relative to their diagonal: columns may determine each other
LEVELS = 50  # of a category that is imputed


def impute(
    frame: "pd.DataFrame",
    categorical: Sequence[str],
    *,
    outcome: NDArray[np.float64] | None = None,
    imputations: int = 20,
    cycles: int = CYCLES,
    seed: int = 0,
) -> "list[pd.DataFrame]":
    r"""Completes a table several times by chained equations.

    Each column with missing values is regressed on all others and on the outcome, in turn, with
    the present values of their gaps; a draw of the regression's coefficients predicts its gaps. A
    number takes the value of one of the five observed rows with the nearest prediction (predictive
    mean matching, so that it stays among possible values); a category is drawn from the
    probabilities of a logistic regression fitted to a bootstrap sample of its observed rows. After
    ``cycles`` rounds the table is one draw of what the gaps may have held. Right where missingness
    depends on what was observed only.

    Args:
        frame: columns of numbers and categories; others pass unchanged and predict nothing.
        categorical: names of the categories.
        outcome: ``(N, L)`` numbers without gaps that take part as predictors. Without the outcome
            imputed columns would be unrelated to it, and coefficients too small.
        imputations: m, the number of completed tables.
        cycles: rounds of each.
        seed: of the draws.

    Example:
        >>> import numpy as np
        >>> import pandas as pd
        >>> from ansatz.linear import impute
        >>> rows = pd.DataFrame({"a": [1.0, 2.0, np.nan, 4.0], "b": [2.0, 4.0, 6.0, 8.0]})
        >>> [bool(table["a"].notna().all()) for table in impute(rows, [], imputations=2)]
        [True, True]

    References:
        van Buuren and Groothuis-Oudshoorn (2011), mice: multivariate imputation by chained
        equations in R. https://doi.org/10.18637/jss.v045.i03
        White, Royston and Wood (2011), Multiple imputation using chained equations: issues and
        guidance for practice. https://doi.org/10.1002/sim.4067
    """
    if imputations < 2:
        raise UsageError(f"multiple imputation needs at least 2 imputations, got {imputations}.")
    read = [_Column.of(frame[name], name in categorical) for name in frame.columns]
    columns = [column for column in read if column is not None]
    gaps = sorted((c for c in columns if c.gaps.any()), key=lambda c: int(c.gaps.sum()))
    fixed = _standardised(outcome) if outcome is not None else np.zeros((len(frame), 0))
    completed = []
    for k in range(imputations):
        rng = np.random.default_rng([seed, k])
        values = {column.name: column.start(rng) for column in columns}
        for _ in range(cycles if len(gaps) > 1 else 1):
            for column in gaps:
                others = [c.features(values[c.name]) for c in columns if c is not column]
                x = np.concatenate([np.ones((len(frame), 1)), *others, fixed], axis=1)
                values[column.name] = column.draw(x, rng)
        filled = {column.name: column.cells(values[column.name]) for column in gaps}
        completed.append(frame.assign(**filled))
    return completed


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    kept = np.isfinite(values).all(0)
    values = values[:, kept]
    sd = values.std(0)
    return (values - values.mean(0))[:, sd > 0] / sd[sd > 0]


class _Column(NamedTuple):
    """A column with what is observed of it: numbers, or codes of levels."""

    name: str
    cells_: Any
    values: NDArray[np.float64]  # (N,), nan in the gaps; codes of a category
    gaps: NDArray[np.bool_]
    levels: list[str] | None

    @classmethod
    def of(cls, cells: "pd.Series", categorical: bool) -> "_Column | None":
        name = str(cells.name)
        if not categorical:
            if cells.dtype.kind not in "iuf":
                return None
            values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
            gaps = np.isnan(values)
            return None if gaps.all() else cls(name, cells, values, gaps, None)
        codes, levels = spelled(cells)
        gaps = codes < 0
        if gaps.all() or len(levels) > LEVELS:
            return None
        order = sort_levels(levels)
        place = np.array([order.index(level) for level in levels])
        return cls(name, cells, np.where(gaps, np.nan, place[codes]), gaps, order)

    def start(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """The gaps filled by observed values at random."""
        return np.where(self.gaps, rng.choice(self.values[~self.gaps], len(self.gaps)), self.values)

    def features(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standardised numbers, or indicators of all levels but the first."""
        if self.levels is None:
            return _standardised(values)
        return (values[:, None] == np.arange(1, len(self.levels))).astype(np.float64)

    def draw(self, x: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """The column with its gaps drawn given the others."""
        known, gone = x[~self.gaps], x[self.gaps]
        y = self.values[~self.gaps]
        drawn = (
            _matched(known, y, gone, rng) if self.levels is None else _class(known, y, gone, rng)
        )
        values = self.values.copy()
        values[self.gaps] = drawn
        return values

    def cells(self, values: NDArray[np.float64]) -> Any:
        """The column as it came, its gaps filled."""
        import pandas as pd

        if self.levels is None:
            whole = self.cells_.dtype.kind in "iu"
            return pd.Series(values.astype(np.int64) if whole else values, self.cells_.index)
        filled = self.cells_.astype(object).to_numpy().copy()
        own = dict(zip(self.values[~self.gaps].astype(int), filled[~self.gaps], strict=True))
        filled[self.gaps] = [own[int(code)] for code in values[self.gaps]]
        return pd.Series(filled, self.cells_.index).astype(self.cells_.dtype)


def _matched(
    known: NDArray[np.float64],
    y: NDArray[np.float64],
    gone: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Predictive mean matching: the value of a row with a near prediction (type 1 of mice)."""
    gram = known.T @ known
    gram[np.diag_indices_from(gram)] *= 1 + RIDGE
    inverse = np.linalg.pinv(gram, hermitian=True)
    beta = inverse @ (known.T @ y)
    rest = y - known @ beta
    df = max(len(y) - known.shape[1], 1)
    sigma = np.sqrt(rest @ rest / rng.chisquare(df))
    values, vectors = np.linalg.eigh((inverse + inverse.T) / 2)
    root = vectors * np.sqrt(np.clip(values, 0, None))
    drawn = beta + sigma * root @ rng.normal(size=len(beta))
    order = np.argsort(known @ beta, kind="stable")
    predicted, at = (known @ beta)[order], gone @ drawn
    donors = min(DONORS, len(y))
    # The donors lie within as many places of where the prediction falls among the sorted ones.
    middle = np.searchsorted(predicted, at)
    near = np.clip(middle[:, None] + np.arange(-donors, donors), 0, len(y) - 1)  # (M, 2 donors)
    distance = np.abs(predicted[near] - at[:, None])
    repeated = np.zeros_like(near, dtype=bool)
    repeated[:, 1:] = near[:, 1:] == near[:, :-1]
    best = np.argsort(np.where(repeated, np.inf, distance), axis=1, kind="stable")[:, :donors]
    chosen = best[np.arange(len(at)), rng.integers(0, donors, len(at))]
    return y[order[near[np.arange(len(at)), chosen]]]


def _class(
    known: NDArray[np.float64],
    y: NDArray[np.float64],
    gone: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """A level drawn from a logistic regression of a bootstrap sample of the observed rows."""
    from sklearn.linear_model import LogisticRegression

    rows = rng.integers(0, len(y), len(y))
    if len(np.unique(y[rows])) < 2:
        return np.full(len(gone), y[rows][0])
    # A weak penalty, which separated levels need: one row's worth on a standardised coefficient.
    model = LogisticRegression(C=1.0, max_iter=200, tol=1e-3)
    model.fit(known[rows, 1:], y[rows])
    cumulated = model.predict_proba(gone[:, 1:]).cumsum(1)
    drawn = (rng.random((len(gone), 1)) > cumulated).sum(1).clip(max=len(model.classes_) - 1)
    return model.classes_[drawn]


class Pooled(NamedTuple):
    """Estimates pooled over completed tables.

    Args:
        estimate: ``(T,)`` means of the estimates.
        covariance: ``(T, T)`` total covariance: within and between tables.
        df: ``(T,)`` degrees of freedom of Barnard and Rubin.
        missing_information: ``(T,)`` share of the information that is missing.
        imputations: m.

    Example:
        >>> import torch
        >>> from ansatz.linear import pool
        >>> estimates, covariances = torch.tensor([[1.0], [3.0]]), torch.ones(2, 1, 1)
        >>> pool(estimates, covariances, df_complete=100.0).covariance  # 1 + 1.5 * 2
        tensor([[4.]])
    """

    estimate: Tensor
    covariance: Tensor
    df: Tensor
    missing_information: Tensor
    imputations: int


def pool(estimates: Tensor, covariances: Tensor, df_complete: float) -> Pooled:
    r"""Pools estimates of completed tables by Rubin's rules.

    .. math:: \bar Q = \frac1m \sum_k Q_k, \quad T = W + \Big(1 + \frac1m\Big) B, \quad
              \lambda = \Big(1 + \frac1m\Big) \frac{B}{T}, \quad
              \frac1\nu = \frac{\lambda^2}{m - 1} +
              \frac{\nu_c + 3}{(\nu_c + 1)\, \nu_c\, (1 - \lambda)}

    with W the mean of the covariances, B the covariance of the estimates and :math:`\nu_c` the
    degrees of freedom without gaps. With r = (1 + 1/m) B / W the fraction of missing information is
    :math:`(r + 2 / (\nu + 3)) / (r + 1)`.

    Args:
        estimates: ``(m, T)``.
        covariances: ``(m, T, T)``.
        df_complete: of the same analysis without gaps, n - p; infinite for a large sample.

    Example:
        >>> import torch
        >>> from ansatz.linear import pool
        >>> found = pool(torch.zeros(5, 1), torch.ones(5, 1, 1), df_complete=50.0)
        >>> found.missing_information.item() < 0.05  # the tables agree
        True

    References:
        Rubin (1987), Multiple Imputation for Nonresponse in Surveys.
        Barnard and Rubin (1999), Small-sample degrees of freedom with multiple imputation.
        https://doi.org/10.1093/biomet/86.4.948
    """
    m = len(estimates)
    if m < 2:
        raise UsageError(f"Rubin's rules need at least 2 completed tables, got {m}.")
    mean = estimates.mean(0)
    within = covariances.mean(0)
    apart = estimates - mean
    between = apart.T @ apart / (m - 1)
    total = within + (1 + 1 / m) * between
    w, b, t = within.diagonal(), (1 + 1 / m) * between.diagonal(), total.diagonal()
    share = b / t
    inverse = share**2 / (m - 1)
    if df_complete != float("inf"):
        inverse = inverse + (df_complete + 3) / ((df_complete + 1) * df_complete * (1 - share))
    df = 1 / inverse
    r = b / w
    shortfall = torch.where(torch.isfinite(df), 2 / (df + 3), torch.zeros_like(df))
    return Pooled(mean, total, df, (r + shortfall) / (r + 1), m)
