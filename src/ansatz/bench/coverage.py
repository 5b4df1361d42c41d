"""Measures whether intervals and probabilities hold what they claim, on simulated rows."""

import functools
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.record import mean_of, repeated, run_facts

Array = NDArray[np.float64]

ROWS, COLUMNS = (100, 200, 300, 1_000), (5, 30)
KINDS = ("normal", "scale", "curved", "poisson", "gamma", "binary")
CASES = [f"{kind}-{rows}-{columns}" for kind in KINDS for rows in ROWS for columns in COLUMNS]
REPLICATES = 40
TEST = 1_000  # simulated rows that evaluate a fit
LEVEL = 0.9
HELD = Bound(0.87, 0.93)
SLOPE = Bound(0.8, 1.2)
MODELS: dict[str, dict[str, Any]] = {
    "linear": {"network": "linear"},
    "ensemble": {"inference": "ensemble"},
    "default": {},
}


def coverage(options: BenchOptions) -> list[Finding]:
    """Measures the coverage of 90 % intervals, and the calibration slope of probabilities.

    A case is a kind of outcome, a number of training rows and a number of columns, like
    ``gamma-200-30``; each replicate draws coefficients, training rows and 1,000 test rows. The
    predictor is linear, and for ``curved`` a wave and a product; ``scale`` is normal with a scale
    that varies with x.
    """
    cases = options.pick(CASES)
    done = repeated("coverage", cases, measure, options, times=REPLICATES)
    return [finding for case, rows in done for finding in _findings(case, rows)]


def simulate(case: str, replicate: int) -> tuple[Array, Array]:
    """Draws X and y of a replicate: the training rows, then the test rows."""
    kind, rows, columns = _parts(case)
    rng = np.random.default_rng([KINDS.index(kind), rows, columns, replicate])
    x = rng.normal(size=(rows + TEST, columns))
    eta = x @ (rng.normal(size=columns) / columns**0.5)
    if kind == "curved":
        eta = np.sin(1.5 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.5 * x[:, 3]
    noise = rng.normal(size=len(x))
    if kind == "scale":
        return x, eta + np.exp(0.5 * x[:, 0]) * noise
    if kind == "poisson":
        return x, rng.poisson(np.exp(1 + 0.5 * eta)).astype(float)
    if kind == "gamma":
        return x, rng.gamma(2.0, np.exp(0.7 * eta) / 2)
    if kind == "binary":
        return x, (rng.uniform(size=len(x)) < 1 / (1 + np.exp(-1.5 * eta))).astype(float)
    return x, eta + noise


def _parts(case: str) -> tuple[str, int, int]:
    kind, rows, columns = case.split("-")
    return kind, int(rows), int(columns)


def measure(case: str, replicate: int) -> dict[str, Any]:
    """Fits every model to the training rows of a replicate and evaluates it on the test rows."""
    kind, rows, _ = _parts(case)
    x, y = simulate(case, replicate)
    found: dict[str, Any] = {}
    began = time.perf_counter()
    for name, how in MODELS.items():
        if name == "default":
            found["chosen"] = _default(kind, x[:rows], y[:rows])
            if found["chosen"] in found:
                found["default"] = found[found["chosen"]]
                continue
        model = _model(kind, how).fit(x[:rows], y[:rows])
        found[name] = _evaluate(model, kind, x[rows:], y[rows:])
    return {**found, "seconds": time.perf_counter() - began}


def _model(kind: str, how: dict[str, Any]) -> Any:
    from ansatz.estimators import Classifier, Regressor

    if kind == "binary":
        return Classifier(**how)
    return Regressor(kind if kind in ("poisson", "gamma") else "normal", **how)


def _default(kind: str, x: Array, y: Array) -> str:
    """The name of the model that the default is, which is not fitted twice."""
    model = _model(kind, {})
    settled = model.task(x).settle(model.read(x, y))
    return "ensemble" if settled.inference.averages else "network"


def _evaluate(model: Any, kind: str, x: Array, y: Array) -> dict[str, float]:
    nll = model.evaluate(x, y)["nll"]
    if kind == "binary":
        return {"nll": nll, "slope": calibration_slope(y, model.predict_proba(x)[:, 1])}
    return {"nll": nll, "coverage": held(model.predict_dist(x), y)}


def held(predicted: Any, y: Array) -> float:
    """The share of outcomes inside the 90 % intervals.

    Of counts, whose intervals hold more than they claim, it is the share of randomised PIT values
    between 5 % and 95 %.
    """
    import torch

    outcome = torch.as_tensor(y, dtype=torch.float64)
    upper = predicted.cdf(outcome).numpy()
    if predicted.discrete:
        below = np.where(y > 0, predicted.cdf((outcome - 1).clamp(min=0)).numpy(), 0.0)
        upper = below + np.random.default_rng(0).uniform(size=len(y)) * (upper - below)
    tail = (1 - LEVEL) / 2
    return float(((upper >= tail) & (upper <= 1 - tail)).mean())


def calibration_slope(y: Array, probability: Array) -> float:
    r"""The slope of the logistic regression of outcomes on the predicted log odds.

    1 for calibrated probabilities, less for exaggerated ones.

    References:
        Cox (1958), Two further applications of a model for binary regression.
    """
    from sklearn.linear_model import LogisticRegression

    p = np.clip(probability, 1e-9, 1 - 1e-9)
    odds = np.log(p / (1 - p))
    return float(LogisticRegression(C=np.inf).fit(odds[:, None], y).coef_[0, 0])


def _findings(case: str, rows: list[dict[str, Any]]) -> list[Finding]:
    kind, *_ = _parts(case)
    key, bar = ("slope", SLOPE) if kind == "binary" else ("coverage", HELD)
    unit = "calibration slope" if kind == "binary" else "share of outcomes in 90 % intervals"
    chosen = max({row["chosen"] for row in rows}, key=[row["chosen"] for row in rows].count)
    found = []
    for name in MODELS:
        mean = functools.partial(mean_of, [row[name] for row in rows])
        values = [row[name][key] for row in rows]
        facts: dict[str, Any] = {
            "nll": mean("nll"),
            "standard error": float(np.std(values) / len(values) ** 0.5),
        }
        if name == "default":
            best = min(MODELS, key=lambda each: mean_of([row[each] for row in rows], "nll"))
            facts |= {**run_facts(rows, "seed"), "chosen": chosen, "best": best}
        found.append(Finding(f"{case}: {name}", unit, mean(key), limit={"ours": bar}, facts=facts))
    return found
