"""Measures the quality of default fits on published images and masks."""

import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.race import Quartiles
from ansatz.bench.record import mean_of, repeated, run_facts

if TYPE_CHECKING:
    from ansatz.data import Dataset
    from ansatz.estimators import Segmenter


SEEDS = 3


class Goal(NamedTuple):
    """The network of a data set and its bars."""

    network: str  # by name; ``"auto"`` is the default one
    error: float  # largest test error, mean over seeds
    epochs: float | None = None  # largest number of epochs; None for any
    minutes: float | None = None  # longest time of a fit; None for any


GOALS = {
    "mnist": Goal("lenet5", error=0.006, epochs=10),
    "fashion-mnist": Goal("auto", error=0.07, minutes=60),
    "cifar10": Goal("auto", error=0.25),
}


def quality_images(options: BenchOptions) -> list[Finding]:
    """Measures the test error of three seeds on the published test images."""
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
        **run_facts(rows, "seed"),
        "errors": errors,
        "accuracy": 1 - statistics.fmean(errors),
        "nll": mean_of(rows, "nll"),
        "network": rows[0]["network"],
        "parameters": rows[0]["parameters"],
        "recipe": rows[0]["recipe"],
        "threads": rows[0]["threads"],
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
TRAINING = 24  # training slices; the following ones test
OURS, WINDOW = "auto", "sliding_window"


def quality_segmentation(options: BenchOptions) -> list[Finding]:
    """Measures Dice of membranes and pixel error on the last slices, three seeds."""
    done = repeated("quality-segmentation", options.pick(SETS), _fit_masks, options, times=SEEDS)
    return [finding for name, rows in done for finding in _mask_findings(name, rows)]


def epochs_within(seconds: float, epoch: float) -> int:
    """Computes the number of epochs within a time, less one for validation."""
    return max(1, int(seconds / epoch) - 1)


def _fit_masks(name: str, seed: int) -> dict[str, Any]:
    import torch

    from ansatz.data import load
    from ansatz.estimators import Segmenter

    data = load(name)
    model, seconds = _timed(Segmenter(network=OURS, random_state=seed), data)
    # The number of epochs follows from the time of one, so that the schedule of the baseline ends
    # within its time; a time limit alone would stop it early.
    pilot = Segmenter(network=WINDOW, random_state=seed, epochs=1, holdout=0.0)
    epochs = epochs_within(seconds, _timed(pilot, data)[1])
    baseline = Segmenter(network=WINDOW, random_state=seed, epochs=epochs, time_limit=seconds)
    baseline, taken = _timed(baseline, data)
    return {
        **_evaluated(model, data, seconds),
        "sliding window": _evaluated(baseline, data, taken),
        "recipe": model.recipe_.sentence(model.model_.network_name),
        "threads": torch.get_num_threads(),
    }


def _timed(model: "Segmenter", data: "Dataset") -> "tuple[Segmenter, float]":
    rows = np.arange(TRAINING)
    assert data.grids is not None and data.masks is not None
    began = time.perf_counter()
    model.fit(data.grids[rows], data.masks[rows])
    return model, time.perf_counter() - began


def _evaluated(model: "Segmenter", data: "Dataset", seconds: float) -> dict[str, Any]:
    assert data.grids is not None and data.masks is not None
    rows = np.arange(TRAINING, len(data.grids))
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

    baseline = {"sliding window": mean_of(window, "dice")}
    facts = {
        **run_facts(rows, "seed"),
        "network": rows[0]["network"],
        "parameters": [rows[0]["parameters"], window[0]["parameters"]],
        "recipe": rows[0]["recipe"],
        "boundary_f1": [mean_of(rows, "boundary_f1"), mean_of(window, "boundary_f1")],
        "seconds": [mean_of(rows, "seconds"), mean_of(window, "seconds")],
        "epochs": [mean_of(rows, "epochs"), mean_of(window, "epochs")],
        "threads": rows[0]["threads"],
    }
    dice = Finding(
        f"{name}: Dice",
        "overlap of predicted and true membranes, mean over seeds",
        mean_of(rows, "dice"),
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
        mean_of(rows, "pixel_error"),
        {"sliding window": mean_of(window, "pixel_error")},
        {"sliding window": Quartiles.of(ratios)},
        {"sliding window": Bound(at_most=1.0)},
    )
    return [dice, beside, error]
