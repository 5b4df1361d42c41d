"""Measures the accuracy of tags on the published test sentences."""

import statistics
import time
from typing import Any

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.record import mean_of, repeated, run_facts

SEEDS = 3
ACCURACY, MINUTES = 0.945, 5.0  # of UPOS, in processor time


def quality_tags(options: BenchOptions) -> list[Finding]:
    """Measures UPOS of the English Web Treebank by the recipe that ``fit`` chooses."""
    done = repeated("quality-tags", options.pick(["ud-ewt"]), _fit, options, times=SEEDS)
    return [finding for name, rows in done for finding in _findings(name, rows)]


def _fit(name: str, seed: int) -> dict[str, Any]:
    import ansatz

    began, clock = time.process_time(), time.perf_counter()
    fit = ansatz.fit(name, seed=seed)
    assert fit.metrics is not None
    return {
        **fit.metrics,
        "most_frequent_tag": fit.baselines["the word's tag"]["accuracy"],
        "processor_seconds": time.process_time() - began,
        "seconds": time.perf_counter() - clock,
        "parameters": fit.parameters,
        "epochs": fit.epochs,
        "recipe": fit.recipe,
    }


def _findings(name: str, rows: list[dict[str, Any]]) -> list[Finding]:
    accuracy = statistics.fmean(row["accuracy"] for row in rows)
    minutes = [row["processor_seconds"] / 60 for row in rows]
    facts = {
        **run_facts(rows, "seed"),
        "accuracies": [row["accuracy"] for row in rows],
        "nll": mean_of(rows, "nll"),
        "macro_f1": mean_of(rows, "macro_f1"),
        "most_frequent_tag": mean_of(rows, "most_frequent_tag"),
        "recipe": rows[0]["recipe"],
    }
    return [
        Finding(
            f"{name}: accuracy of UPOS",
            "share of the test words, mean over seeds",
            accuracy,
            limit={"ours": Bound(at_least=ACCURACY)},
            facts=facts,
        ),
        Finding(
            f"{name}: a fit",
            "minutes of processor time",
            max(minutes),
            limit={"ours": Bound(at_most=MINUTES)},
            facts={"minutes": minutes},
        ),
    ]
