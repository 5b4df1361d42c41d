"""From grids to a network's inputs: standardised examples, and their batches."""

import math
import os
from typing import Any

import torch
from torch import Tensor

from ansatz.data import Batch, Column
from ansatz.data.augmentation import Compose, OnBatches, default_augmentation, from_record
from ansatz.data.grids import GridPreprocessor, Grids, GridSource
from ansatz.data.prefetch import Prefetch, Transformed
from ansatz.data.source import Source
from ansatz.fitting.contracts.structure import Feed
from ansatz.fitting.job import Job
from ansatz.fitting.recipe import Recipe
from ansatz.networks.grid_inputs import channels_last
from ansatz.seeds import derive
from ansatz.spec import InputSpec


class GridEncoder:
    """Every channel with mean 0 and standard deviation 1.

    Networks predict in float32: convolutions in float64 take many times as long, so that an
    example alone and among others may differ in the seventh digit. What the likelihood makes of the
    raw numbers is computed in float64.
    """

    dtype = torch.float32

    def __init__(self, preprocessor: GridPreprocessor) -> None:
        self.preprocessor = preprocessor

    @property
    def spec(self) -> InputSpec:
        """Channels and pixels of an example."""
        return self.preprocessor.spec

    @property
    def notes(self) -> list[str]:
        """Notes of the preprocessing."""
        return self.preprocessor.notes

    @property
    def columns(self) -> list[Column]:
        """None: pixels are not columns."""
        return []

    def inputs(self, rows: Grids, *, notes: list[str] | None = None) -> tuple[Tensor, ...]:
        """Standardised pixels, channels last in memory."""
        made = self.preprocessor
        return (channels_last(made.standardized(made.scaled(rows.load()))),)

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        return self.preprocessor.state()


PIXELS = 2**21  # numbers of the examples that are predicted at once


def grid_source(job: Job, encoder: GridEncoder, feed: Feed) -> Source:
    """The examples of a job in batches, augmented while a network is trained on them."""
    masks, learned = job.target.axis == "element", encoder.preprocessor
    grids: Grids = job.rows  # type: ignore[assignment]
    rows = Batch(
        (),
        job.y if masks else _single(job.y),
        job.weight.float(),
        None if job.offset is None else _single(job.offset),
        job.index,
    )
    size = feed.recipe.batch_size or len(job.y)
    source = GridSource(
        grids,
        rows,
        size if feed.training else _evaluated(size, grids, masks),
        smallest=2 if feed.training else 1,  # a network that normalises within a batch needs two
        seed=derive(feed.seed, "rows"),
        shuffle=feed.training,
    )
    augment = _augmentation(feed.recipe, job, encoder.spec) if feed.training else None
    prepare = OnBatches(augment, masks=masks, mean=learned.mean, scale=learned.scale)
    transformed = Transformed(source, prepare, seed=derive(feed.seed, "augmentation"))
    return Prefetch(transformed) if feed.training and _has_spare_core() else transformed


def _augmentation(recipe: Recipe, job: Job, spec: InputSpec) -> Compose | None:
    """The augmentation that the user asks for, or the default."""
    asked = recipe.augment
    if not isinstance(asked, bool):
        return Compose([from_record(each) for each in asked])
    if not asked:
        return None
    return default_augmentation(
        spec,
        masks=job.target.axis == "element",
        numbers=job.target.classes == 0,
        examples=len(job.y),
    )


def _has_spare_core() -> bool:
    """Tests whether a thread beside the step's own would not take a core from them.

    On two cores that both work, preparing batches in the background makes an epoch of LeNet-5 take
    1.6 times as long.
    """
    return (os.cpu_count() or 1) > torch.get_num_threads()


def _evaluated(batch_size: int, grids: Grids, masks: bool) -> int:
    """Without gradients more examples fit at once, unless they are large."""
    return batch_size if masks else max(batch_size, min(256, PIXELS // math.prod(grids.shape)))


def _single(values: Tensor) -> Tensor:
    """Numbers in float32, codes as they are."""
    return values.float() if values.is_floating_point() else values
