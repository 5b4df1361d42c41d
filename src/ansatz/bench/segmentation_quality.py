"""Membranes of nerve tissue: a U-Net beside a classifier of windows that is given the same time."""

import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.bench.bar import Bar
from ansatz.bench.finding import Finding
from ansatz.bench.options import Options
from ansatz.bench.race import Spread
from ansatz.bench.repeats import repeated

if TYPE_CHECKING:
    from ansatz.data import Dataset
    from ansatz.estimators import Segmenter

SETS = ("isbi2012",)
SEEDS, DICE = 3, 0.80
LEARNED = 24  # slices; the others, which follow them in the stack, evaluate
OURS, WINDOW = "auto", "sliding_window"


def quality_segmentation(options: Options) -> list[Finding]:
    """Dice of membranes and pixel error on the last slices, three seeds.

    Example:
        >>> from ansatz.bench.segmentation_quality import DICE, LEARNED
        >>> DICE, LEARNED
        (0.8, 24)
    """
    done = repeated("quality-segmentation", options.pick(SETS), _fit, options, times=SEEDS)
    return [finding for name, rows in done for finding in _findings(name, rows)]


def epochs_within(seconds: float, epoch: float) -> int:
    """How many epochs fit, one of them held out for evaluating the slices that stop the fit.

    Args:
        seconds: that there are.
        epoch: seconds that one takes.

    Example:
        >>> from ansatz.bench.segmentation_quality import epochs_within
        >>> epochs_within(100.0, 9.0), epochs_within(5.0, 9.0)
        (10, 1)
    """
    return max(1, int(seconds / epoch) - 1)


def _fit(name: str, seed: int) -> dict[str, Any]:
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


def _findings(name: str, rows: list[dict[str, Any]]) -> list[Finding]:
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
        limit={"ours": Bar(at_least=DICE)},
        facts=facts,
    )
    beside = Finding(
        f"{name}: Dice beside the window's",
        dice.unit,
        dice.ours,
        baseline,
        limit={"ours": Bar(at_least=baseline["sliding window"])},
    )
    ratios = [row["pixel_error"] / row["sliding window"]["pixel_error"] for row in rows]
    error = Finding(
        f"{name}: pixel error",
        "share of the pixels, mean over seeds",
        mean("pixel_error", rows),
        {"sliding window": mean("pixel_error", window)},
        {"sliding window": Spread.of(ratios)},
        {"sliding window": Bar(at_most=1.0)},
    )
    return [dice, beside, error]
