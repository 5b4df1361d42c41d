"""Measures the quality of default fits on tables and survival data."""

import functools
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.race import Quartiles
from ansatz.bench.record import mean_of, repeated, run_facts

if TYPE_CHECKING:
    from ansatz.data import Dataset


TABLES = ("abalone", "bike-sharing", "diamonds", "adult")
SPLITS = 3
TREES = "boosted trees"


def quality_tables(options: BenchOptions) -> list[Finding]:
    """Measures RMSE or error beside boosted trees, and nll beside the linear model.

    A fifth of the rows tests: at random, the latest ones where rows have a time, the published
    ones where there are any. Numbers have the normal likelihood, as the trees have squared error.
    """
    fit = functools.partial(_fit, inference=options.inference)
    done = repeated(
        *("quality-tables", TABLES, fit, options),
        times=SPLITS,
        by="split",
        inference=options.inference,
    )
    return [finding for name, rows in done for finding in _findings(name, rows)]


def rows_of(data: "Dataset", split: int) -> tuple[np.ndarray, np.ndarray]:
    """Splits row numbers into training and test rows."""
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
    mean = functools.partial(mean_of, rows)
    facts = {**run_facts(rows, "split"), "likelihood": rows[0]["likelihood"]}
    error = Finding(
        f"{name}: {rows[0]['measure']}",
        rows[0]["measure"],
        mean("error"),
        {TREES: mean(TREES)},
        {TREES: Quartiles.of([row["error"] / row[TREES] for row in rows])},
        {TREES: Bound(at_most=1.05)},
        facts=facts,
    )
    nll = Finding(
        f"{name}: test nll",
        "nats",
        mean("nll"),
        {"linear": mean("linear nll")},
        limit={"ours": Bound(at_most=mean("linear nll"))},
    )
    return [error, nll]


NLL = {"boston": 2.30, "concrete": 2.92, "energy": 0.52, "kin8nm": -1.35, "wine": 0.93}
DEEP_ENSEMBLES = {"boston": 2.41, "concrete": 3.06, "energy": 1.38, "kin8nm": -1.20, "wine": 0.94}
UCI_SPLITS = 20


def quality_uci(options: BenchOptions) -> list[Finding]:
    """Measures test nll in original units, coverage of 90 % intervals and RMSE.

    One recipe for all sets and splits; test rows choose nothing.
    """
    fit = functools.partial(_fit_uci, options=options)
    done = repeated(
        "quality-uci", NLL, fit, options, times=UCI_SPLITS, by="split", inference=options.inference
    )
    return [finding for name, rows in done for finding in _uci_findings(name, rows)]


def _fit_uci(name: str, split: int, options: BenchOptions) -> dict[str, Any]:
    from ansatz.data import load
    from ansatz.estimators import Regressor

    data = load(name)
    train, test = data.split(split)
    y = data.frame[data.target].to_numpy(float)
    x = data.frame.drop(columns=[data.target])
    began = time.perf_counter()
    model = Regressor(likelihood="normal", inference=options.inference, random_state=options.seed)
    model.fit(x.iloc[train], y[train])
    seconds = time.perf_counter() - began
    lower, upper = model.interval(x.iloc[test], level=0.9).T
    metrics = model.evaluate(x.iloc[test], y[test])
    covered = float(((lower <= y[test]) & (y[test] <= upper)).mean())
    kept = {key: metrics[key] for key in ("nll", "rmse", "crps")}
    return {**kept, "coverage": covered, "rows": len(train), "seconds": seconds}


def _uci_findings(name: str, rows: list[dict[str, Any]]) -> list[Finding]:
    mean = functools.partial(mean_of, rows)
    error = statistics.stdev(r["nll"] for r in rows) / len(rows) ** 0.5 if len(rows) > 1 else None
    facts = {**run_facts(rows, "split"), "standard error": error, "rmse": mean("rmse")}
    nll = Finding(
        f"{name}: test nll",
        "nats, mean over splits",
        mean("nll"),
        {"deep ensembles, published": DEEP_ENSEMBLES[name]},
        limit={"ours": Bound(at_most=NLL[name])},
        facts=facts,
    )
    coverage = Finding(
        f"{name}: 90 % intervals",
        "share of test outcomes inside",
        mean("coverage"),
        limit={"ours": Bound(0.87, 0.95)},
    )
    if name != "concrete":
        return [nll, coverage]
    seconds = Finding(
        f"{name}: a fit of {rows[0]['rows']} rows",
        "seconds, median over splits",
        facts["seconds"],
        limit={"ours": Bound(at_most=10.0)},
    )
    return [nll, coverage, seconds]


HARRELL = {"metabric": 0.640, "gbsg": 0.670}
SEEDS = 5


def quality_survival(options: BenchOptions) -> list[Finding]:
    """Measures Harrell's C, Uno's C and the integrated Brier score, mean of five seeds."""
    fit = functools.partial(_fit_survival, inference=options.inference)
    done = repeated(
        "quality-survival", HARRELL, fit, options, times=SEEDS, inference=options.inference
    )
    return [_survival_finding(name, HARRELL[name], rows) for name, rows in done]


def _fit_survival(name: str, seed: int, inference: str) -> dict[str, Any]:
    from ansatz.data import load
    from ansatz.estimators import SurvivalRegressor

    data = load(name)
    train, test = data.split()
    outcome = data.frame[["time", "event"]]
    x = data.frame.drop(columns=["time", "event"])
    began = time.perf_counter()
    model = SurvivalRegressor("cox", inference=inference, random_state=seed)
    model.fit(x.iloc[train], outcome.iloc[train])
    seconds = time.perf_counter() - began
    cox = SurvivalRegressor("cox", network="linear").fit(x.iloc[train], outcome.iloc[train])
    evaluated = {
        who: each.evaluate(x.iloc[test], outcome.iloc[test])
        for who, each in {"network": model, "cox": cox}.items()
    }
    return {**evaluated, "seconds": seconds}


def _survival_finding(name: str, least: float, rows: list[dict[str, Any]]) -> Finding:
    def mean(who: str, key: str) -> float:
        return statistics.fmean(row[who][key] for row in rows)

    differences = [row["network"]["c_index"] - row["cox"]["c_index"] for row in rows]
    sd = statistics.stdev(differences) if len(differences) > 1 else None
    return Finding(
        f"{name}: Harrell's C",
        "probability, mean over seeds",
        mean("network", "c_index"),
        {"cox": mean("cox", "c_index")},
        limit={"ours": Bound(at_least=least)},
        facts={
            **run_facts(rows, "seed"),
            "uno_c": {who: mean(who, "uno_c") for who in ("network", "cox")},
            "integrated_brier": {who: mean(who, "integrated_brier") for who in ("network", "cox")},
            "difference to cox": {"mean": statistics.fmean(differences), "sd": sd},
        },
    )
