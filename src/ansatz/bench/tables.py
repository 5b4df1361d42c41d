"""Larger tables: networks beside boosted trees and the linear model of the same distribution."""

import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.bench.bar import Bar
from ansatz.bench.finding import Finding
from ansatz.bench.options import Options
from ansatz.bench.race import Spread
from ansatz.bench.repeats import repeated

if TYPE_CHECKING:
    from ansatz.data import Dataset

TABLES = ("abalone", "bike-sharing", "diamonds", "adult")
SPLITS = 3
TREES = "boosted trees"


def quality_tables(options: Options) -> list[Finding]:
    """RMSE or error at most 5 % above HistGradientBoosting's default, nll below the linear model's.

    A fifth of the rows tests: drawn by the split's number, the latest ones where rows have a time,
    the published ones where they are published. Numbers are given the normal distribution, an
    estimator's default, as the trees are given squared error.

    Example:
        >>> from ansatz.bench.tables import TABLES
        >>> "adult" in TABLES
        True
    """

    def fit(name: str, split: int) -> dict[str, Any]:
        return _fit(name, split, options.inference)

    done = repeated(
        "quality-tables",
        TABLES,
        fit,
        options,
        times=SPLITS,
        by="split",
        inference=options.inference,
    )
    return [finding for name, rows in done for finding in _findings(name, rows)]


def rows_of(data: "Dataset", split: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows (train, test) of a split.

    Example:
        >>> from ansatz.bench.tables import rows_of
        >>> from ansatz.data import load
        >>> [len(part) for part in rows_of(load("iris"), 0)]
        [120, 30]
    """
    if data.splits:
        return data.split(0)
    count = len(data.frame)
    if "dteday" in data.frame:
        order = data.frame["dteday"].argsort(kind="stable").to_numpy()
    else:
        order = np.random.default_rng(split).permutation(count)
    cut = count - count // 5
    return np.sort(order[:cut]), np.sort(order[cut:])


def _fit(name: str, split: int, inference: str) -> dict[str, Any]:
    from ansatz.data import infer_columns, load
    from ansatz.estimators import Classifier, Regressor
    from ansatz.structures.vector.report.boosting import encode_columns

    data = load(name)
    train, test = rows_of(data, split)
    x, y = data.frame.drop(columns=[data.target, *data.exclude]), data.frame[data.target]
    learn, evaluate = (x.iloc[train], y.iloc[train]), (x.iloc[test], y.iloc[test])
    classes = y.dtype.kind not in "iuf"
    kind = Classifier if classes else Regressor
    began = time.perf_counter()
    model = kind(inference=inference, random_state=split).fit(*learn)
    seconds = time.perf_counter() - began
    linear = kind(network="linear").fit(*learn)
    columns = infer_columns(learn[0])
    predicted = _trees(
        encode_columns(learn[0], columns),
        learn[1],
        encode_columns(evaluate[0], columns)[0],
        classes,
    )
    truth, ours = evaluate[1].to_numpy(), model.evaluate(*evaluate)
    return {
        "error": _error(truth, model.predict(evaluate[0]), classes),
        TREES: _error(truth, predicted, classes),
        "nll": ours["nll"],
        "linear nll": linear.evaluate(*evaluate)["nll"],
        "likelihood": linear.model_.likelihood_name,
        "measure": "error" if classes else "rmse",
        "seconds": seconds,
    }


def _trees(
    design: tuple[np.ndarray, list[bool]], y: Any, rows: np.ndarray, classes: bool
) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    trees = kind(categorical_features=design[1], random_state=0).fit(design[0], y)
    predicted: np.ndarray = trees.predict(rows)
    return predicted


def _error(truth: np.ndarray, predicted: np.ndarray, classes: bool) -> float:
    if classes:
        return float((truth != predicted).mean())
    return float(np.sqrt(np.mean((truth - predicted) ** 2)))


def _findings(name: str, rows: list[dict[str, Any]]) -> list[Finding]:
    def mean(key: str) -> float:
        return statistics.fmean(row[key] for row in rows)

    facts = {
        "splits": len(rows),
        "likelihood": rows[0]["likelihood"],
        "seconds": statistics.median(row["seconds"] for row in rows),
        "commits": sorted({row["commit"] or "" for row in rows}),
    }
    error = Finding(
        f"{name}: {rows[0]['measure']}",
        rows[0]["measure"],
        mean("error"),
        {TREES: mean(TREES)},
        {TREES: Spread.of([row["error"] / row[TREES] for row in rows])},
        {TREES: Bar(at_most=1.05)},
        facts=facts,
    )
    nll = Finding(
        f"{name}: test nll",
        "nats",
        mean("nll"),
        {"linear": mean("linear nll")},
        limit={"ours": Bar(at_most=mean("linear nll"))},
    )
    return [error, nll]
