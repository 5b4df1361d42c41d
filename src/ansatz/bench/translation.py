"""Measures translations of Multi30k by a fit of about six and of about sixty minutes."""

import statistics
import time
from typing import Any, NamedTuple

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.record import mean_of, repeated, run_facts


class Goal(NamedTuple):
    """A fit of a data set and its bar."""

    data: str
    options: dict[str, Any]  # of the fit
    bleu: float | None  # least, mean over seeds; None where it is recorded
    minutes: float | None = None  # longest fit on two cores
    seeds: int = 3


_LONG = {"epochs": 30, "network_options": {"depth": 3, "dropout": 0.1}}
GOALS = {
    "multi30k-en-de": Goal("multi30k-en-de", {"epochs": 4}, bleu=26, minutes=6),
    "multi30k-en-de-long": Goal("multi30k-en-de", _LONG, bleu=34, minutes=60, seeds=1),
    "multi30k-en-de-seq2seq": Goal("multi30k-en-de", {"epochs": 4, "network": "seq2seq"}, None),
}


def quality_translation(options: BenchOptions) -> list[Finding]:
    """Measures cased BLEU and chrF on test2016; the published validation set stops the fit."""
    found: list[Finding] = []
    for name in options.pick(GOALS):
        goal = GOALS[name]
        done = repeated("quality-translation", [name], _fit, options, times=goal.seeds)
        found += [each for _, rows in done for each in _findings(name, goal, rows)]
    return found


def _fit(name: str, seed: int) -> dict[str, Any]:
    import torch

    from ansatz.data import load
    from ansatz.estimators import Translator

    goal = GOALS[name]
    frame = load(goal.data).frame
    parts = {part: rows for part, rows in frame.groupby("part")}
    train, valid, test = (parts[part] for part in ("train", "validation", "test"))
    began, used = time.perf_counter(), time.process_time()
    model = Translator(random_state=seed, **goal.options)
    held_out = (valid["source"].tolist(), valid["target"].tolist())
    sources, targets = train["source"].tolist(), train["target"].tolist()
    model.fit(sources, targets, validation_data=held_out)
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    metrics = model.evaluate(test["source"].tolist(), test["target"].tolist())
    return {
        **{key: metrics[key] for key in ("bleu", "chrf", "nll")},
        "seconds": seconds,
        "processor_seconds": processor,
        "network": model.model_.network_name,
        "parameters": sum(p.numel() for p in model.model_.network.parameters()),
        "recipe": model.recipe_.sentence(model.model_.network_name),
        "threads": torch.get_num_threads(),
    }


def _findings(name: str, goal: Goal, rows: list[dict[str, Any]]) -> list[Finding]:
    facts = {
        **run_facts(rows, "seed"),
        "bleus": [row["bleu"] for row in rows],
        "chrf": mean_of(rows, "chrf"),
        "nll": mean_of(rows, "nll"),
        "processor_seconds": mean_of(rows, "processor_seconds"),
        **{key: rows[0][key] for key in ("network", "parameters", "recipe", "threads")},
    }
    bleu = statistics.fmean(row["bleu"] for row in rows)
    bar = {} if goal.bleu is None else {"ours": Bound(at_least=goal.bleu)}
    found = [Finding(f"{name}: BLEU", "cased, test2016, 5 beams", bleu, limit=bar, facts=facts)]
    if goal.minutes is not None:
        taken = max(row["seconds"] for row in rows) / 60
        bar = {"ours": Bound(at_most=goal.minutes)}
        found.append(Finding(f"{name}: a fit", "minutes, the most of all seeds", taken, limit=bar))
    return found
