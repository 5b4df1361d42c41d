"""Signals, images and volumes as pictures: curves, themselves, and their middle slices."""

import math
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ansatz.data.grids import Grids
from ansatz.figures.montage import BLUE, PURPLE, VERMILION
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model
from ansatz.networks import summary
from ansatz.report.evidence import Evidence, Unit

SIGNAL = Unit("signal", "signals")
IMAGE = Unit("image", "images")
VOLUME = Unit("volume", "volumes")
UNITS = {1: SIGNAL, 2: IMAGE, 3: VOLUME}


WORK = 3e11  # multiply-adds of the predictions of all examples
NUMBERS = 2**25  # raw numbers of masks that are kept
FEWEST, FEWEST_MASKS = 200, 20  # examples that are evaluated whatever their predictions cost


def sample_rows(model: Model, job: Job, *, seed: int = 0) -> NDArray[np.intp] | None:
    """The rows of a sample, in order; None where all are few enough."""
    dense = job.target.axis == "element"
    fewest = FEWEST_MASKS if dense else FEWEST
    if len(job.y) <= fewest:
        return None
    most = max(fewest, int(WORK / multiply_adds(model)))
    if dense:
        cells = math.prod(job.target.shape)
        most = min(most, max(1, NUMBERS // (cells * max(job.target.classes or 1, 1))))
    if len(job.y) <= most:
        return None
    chosen = np.random.default_rng(seed).permutation(len(job.y))[:most]
    return np.sort(chosen).astype(np.intp)


def multiply_adds(model: Model) -> int:
    """What the prediction of one example takes; of an ensemble, by all its members."""
    spec, networks = model.encoder.spec, model.posterior.networks
    return max(1, sum(max(1, summary(each.answering, spec).multiply_adds) for each in networks))


def affordable(evidence: Evidence, budget: float, *, least: int, most: int, times: int = 1) -> int:
    """How many examples can be predicted ``times`` times for so many multiply-adds."""
    if "multiply_adds" not in evidence.kept:
        evidence.kept["multiply_adds"] = multiply_adds(evidence.model)
    one: int = evidence.kept["multiply_adds"]
    return max(least, min(most, int(budget / (times * one))))


CURVE = (48, 96)  # cells of the picture of a signal
TINTS = (BLUE, VERMILION, PURPLE)  # of its first channels


def pictures_of(grids: Grids) -> NDArray[Any]:
    """Examples as pictures, ``(N, H, W, C)`` of bytes or numbers.

    A signal is drawn as curves, its first three channels on one scale each; of a volume the middle
    slice along its first axis is shown.
    """
    values = grids.load().numpy()  # (N, C, *size)
    axes = values.ndim - 2
    if axes == 1:
        return _curves(values.astype(np.float64))
    if axes == 3:
        values = values[:, :, values.shape[2] // 2]
    return np.ascontiguousarray(np.moveaxis(values, 1, -1))


class _Late:
    """Pictures of examples that are decoded when some of them are asked for."""

    def __init__(self, grids: Grids) -> None:
        self.grids = grids
        self.shape = (len(grids), *pictures_of(grids[np.arange(1)]).shape[1:])
        self.ndim = len(self.shape)

    def __getitem__(self, rows: NDArray[Any]) -> NDArray[Any]:
        return pictures_of(self.grids[rows])

    def __len__(self) -> int:
        return len(self.grids)


def shown_late(grids: Grids) -> NDArray[Any]:
    """The same as something that is indexed like an array: files are read where they are shown."""
    return cast(NDArray[Any], _Late(grids))


def slices_of(masks: NDArray[Any]) -> NDArray[Any]:
    """Masks ``(N, *size)`` as the pictures of their examples show them; signals as bands."""
    if masks.ndim == 4:
        return masks[:, masks.shape[1] // 2]
    if masks.ndim == 2:
        height, width = CURVE
        places = ((np.arange(width) + 0.5) * masks.shape[1] / width).astype(np.intp)
        return np.repeat(masks[:, None, places], height, 1)
    return masks


def _curves(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Lines on white: a cell is inked where the curve passes through it."""
    height, width = CURVE
    count, channels, length = values.shape
    places = np.linspace(0, length - 1, width + 1)
    page = np.full((count, height, width, 3), 255.0)
    for channel in range(min(channels, len(TINTS))):
        given = np.nan_to_num(values[:, channel])
        lines = np.stack([np.interp(places, np.arange(length), line) for line in given])
        low, high = float(given.min()), float(given.max())
        at = (height - 3) * (1 - (lines - low) / max(high - low, 1e-30)) + 1  # rows from the top
        top, bottom = np.minimum(at[:, :-1], at[:, 1:]), np.maximum(at[:, :-1], at[:, 1:])
        row = np.arange(height)[None, :, None]
        inked = (row >= top[:, None] - 0.75) & (row <= bottom[:, None] + 0.75)  # (N, H, W)
        page = np.where(inked[..., None], np.array(TINTS[channel], np.float64), page)
    return page.astype(np.uint8)
