"""Regression with a predicted spread on five UCI tables and their 20 published splits."""

import statistics
import time
from typing import Any

from ansatz.bench.bar import Bar
from ansatz.bench.finding import Finding
from ansatz.bench.options import Options
from ansatz.bench.repeats import repeated

NLL = {"boston": 2.30, "concrete": 2.92, "energy": 0.52, "kin8nm": -1.35, "wine": 0.93}
DEEP_ENSEMBLES = {"boston": 2.41, "concrete": 3.06, "energy": 1.38, "kin8nm": -1.20, "wine": 0.94}
SPLITS = 20


def quality_uci(options: Options) -> list[Finding]:
    """Mean test negative log-likelihood in original units, coverage of 90 % intervals, RMSE.

    One recipe for all sets and splits; the test rows of a split choose nothing.

    Example:
        >>> from ansatz.bench.uci import NLL
        >>> NLL["boston"]
        2.3
    """

    def fit(name: str, split: int) -> dict[str, Any]:
        return _fit(name, split, options)

    done = repeated(
        "quality-uci", NLL, fit, options, times=SPLITS, by="split", inference=options.inference
    )
    return [finding for name, rows in done for finding in _findings(name, rows)]


def _fit(name: str, split: int, options: Options) -> dict[str, Any]:
    from ansatz.data import load
    from ansatz.estimators import Regressor

    data = load(name)
    train, test = data.split(split)
    y = data.frame[data.target].to_numpy(float)
    x = data.frame.drop(columns=[data.target])
    began = time.perf_counter()
    model = Regressor(
        likelihood="normal",
        inference=options.inference,
        random_state=options.seed,
    )
    model.fit(x.iloc[train], y[train])
    seconds = time.perf_counter() - began
    lower, upper = model.interval(x.iloc[test], level=0.9).T
    metrics = model.evaluate(x.iloc[test], y[test])
    covered = float(((lower <= y[test]) & (y[test] <= upper)).mean())
    kept = {key: metrics[key] for key in ("nll", "rmse", "crps")}
    return {**kept, "coverage": covered, "rows": len(train), "seconds": seconds}


def _findings(name: str, rows: list[dict[str, Any]]) -> list[Finding]:
    def mean(key: str) -> float:
        return statistics.fmean(row[key] for row in rows)

    error = statistics.stdev(r["nll"] for r in rows) / len(rows) ** 0.5 if len(rows) > 1 else None
    facts = {
        "splits": len(rows),
        "standard error": error,
        "rmse": mean("rmse"),
        "seconds": statistics.median(row["seconds"] for row in rows),
        "commits": sorted({row["commit"] or "" for row in rows}),
    }
    nll = Finding(
        f"{name}: test nll",
        "nats, mean over splits",
        mean("nll"),
        {"deep ensembles, published": DEEP_ENSEMBLES[name]},
        limit={"ours": Bar(at_most=NLL[name])},
        facts=facts,
    )
    coverage = Finding(
        f"{name}: 90 % intervals",
        "share of test outcomes inside",
        mean("coverage"),
        limit={"ours": Bar(0.87, 0.95)},
    )
    if name != "concrete":
        return [nll, coverage]
    seconds = Finding(
        f"{name}: a fit of {rows[0]['rows']} rows",
        "seconds, median over splits",
        facts["seconds"],
        limit={"ours": Bar(at_most=10.0)},
    )
    return [nll, coverage, seconds]
