"""Batches that pass through a random transform on their way."""

from collections.abc import Callable, Iterator

import torch

from ansatz.data.batch import Batch
from ansatz.data.source import Source
from ansatz.seeds import generator

Transform = Callable[[Batch, torch.Generator], Batch]


class Transformed:
    """A source whose every batch is transformed, with random numbers of its own place.

    The transform of a batch draws from a generator that is a function of (seed, epoch, position):
    a run that is resumed in the middle of an epoch sees the same batches as one that never stopped.

    Args:
        source: where batches come from.
        transform: ``transform(batch, generator) -> batch``; it may draw from that generator only.
        seed: of the transform's random numbers.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch, TensorSource, Transformed
        >>> from ansatz.data.augmentation import Noise, OnBatches
        >>> rows = Batch.of(torch.zeros(6, 1, 4), torch.zeros(6))
        >>> source = Transformed(TensorSource(rows, 2), OnBatches(Noise(0.1)), seed=0)
        >>> last = list(source.batches(epoch=3))[2].inputs[0]
        >>> torch.equal(last, next(source.batches(epoch=3, start=2)).inputs[0])
        True
    """

    def __init__(self, source: Source, transform: Transform, *, seed: int = 0) -> None:
        self.source, self.transform, self.seed = source, transform, seed

    def __len__(self) -> int:
        return len(self.source)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The transformed batches of ``epoch`` from position ``start`` on."""
        for position, batch in enumerate(self.source.batches(epoch, start), start):
            yield self.transform(batch, generator(self.seed, "transform", epoch, position))
