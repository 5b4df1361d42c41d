"""Classes of images: what the recipe that a fit chooses by itself reaches on published sets."""

import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.race import Spread
from ansatz.bench.record import repeated

if TYPE_CHECKING:
    from ansatz.data import Dataset
    from ansatz.estimators import Segmenter


SEEDS = 3


class Goal(NamedTuple):
    """What is fitted to a set, and what it must reach.

    Args:
        network: by name; ``"auto"`` is the default one.
        error: share of the test images that may be taken for something else, mean over seeds.
        epochs: passes over the images that are learned from, at most; None for any number.
        minutes: that a fit may take; None for any number.
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


def quality_images(options: BenchOptions) -> list[Finding]:
    """Test error of three seeds; the published test images are looked at once, after the fit."""
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
            limit={"ours": Bound(at_most=goal.error)},
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
    bar = {"ours": Bound(at_most=limit)}
    return Finding(name, f"{unit}, the most of all seeds", max(values), limit=bar)


SETS = ("isbi2012",)
SEEDS, DICE = 3, 0.80
LEARNED = 24  # slices; the others, which follow them in the stack, evaluate
OURS, WINDOW = "auto", "sliding_window"


def quality_segmentation(options: BenchOptions) -> list[Finding]:
    """Dice of membranes and pixel error on the last slices, three seeds."""
    done = repeated("quality-segmentation", options.pick(SETS), _fit_masks, options, times=SEEDS)
    return [finding for name, rows in done for finding in _mask_findings(name, rows)]


def epochs_within(seconds: float, epoch: float) -> int:
    """How many epochs fit, one of them held out for evaluating the slices that stop the fit."""
    return max(1, int(seconds / epoch) - 1)


def _fit_masks(name: str, seed: int) -> dict[str, Any]:
    import torch

    from ansatz.data import load
    from ansatz.estimators import Segmenter

    data = load(name)
    model, seconds = _timed(Segmenter(network=OURS, random_state=seed), data)
    # The time of one epoch decides how many the baseline takes, so that its learning rate comes
    # down to zero within the time it has; a limit alone would cut it off in full swing.
    network_check = Segmenter(network=WINDOW, random_state=seed, epochs=1, holdout=0.0)
    epochs = epochs_within(seconds, _timed(network_check, data)[1])
    baseline = Segmenter(network=WINDOW, random_state=seed, epochs=epochs, time_limit=seconds)
    baseline, taken = _timed(baseline, data)
    return {
        **_evaluated(model, data, seconds),
        "sliding window": _evaluated(baseline, data, taken),
        "recipe": model.recipe_.sentence(model.model_.network_name),
        "threads": torch.get_num_threads(),
    }


def _timed(model: "Segmenter", data: "Dataset") -> "tuple[Segmenter, float]":
    rows = np.arange(LEARNED)
    assert data.grids is not None and data.masks is not None
    began = time.perf_counter()
    model.fit(data.grids[rows], data.masks[rows])
    return model, time.perf_counter() - began


def _evaluated(model: "Segmenter", data: "Dataset", seconds: float) -> dict[str, Any]:
    assert data.grids is not None and data.masks is not None
    rows = np.arange(LEARNED, len(data.grids))
    metrics = model.evaluate(data.grids[rows], data.masks[rows])
    kept = {key: metrics[key] for key in ("dice", "pixel_error", "iou", "boundary_f1", "nll")}
    network = model.model_.network
    return {
        **kept,
        "network": model.model_.network_name,
        "parameters": sum(p.numel() for p in network.parameters()),
        "epochs": model.history_.records[-1]["epoch"],
        "stop": model.history_.stop_reason,
        "seconds": seconds,
    }


def _mask_findings(name: str, rows: list[dict[str, Any]]) -> list[Finding]:
    window = [row["sliding window"] for row in rows]

    def mean(key: str, among: list[dict[str, Any]]) -> float:
        return statistics.fmean(row[key] for row in among)

    baseline = {"sliding window": mean("dice", window)}
    facts = {
        "seeds": len(rows),
        "network": rows[0]["network"],
        "parameters": [rows[0]["parameters"], window[0]["parameters"]],
        "recipe": rows[0]["recipe"],
        "boundary_f1": [mean("boundary_f1", rows), mean("boundary_f1", window)],
        "seconds": [mean("seconds", rows), mean("seconds", window)],
        "epochs": [mean("epochs", rows), mean("epochs", window)],
        "threads": rows[0]["threads"],
        "commits": sorted({row["commit"] or "" for row in rows}),
    }
    dice = Finding(
        f"{name}: Dice",
        "overlap of predicted and true membranes, mean over seeds",
        mean("dice", rows),
        limit={"ours": Bound(at_least=DICE)},
        facts=facts,
    )
    beside = Finding(
        f"{name}: Dice beside the window's",
        dice.unit,
        dice.ours,
        baseline,
        limit={"ours": Bound(at_least=baseline["sliding window"])},
    )
    ratios = [row["pixel_error"] / row["sliding window"]["pixel_error"] for row in rows]
    error = Finding(
        f"{name}: pixel error",
        "share of the pixels, mean over seeds",
        mean("pixel_error", rows),
        {"sliding window": mean("pixel_error", window)},
        {"sliding window": Spread.of(ratios)},
        {"sliding window": Bound(at_most=1.0)},
    )
    return [dice, beside, error]
