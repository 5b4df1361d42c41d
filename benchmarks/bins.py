"""Measures what bins of numbers bring: networks with and without, on training rows.

    python benchmarks/bins.py

The training rows of split 0 of `ansatz bench quality-tables` are split once more, four to one: test
rows take no part. Writes benchmarks/results/bins.json.
"""

import json
import sys
import time
from typing import Any

import numpy as np

from ansatz import Classifier, Regressor
from ansatz.bench.record import write_record
from ansatz.bench.tables import TABLES, rows_of
from ansatz.data import load


def evaluated(name: str, bins: int) -> dict[str, Any]:
    """Error and nll on a fifth of the training rows, of a network fitted to the others."""
    data = load(name)
    train, _ = rows_of(data, 0)
    train = np.random.default_rng(7).permutation(train)
    cut = len(train) * 4 // 5
    learn, evaluate = np.sort(train[:cut]), np.sort(train[cut:])
    x, y = data.frame.drop(columns=[data.target, *data.exclude]), data.frame[data.target]
    classes = y.dtype.kind not in "iuf"
    began = time.process_time()
    model = (Classifier if classes else Regressor)(bins=bins)
    model.fit(x.iloc[learn], y.iloc[learn])
    seconds = time.process_time() - began
    predicted, truth = model.predict(x.iloc[evaluate]), y.iloc[evaluate].to_numpy()
    error = (truth != predicted).mean() if classes else np.sqrt(((truth - predicted) ** 2).mean())
    nll = model.evaluate(x.iloc[evaluate], y.iloc[evaluate])["nll"]
    return {"error": float(error), "nll": float(nll), "seconds": round(seconds, 1)}


def main() -> None:
    """Prints and writes the record."""
    names = sys.argv[1:] or [name for name in TABLES if name != "abalone"]
    results = {name: {str(bins): evaluated(name, bins) for bins in (0, 32)} for name in names}
    print(json.dumps(results, indent=1))
    write_record("bins", command="python benchmarks/bins.py", seed=7, results=results)


if __name__ == "__main__":
    main()
