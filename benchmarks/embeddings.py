"""Do numeric embeddings earn their place? python benchmarks/embeddings.py.

The default network against the same one with periodic and with piecewise-linear embeddings of
each number, everything else by default, evaluated on the same test rows, three seeds.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import time

import torch

import ansatz
from ansatz.bench.record import write_record

TABLES = {
    "concrete": "normal",
    "energy": "normal",
    "wine": "normal",
    "abalone": "poisson",
    "kin8nm": "normal",
}
KINDS = {
    "none": {},
    "periodic": {"numeric_embedding": "periodic"},
    "piecewise_linear": {"numeric_embedding": "piecewise_linear"},
}
SEEDS = (0, 1, 2)


def evaluate(name: str, likelihood: str, options: dict[str, str]) -> tuple[float, float]:
    target = ansatz.data.load(name).target
    scores, began = [], time.perf_counter()
    for seed in SEEDS:
        fit = ansatz.fit(name, target=target, likelihood=likelihood, seed=seed, options=options)
        scores.append(fit.metrics["nll"])
    return statistics.mean(scores), (time.perf_counter() - began) / len(SEEDS)


def main() -> None:
    torch.set_num_threads(1)
    results = []
    for name, likelihood in TABLES.items():
        row: dict[str, object] = {"name": name, "likelihood": likelihood}
        for kind, options in KINDS.items():
            nll, seconds = evaluate(name, likelihood, options)
            row[kind] = {"nll": round(nll, 4), "seconds": round(seconds, 1)}
        results.append(row)
        print(row, flush=True)
    write_record(
        "embeddings", command="python benchmarks/embeddings.py", seed=SEEDS[0], results=results
    )


if __name__ == "__main__":
    main()
