"""Which likelihood is chosen, by real and by simulated outcomes, and whether the seed matters.

python benchmarks/choice.py [NAME ...]: each case is decided with three seeds, which change folds,
weights and order, and with a fourth part of the rows put aside. Of the simulated ones the
likelihood is known. ``held_out`` are mean log scores, on the rows put aside, of the default network
of a few of the candidates, trained in full on the same rows: what the quick choice is a forecast
of.
"""

import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import torch

import ansatz
from ansatz import Regressor
from ansatz.bench.record import write_record
from ansatz.fitting.choice import choose_likelihood
from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import take
from ansatz.fitting.out_of_fold import log_scores
from ansatz.fitting.proposal import candidates

SEEDS = (0, 1, 2)
ROWS = 2_000  # simulated
REAL = {  # data set: target, columns left out, column of time
    "abalone": ("rings", (), None),
    "bike-sharing": ("cnt", ("casual", "registered", "instant"), "dteday"),
    "boston": (None, (), None),
    "concrete": (None, (), None),
    "diabetes": ("progression", (), None),
    "diamonds": ("price", (), None),
    "energy": (None, (), None),
    "food-expenditure": ("food", (), None),
    "gasoline-yield": (None, (), None),
    "kin8nm": (None, (), None),
    "reading-skills": (None, (), None),
    "wine": (None, (), None),
}
HELD_OUT = {"abalone", "concrete", "kin8nm"}
SIMULATED = (
    "normal, normal of x-dependent spread, student_t, laplace, gamma, log_normal, weibull, normal "
    "far from 0, poisson, negative_binomial, zero_inflated_poisson, normal rounded, beta, tweedie"
).split(", ")


def real(name: str) -> tuple[pd.DataFrame, np.ndarray, np.ndarray | None]:
    target, drop, when = REAL[name]
    data = ansatz.data.load(name)
    target = target or data.target
    target = target if target in data.frame else next(c for c in data.frame if c.startswith("food"))
    frame = data.frame.drop(columns=[*drop, target, *([when] if when else [])])
    moment = None if when is None else data.frame[when].to_numpy()
    return frame, data.frame[target].to_numpy(dtype=float), moment


def simulated(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Six columns, of which four matter: a wave, a product and a line."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(ROWS, 6))
    eta = 0.6 * np.sin(2 * x[:, 0]) + 0.3 * x[:, 1] * x[:, 2] + 0.3 * x[:, 3]
    mu, noise = np.exp(1 + eta), rng.normal(size=len(x))
    count = rng.poisson(mu)
    draws = {
        "normal": lambda: eta + noise,
        "normal of x-dependent spread": lambda: eta + np.exp(x[:, 4] / 2) * noise,
        "student_t": lambda: eta + 0.5 * rng.standard_t(3, len(x)),
        "laplace": lambda: eta + rng.laplace(size=len(x)),
        "gamma": lambda: rng.gamma(2, mu / 2),
        "log_normal": lambda: mu * np.exp(0.7 * noise),
        "weibull": lambda: mu * rng.weibull(3, len(x)),
        "normal far from 0": lambda: 20 + 2 * eta + noise,
        "poisson": lambda: count,
        "negative_binomial": lambda: rng.negative_binomial(2, 2 / (2 + mu)),
        "zero_inflated_poisson": lambda: rng.poisson(2 * mu) * (rng.uniform(size=len(x)) > 0.3),
        "normal rounded": lambda: np.round(50 + 5 * eta + 3 * noise),
        "beta": lambda: rng.beta(10 / (1 + np.exp(-eta)), 10 / (1 + np.exp(eta))),
        "tweedie": lambda: np.where(count > 0, rng.gamma(2.0 * np.maximum(count, 1), 0.5), 0),
    }
    return x, draws[name]().astype(float)


def decide(name: str) -> dict[str, object]:
    x, y, when = real(name) if name in REAL else (*simulated(name), None)
    names = candidates(y)
    rest = np.arange(len(y)) % 4 == 3 if when is None else when > np.sort(when)[len(y) * 3 // 4]
    chosen, seconds = [], []
    for seed in SEEDS:
        model = Regressor(random_state=seed)
        job = model.read(x, y)._replace(time=when)
        began = time.process_time()
        choice = choose_likelihood(model.task(x), names, take(job, np.flatnonzero(~rest)))
        seconds.append(time.process_time() - began)
        chosen.append(choice.likelihood)
        if seed == SEEDS[0]:
            first = choice
    found: dict[str, object] = {
        "name": name,
        "rows": int((~rest).sum()),
        "chosen": chosen,
        "seconds": round(float(np.median(seconds)), 1),
        "table": [[row.likelihood, *(round(float(v), 4) for v in row[1:])] for row in first.table],
        "explanation": first.explanation,
        "notes": list(first.notes),
    }
    if name in HELD_OUT:
        few = sorted(first.table, key=lambda row: row.worse)[:3]
        found["held_out"] = {row.likelihood: held_out(row.likelihood, x, y, rest) for row in few}
    return found


def held_out(likelihood: str, x: pd.DataFrame, y: np.ndarray, rest: np.ndarray) -> float:
    model = Regressor(likelihood)
    job = model.read(x, y)
    fitted = fit_model(model.task(x), take(job, np.flatnonzero(~rest)[:2_000]))
    part = take(job, np.flatnonzero(rest)[:4_000])
    step = float((y == y.round()).all())
    scores = log_scores(*fitted.predictive(part.rows, notes=[]), part.y, step)
    return round(float(scores.mean()), 4)


def main() -> None:
    torch.set_num_threads(1)
    results = []
    for name in sys.argv[1:] or [*REAL, *SIMULATED]:
        results.append(decide(name))
        row = results[-1]
        print(f"{name:28} {row['chosen']} {row['seconds']} s", row.get("held_out", ""), flush=True)
        print("   ", row["explanation"], *row["notes"], flush=True)
    if not sys.argv[1:]:
        write_record("choice", command="python benchmarks/choice.py", seed=0, results=results)


if __name__ == "__main__":
    main()
