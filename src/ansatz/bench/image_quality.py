"""Classes of images: what the recipe that a fit chooses by itself reaches on published sets."""

import statistics
import time
from typing import Any, NamedTuple

from ansatz.bench.bar import Bar
from ansatz.bench.finding import Finding
from ansatz.bench.options import Options
from ansatz.bench.repeats import repeated

SEEDS = 3


class Goal(NamedTuple):
    """What is fitted to a set, and what it must reach.

    Args:
        network: by name; ``"auto"`` is the default one.
        error: share of the test images that may be taken for something else, mean over seeds.
        epochs: passes over the images that are learned from, at most; None for any number.
        minutes: that a fit may take; None for any number.

    Example:
        >>> from ansatz.bench.image_quality import GOALS
        >>> GOALS["mnist"].error
        0.006
    """

    network: str
    error: float
    epochs: float | None = None
    minutes: float | None = None


GOALS = {
    "mnist": Goal("lenet5", error=0.006, epochs=10),
    "fashion-mnist": Goal("auto", error=0.07, minutes=60),
    "cifar10": Goal("auto", error=0.25),
}


def quality_images(options: Options) -> list[Finding]:
    """Test error of three seeds; the published test images are looked at once, after the fit.

    Example:
        >>> from ansatz.bench.image_quality import GOALS
        >>> list(GOALS)
        ['mnist', 'fashion-mnist', 'cifar10']
    """
    done = repeated("quality-images", options.pick(GOALS), _fit, options, times=SEEDS)
    return [finding for name, rows in done for finding in _findings(name, rows)]


def _fit(name: str, seed: int) -> dict[str, Any]:
    import torch

    from ansatz.data import load
    from ansatz.estimators import Classifier

    data = load(name)
    assert data.grids is not None and isinstance(data.target, str)
    train, test = data.split()
    y = data.frame[data.target].to_numpy()
    began = time.perf_counter()
    model = Classifier(network=GOALS[name].network, random_state=seed)
    model.fit(data.grids[train], y[train])
    seconds = time.perf_counter() - began
    metrics = model.evaluate(data.grids[test], y[test])
    accuracy = metrics["accuracy"]
    assert accuracy is not None
    history = model.history_
    return {
        "error": 1 - accuracy,
        "nll": metrics["nll"],
        "epochs": history.records[-1]["epoch"],
        "stop": history.stop_reason,
        "seconds": seconds,
        "network": model.model_.network_name,
        "parameters": sum(p.numel() for p in model.model_.network.parameters()),
        "recipe": model.recipe_.sentence(model.model_.network_name),
        "threads": torch.get_num_threads(),
    }


def _findings(name: str, rows: list[dict[str, Any]]) -> list[Finding]:
    goal, errors = GOALS[name], [row["error"] for row in rows]
    facts = {
        "seeds": len(rows),
        "errors": errors,
        "accuracy": 1 - statistics.fmean(errors),
        "nll": statistics.fmean(row["nll"] for row in rows),
        "network": rows[0]["network"],
        "parameters": rows[0]["parameters"],
        "recipe": rows[0]["recipe"],
        "seconds": statistics.median(row["seconds"] for row in rows),
        "threads": rows[0]["threads"],
        "commits": sorted({row["commit"] or "" for row in rows}),
    }
    found = [
        Finding(
            f"{name}: test error",
            "share of the test images, mean over seeds",
            statistics.fmean(errors),
            limit={"ours": Bar(at_most=goal.error)},
            facts=facts,
        )
    ]
    if goal.epochs is not None:
        found.append(_most(f"{name}: epochs", "passes", [r["epochs"] for r in rows], goal.epochs))
    if goal.minutes is not None:
        taken = [row["seconds"] / 60 for row in rows]
        found.append(_most(f"{name}: a fit", "minutes", taken, goal.minutes))
    return found


def _most(name: str, unit: str, values: list[float], limit: float) -> Finding:
    bar = {"ours": Bar(at_most=limit)}
    return Finding(name, f"{unit}, the most of all seeds", max(values), limit=bar)
