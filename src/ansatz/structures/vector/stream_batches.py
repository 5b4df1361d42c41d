"""Batches of the training rows of a stream, and the recipe that they allow."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from ansatz.data import Batch
from ansatz.data.streams.block_source import BlockSource
from ansatz.errors import UsageError
from ansatz.fitting.contracts.structure import Feed
from ansatz.fitting.job import Job
from ansatz.fitting.recipe import Recipe
from ansatz.seeds import derive
from ansatz.structures.vector.rows import TableEncoder
from ansatz.structures.vector.stream_parts import StreamPart

WINDOW_BYTES = 24 * 2**20  # of encoded rows that are mixed; twice that while they are


def stream_recipe(recipe: Recipe, stream: StreamPart, options: Mapping[str, Any]) -> Recipe:
    """Replaces a batch of all rows, and counts passes over all training rows.

    Args:
        recipe: of a table of that many rows, with what the user set.
        stream: the training rows.
        options: what the user set.
    """
    rows, epochs = int(stream.counts.sum()), options.get("epochs")
    if recipe.batch_size == 0:
        if options.get("batch_size") == 0:
            raise UsageError(
                "batch_size=0 takes all rows at once, which a stream cannot: --no-stream."
            )
        recipe = recipe.model_copy(update={"batch_size": rows, "folds": 0})
    if epochs is not None:
        steps = max(1, round(epochs * -(-rows // recipe.batch_size)))  # whole passes
        recipe = recipe.model_copy(update={"steps": steps})
    return recipe


def stream_source(
    stream: StreamPart, encoder: TableEncoder, feed: Feed, encode: Callable[[Job], Batch]
) -> BlockSource:
    """Makes batches of the rows of a stream; the rows of some 24 MB of blocks are mixed.

    Args:
        stream: the training rows.
        encoder: tells how large an encoded row is.
        feed: how batches are drawn.
        encode: turns rows into tensors.
    """
    counts, made = stream.counts, encoder.preprocessor
    width = len(made.feature_names) + 4 + len(made.spec.cardinalities)
    block = max(1.0, float(counts.mean())) * width * getattr(torch, feed.recipe.dtype).itemsize
    return BlockSource(
        lambda number: encode(stream.read(number)),
        counts.tolist(),
        feed.recipe.batch_size,
        seed=derive(feed.seed, "rows"),
        window=int(np.clip(WINDOW_BYTES / block, 2, 64)),
    )
