"""Measures what bins of numbers bring, and whether the default chooses them where they do.

    python benchmarks/bins.py [NAME ...]

Three fits of each table, evaluated on a held-out fifth of the training rows of split 0 of
`ansatz bench quality-tables` (test rows take no part): without bins, with 32, and the default,
which lets held-out rows choose from 400 to 10,000 rows. NAME:ROWS draws so many rows; steps and
smooth are simulated tables of four columns and 9,568 rows. Writes benchmarks/results/bins.json.
"""

import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd

from ansatz import Classifier, Regressor
from ansatz.bench.record import write_record
from ansatz.bench.tables import rows_of
from ansatz.data import load

SEED = 7
NAMES = (
    *("steps", "smooth", "abalone", "kin8nm", "concrete", "wine", "bike-sharing", "diamonds"),
    *("adult", "bike-sharing:5000", "diamonds:5000", "adult:5000"),
)


def simulated(jumps: int, rows: int = 9_568) -> tuple[pd.DataFrame, pd.Series]:
    """A power plant in outline: load by temperature, vacuum, pressure, humidity.

    The mean has so many narrow logistic steps in each of the first two columns.
    """
    draw = np.random.default_rng(0)
    z = draw.normal(size=(4, rows))
    z[1:] = np.array([[0.84], [-0.5], [-0.54]]) * z[0] + 0.7 * z[1:]
    y = 454 - 15 * z[0] - 2 * z[3] + 0.4 * z[2] + 3 * draw.normal(size=rows)
    for column in z[:2]:
        at, jump = np.quantile(column, draw.uniform(size=jumps)), 3 * draw.normal(size=jumps)
        y += np.tanh((column[:, None] - at) / 0.04) @ jump / 2
    names = ("temperature", "vacuum", "pressure", "humidity")
    return pd.DataFrame(dict(zip(names, z, strict=True))), pd.Series(y, name="power")


def read(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """The training rows of a table."""
    if name in ("steps", "smooth"):
        return simulated(40 if name == "steps" else 0)
    name, _, count = name.partition(":")
    data = load(name)
    rows = np.random.default_rng(SEED).permutation(rows_of(data, 0)[0])
    frame = data.frame.iloc[rows[: int(count) if count else None]]
    return frame.drop(columns=[data.target, *data.exclude]), frame[data.target]


def evaluated(x: pd.DataFrame, y: pd.Series, bins: int | None) -> dict[str, Any]:
    """Error and nll on a fifth of the rows, of a network fitted to the others."""
    order = np.random.default_rng(SEED).permutation(len(y))
    cut = len(order) * 4 // 5
    learn, evaluate = np.sort(order[:cut]), np.sort(order[cut:])
    classes = y.dtype.kind not in "iuf"
    began = time.process_time()
    model = (Classifier if classes else Regressor)(bins=bins)
    model.fit(x.iloc[learn], y.iloc[learn])
    seconds = time.process_time() - began
    predicted, truth = model.predict(x.iloc[evaluate]), y.iloc[evaluate].to_numpy()
    error = (truth != predicted).mean() if classes else np.sqrt(((truth - predicted) ** 2).mean())
    nll = model.evaluate(x.iloc[evaluate], y.iloc[evaluate])["nll"]
    found = {"error": float(error), "nll": float(nll), "seconds": round(seconds, 1)}
    if bins is None:
        choice = getattr(model, "recipe_choice_", None)
        found |= {"bins": model.recipe_.bins, "choice": choice and str(choice)}
    return found


def main() -> None:
    """Prints and writes the record."""
    results = {}
    for name in sys.argv[1:] or NAMES:
        x, y = read(name)
        results[name] = {
            "rows": len(y) * 4 // 5,
            **{str(bins or 0): evaluated(x, y, bins) for bins in (0, 32)},
            "default": evaluated(x, y, None),
        }
        print(name, json.dumps(results[name], indent=1), flush=True)
    if not sys.argv[1:]:
        write_record("bins", command="python benchmarks/bins.py", seed=SEED, results=results)


if __name__ == "__main__":
    main()
