"""Turns signals, images and volumes into pictures, and samples them."""

import math
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from ansatz.data.grids import Grids
from ansatz.figures.montage import BLUE, PURPLE, VERMILION
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model
from ansatz.networks import summary
from ansatz.report.evidence import Evidence, ExampleNoun

SIGNAL = ExampleNoun("signal", "signals")
IMAGE = ExampleNoun("image", "images")
VOLUME = ExampleNoun("volume", "volumes")
UNITS = {1: SIGNAL, 2: IMAGE, 3: VOLUME}


WORK = 3e11  # multiply-adds of all predictions
NUMBERS = 2**25  # raw numbers of masks in memory
FEWEST, FEWEST_MASKS = 200, 20  # least numbers of examples


def sample_rows(model: Model, job: Job, *, seed: int = 0) -> NDArray[np.intp] | None:
    """Samples rows, in order, within time and memory limits; None for all rows."""
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
    """Counts the multiply-adds of one prediction; of an ensemble, by all its members."""
    spec, networks = model.encoder.spec, model.posterior.networks
    return max(1, sum(max(1, summary(each.answering, spec).multiply_adds) for each in networks))


def affordable(evidence: Evidence, budget: float, *, least: int, most: int, times: int = 1) -> int:
    """Computes how many examples can be predicted ``times`` times within the budget."""
    one = evidence.once("multiply_adds", lambda: multiply_adds(evidence.model))
    return max(least, min(most, int(budget / (times * one))))


CURVE = (48, 96)  # pixels of the picture of a signal
TINTS = (BLUE, VERMILION, PURPLE)  # of its first channels


def pictures_of(grids: Grids) -> NDArray[Any]:
    """Turns examples into pictures, ``(N, H, W, C)`` of bytes or numbers.

    A signal becomes curves of its first three channels, a volume its middle slice along the
    first axis.
    """
    values = grids.load().numpy()  # (N, C, *size)
    axes = values.ndim - 2
    if axes == 1:
        return _curves(values.astype(np.float64))
    if axes == 3:
        values = values[:, :, values.shape[2] // 2]
    return np.ascontiguousarray(np.moveaxis(values, 1, -1))


class _Late:
    """Pictures of examples, decoded when indexed."""

    def __init__(self, grids: Grids) -> None:
        self.grids = grids
        self.shape = (len(grids), *pictures_of(grids[np.arange(1)]).shape[1:])
        self.ndim = len(self.shape)

    def __getitem__(self, rows: NDArray[Any]) -> NDArray[Any]:
        return pictures_of(self.grids[rows])

    def __len__(self) -> int:
        return len(self.grids)


def shown_late(grids: Grids) -> NDArray[Any]:
    """Wraps examples as an array of pictures whose files are read when indexed."""
    return cast(NDArray[Any], _Late(grids))


def nearest(masks: NDArray[Any], size: tuple[int, ...]) -> NDArray[Any]:
    """Resizes ``(N, H, W)`` codes by picking the nearest pixel."""
    rows, columns = (
        ((np.arange(to) + 0.5) * given / to).astype(np.intp)
        for to, given in zip(size, masks.shape[1:3], strict=True)
    )
    found: NDArray[Any] = masks[:, rows][:, :, columns]
    return found


def averaged(values: NDArray[Any], size: tuple[int, ...]) -> NDArray[Any]:
    """Resizes ``(N, H, W)`` numbers by averaging."""
    pixels = torch.from_numpy(np.ascontiguousarray(values)).unsqueeze(1)
    return functional.interpolate(pixels, list(size), mode="area").squeeze(1).numpy()


def slices_of(masks: NDArray[Any]) -> NDArray[Any]:
    """Turns masks ``(N, *size)`` into pictures like those of their examples; signals as bands."""
    if masks.ndim == 4:
        return masks[:, masks.shape[1] // 2]
    if masks.ndim == 2:
        height, width = CURVE
        places = ((np.arange(width) + 0.5) * masks.shape[1] / width).astype(np.intp)
        return np.repeat(masks[:, None, places], height, 1)
    return masks


def _curves(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Draws lines on white: a pixel is coloured where the curve crosses it."""
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
