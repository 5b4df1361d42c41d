"""Measures forecasts: their quality on published series, and the speed of a step."""

import statistics
import time
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.race import race
from ansatz.bench.record import repeated, run_facts

SEEDS = 3
ETT = {"target": "OT", "time": "date", "parts": [8640, 2880, 2880], "likelihood": "normal"}
FLU = {
    **{"target": "cases", "time": "week", "identifier": "district", "exposure": "population"},
    **{"edges": "neighbours.csv", "likelihood": "negative_binomial", "test": 0.25},
}
BIKE = {
    **{"target": "cnt", "time": "dteday+hr", "drop": ["casual", "registered", "instant"]},
    **{"known": ["holiday", "workingday"], "likelihood": "negative_binomial"},
}


class Goal(NamedTuple):
    """A series to forecast, the measure and its bar."""

    data: str
    horizon: int
    options: dict[str, Any]
    metric: str
    bar: float | None  # the largest mean; None: below every baseline


GOALS = {
    "etth1-24": Goal("etth1", 24, ETT, "crps", 0.090),
    "etth1-96": Goal("etth1", 96, ETT, "crps", 0.130),
    "flu-1": Goal("flu-by-bw", 1, FLU, "nll", 0.575),
    "flu-4": Goal("flu-by-bw", 4, FLU, "last_nll", 0.62),
    "bike-24": Goal("bike-sharing", 24, BIKE, "crps", None),
}


def quality_forecast(options: BenchOptions) -> list[Finding]:
    """Measures default forecasts of three seeds on the last part of each series."""
    done = repeated("quality-forecast", options.pick(GOALS), _fit, options, times=SEEDS)
    return [finding for name, rows in done for finding in _findings(name, rows)]


def _fit(name: str, seed: int) -> dict[str, Any]:
    import torch

    import ansatz
    from ansatz.data import load
    from ansatz.fitting.job import take

    goal, began = GOALS[name], time.process_time()
    fit = ansatz.fit(goal.data, horizon=goal.horizon, seed=seed, **goal.options)
    seconds = time.process_time() - began
    unit = 1.0
    if goal.data == "etth1":  # standardised by the training rows
        unit = float(load("etth1").frame["OT"][: ETT["parts"][0]].std(ddof=0))
    assert fit.split_problem is not None
    _, job, parts = fit.split_problem
    test = take(job, parts.test)
    served = fit.fitted.predictive(test.rows)
    with torch.no_grad():
        distribution = served.likelihood.distribution(served.raw)
        losses = -distribution.log_prob(test.y)
    assert fit.metrics is not None
    crps = {
        each: score / unit
        for each, found in {"linear": fit.linear, "constant": fit.constant, **fit.baselines}.items()
        if found and (score := found.get("crps")) is not None
    }
    return {
        "crps": fit.metrics["crps"] / unit,  # type: ignore[operator]
        "nll": float(losses.mean()),
        "last_nll": float(losses[:, -1].mean()),
        "coverage": fit.metrics["coverage_90"],
        "baselines": crps,
        "linear_nll": None if fit.linear is None else fit.linear["nll"],
        "epochs": fit.epochs,
        "seconds": seconds,
        "recipe": fit.recipe,
    }


def _findings(name: str, rows: list[dict[str, Any]]) -> list[Finding]:
    goal = GOALS[name]
    mean = statistics.fmean(row[goal.metric] for row in rows)
    peers = {
        each: statistics.fmean(row["baselines"][each] for row in rows)
        for each in rows[0]["baselines"]
    }
    bar = goal.bar if goal.bar is not None else min(peers.values())
    facts = {**run_facts(rows, "seed"), "values": [row[goal.metric] for row in rows]}
    facts["recipe"] = rows[0]["recipe"]
    unit = {"crps": "mean CRPS", "nll": "mean log score", "last_nll": "mean log score, last step"}
    found = [
        Finding(
            f"{name}: {unit[goal.metric]}",
            f"{unit[goal.metric]}, mean over seeds; peers: CRPS",
            mean,
            peers,
            limit={"ours": Bound(at_most=bar)},
            facts=facts,
        )
    ]
    if goal.data == "etth1":
        held = statistics.fmean(row["coverage"] for row in rows)
        bound = {"ours": Bound(at_least=0.86, at_most=0.94)}
        found.append(Finding(f"{name}: 90 % intervals", "share held", held, limit=bound))
    return found


STEPS, HORIZON, LENGTH = 300, 24, 336
CASES = {"window": "MLP", "mingru": "GRU"}  # our network -> NeuralForecast's


def speed_forecast(options: BenchOptions) -> list[Finding]:
    """Measures 300 steps of training beside NeuralForecast's, one thread."""
    return [_speed(name, options) for name in options.pick(CASES)]


def _speed(name: str, options: BenchOptions) -> Finding:
    from ansatz import Forecaster

    series = np.sin(np.arange(4_000) / 4) + np.random.default_rng(0).normal(size=4_000)

    def ours() -> None:
        made = Forecaster(
            "normal", horizon=HORIZON, window=LENGTH, network=name, steps=STEPS, batch_size=64,
            evaluations=1, inference="point",
        )  # fmt: skip
        made.fit(series)

    runs, missing = {"ours": ours}, []
    peer = f"NeuralForecast {CASES[name]}"
    if find_spec("neuralforecast") is None:
        missing.append("neuralforecast")
    else:
        runs[peer] = _theirs(CASES[name], series)
    found = race(runs, rounds=options.rounds or 5, seed=options.seed, notify=options.notify)
    facts = {"steps": STEPS, "per step (ms)": 1e3 * found.seconds("ours").median / STEPS}
    bar = {peer: Bound(at_least=3.0)}
    return Finding.of(name, found, bar, missing=missing, facts=facts)


def _theirs(kind: str, series: Any) -> Any:
    """As many steps of the peer's network on as many windows."""
    import neuralforecast  # type: ignore[import-not-found]
    import pandas as pd

    dates = pd.date_range("2020-01-01", periods=len(series), freq="h")
    frame = pd.DataFrame({"unique_id": "a", "ds": dates, "y": series})

    def run() -> None:
        model = getattr(neuralforecast.models, kind)(
            h=HORIZON, input_size=LENGTH, max_steps=STEPS, windows_batch_size=64,
            enable_progress_bar=False, logger=False,
        )  # fmt: skip
        neuralforecast.NeuralForecast(models=[model], freq="h").fit(frame)

    return run
