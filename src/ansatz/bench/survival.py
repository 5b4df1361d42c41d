"""Survival of patients: networks beside our own Cox model, on the published splits."""

import statistics
import time
from typing import Any

from ansatz.bench.bar import Bar
from ansatz.bench.finding import Finding
from ansatz.bench.options import Options
from ansatz.bench.repeats import repeated

HARRELL = {"metabric": 0.640, "gbsg": 0.670}
SEEDS = 5


def quality_survival(options: Options) -> list[Finding]:
    """Harrell's C, Uno's C and the integrated Brier score, mean of five seeds.

    Example:
        >>> from ansatz.bench.survival import HARRELL
        >>> HARRELL["metabric"]
        0.64
    """

    def fit(name: str, seed: int) -> dict[str, Any]:
        return _fit(name, seed, options.inference)

    done = repeated(
        "quality-survival", HARRELL, fit, options, times=SEEDS, inference=options.inference
    )
    return [_finding(name, HARRELL[name], rows) for name, rows in done]


def _fit(name: str, seed: int, inference: str) -> dict[str, Any]:
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


def _finding(name: str, least: float, rows: list[dict[str, Any]]) -> Finding:
    def mean(who: str, key: str) -> float:
        return statistics.fmean(row[who][key] for row in rows)

    differences = [row["network"]["c_index"] - row["cox"]["c_index"] for row in rows]
    spread = statistics.stdev(differences) if len(differences) > 1 else None
    return Finding(
        f"{name}: Harrell's C",
        "probability, mean over seeds",
        mean("network", "c_index"),
        {"cox": mean("cox", "c_index")},
        limit={"ours": Bar(at_least=least)},
        facts={
            "seeds": len(rows),
            "uno_c": {who: mean(who, "uno_c") for who in ("network", "cox")},
            "integrated_brier": {who: mean(who, "integrated_brier") for who in ("network", "cox")},
            "difference to cox": {"mean": statistics.fmean(differences), "sd": spread},
            "seconds": statistics.median(row["seconds"] for row in rows),
            "commits": sorted({row["commit"] or "" for row in rows}),
        },
    )
