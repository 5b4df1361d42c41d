"""Measures language models on the last tenth of tiny Shakespeare."""

import statistics
import time
from typing import Any

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.record import mean_of, repeated, run_facts

SEEDS = 3
GOALS = {"mingru": 1.50, "gpt": 1.55}  # nats per character
MINUTES = 20


def quality_language(options: BenchOptions) -> list[Finding]:
    """Measures the loss of the recipe that ``fit`` chooses, with at most 20 minutes of training."""
    done = repeated("quality-language", options.pick(GOALS), _fit, options, times=SEEDS)
    return [_finding(name, rows) for name, rows in done]


def _fit(name: str, seed: int) -> dict[str, Any]:
    import ansatz

    began = time.process_time()
    fit = ansatz.fit(
        "tinyshakespeare",
        task="language",
        network=name,
        inference="point",
        seed=seed,
        time_limit=60.0 * MINUTES,
    )
    assert fit.metrics is not None
    nll = {key: value["nll"] for key, value in fit.baselines.items()}
    return {"nll": fit.metrics["nll"], **nll, "seconds": time.process_time() - began}


def _finding(name: str, rows: list[dict[str, Any]]) -> Finding:
    losses = [row["nll"] for row in rows]
    return Finding(
        f"tiny Shakespeare: {name}",
        "nats per character of the test, mean over seeds",
        statistics.fmean(losses),
        peers={"ngram": rows[0]["ngram"]},
        limit={"ours": Bound(at_most=GOALS[name])},
        facts={**run_facts(rows, "seed"), "losses": losses, "seconds": mean_of(rows, "seconds")},
    )
