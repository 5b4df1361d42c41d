"""Boosted trees that tell real rows from drawn ones, or are trained on drawn ones."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

MOST = 20_000  # rows of each kind
FOLDS = 5


class Share(NamedTuple):
    """A number between 0 and 1 with its standard error."""

    value: float
    error: float


class Trees(NamedTuple):
    """Boosted trees of one column given the others."""

    model: Any
    target: str
    levels: dict[str, dict[str, int]]
    numeric: bool

    def auc(self, frame: "pd.DataFrame") -> float:
        """The area under the ROC curve on other rows; of numbers, R squared."""
        from sklearn.metrics import r2_score, roc_auc_score

        X = _numbers(frame.drop(columns=self.target), self.levels)
        if self.numeric:
            return float(r2_score(frame[self.target].astype(float), self.model.predict(X)))
        y = frame[self.target].astype(str)
        shares = self.model.predict_proba(X)
        if shares.shape[1] == 2:
            return float(roc_auc_score(y == self.model.classes_[1], shares[:, 1]))
        return float(np.mean([_one(y == c, shares[:, k]) for k, c in self._known(y)]))

    def _known(self, y: Any) -> list[tuple[int, Any]]:
        return [(k, c) for k, c in enumerate(self.model.classes_) if 0 < (y == c).sum() < len(y)]


def _one(truth: Any, score: Any) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, score))


def trees(frame: "pd.DataFrame", target: str, seed: int = 0) -> Trees:
    """Trains boosted trees of ``target`` given the other columns."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    X = frame.drop(columns=target)
    levels = _levels(X)
    numeric = pd.api.types.is_numeric_dtype(frame[target]) and frame[target].nunique() > 10
    kind = HistGradientBoostingRegressor if numeric else HistGradientBoostingClassifier
    y = frame[target].astype(float) if numeric else frame[target].astype(str)
    made = kind(random_state=seed).fit(_numbers(X, levels), y)
    return Trees(made, target, levels, numeric)


def two_sample_auc(real: Any, drawn: Any, *, seed: int = 0) -> Share:
    """The area under the ROC curve of trees that tell real rows from drawn ones, out of fold.

    0.5 where they cannot be distinguished, 1 where every row can. Its standard error is that of
    Hanley and McNeil.

    Args:
        real: rows of a table, or features ``(N, D)``.
        drawn: likewise.
        seed: of folds and trees.

    Example:
        >>> import numpy as np
        >>> from ansatz.generative.two_sample import two_sample_auc
        >>> rng = np.random.default_rng(0)
        >>> found = two_sample_auc(rng.normal(size=(80, 2)), rng.normal(size=(80, 2)) + 3)
        >>> found.value > 0.9
        True

    References:
        Lopez-Paz and Oquab (2017), Revisiting classifier two-sample tests.
        https://arxiv.org/abs/1610.06545
    """
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    first, second = (pd.DataFrame(each)[:MOST] for each in (real, drawn))
    count = min(len(first), len(second))
    whole = pd.concat([first[:count], second[:count]], ignore_index=True)
    X = _numbers(whole, _levels(whole))
    y = np.repeat([1, 0], count)
    folds = StratifiedKFold(min(FOLDS, count), shuffle=True, random_state=seed)
    model = HistGradientBoostingClassifier(random_state=seed)
    score = cross_val_predict(model, X, y, cv=folds, method="predict_proba")[:, 1]
    return Share(_one(y, score), area_error(_one(y, score), count, count))


def area_error(area: float, first: int, second: int) -> float:
    """The standard error of an area under the ROC curve (Hanley and McNeil)."""
    a, b = area / (2 - area), 2 * area**2 / (1 + area)
    total = area * (1 - area) + (first - 1) * (a - area**2) + (second - 1) * (b - area**2)
    return float(np.sqrt(max(total, 0.0) / max(first * second, 1)))


def _levels(frame: "pd.DataFrame") -> dict[str, dict[str, int]]:
    """Codes of the levels of columns that hold no numbers."""
    import pandas as pd

    found = {}
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]) and frame[name].dtype.kind != "M":
            texts = sorted(frame[name].dropna().astype(str).unique())
            found[name] = {text: code for code, text in enumerate(texts)}
    return found


def _numbers(frame: "pd.DataFrame", levels: dict[str, dict[str, int]]) -> NDArray[np.float64]:
    """The rows as numbers; a level that was never seen is missing."""
    columns = []
    for name in frame.columns:
        column = frame[name]
        if name in levels:
            gone = column.isna()
            codes = column.astype(str).map(levels[name])
            columns.append(codes.where(~gone).to_numpy(dtype=np.float64))
        elif column.dtype.kind == "M":
            columns.append(column.astype("int64").to_numpy(dtype=np.float64))
        else:
            columns.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.column_stack(columns)
