"""Batches on their way to the step: transformed, and made ready in the background."""

import queue
import threading
from collections.abc import Callable, Iterator

import torch

from ansatz.data.batch import Batch
from ansatz.data.source import Source
from ansatz.errors import UsageError
from ansatz.seeds import generator

Transform = Callable[[Batch, torch.Generator], Batch]
_Made = tuple[Batch | None, BaseException | None]  # a batch, an error, or neither at the end


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


class Prefetch:
    """A source whose next batches a thread prepares while the current one is used.

    The same batches in the same order as without. Reading, gathering, converting and augmenting run
    beside the step wherever torch or the operating system works outside Python; an error in the
    thread is raised where its batch would have come, and the thread ends with the iterator.

    Args:
        source: where batches come from.
        depth: how many batches may be ready ahead.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch, Prefetch, TensorSource
        >>> source = TensorSource(Batch.of(torch.randn(5, 2), torch.zeros(5)), 2, seed=0)
        >>> [len(batch.index) for batch in Prefetch(source).batches(epoch=0)]
        [2, 2, 1]
    """

    def __init__(self, source: Source, *, depth: int = 2) -> None:
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            raise UsageError(f"depth of Prefetch must be a whole number from 1 on, got {depth!r}.")
        self.source, self.depth = source, depth

    def __len__(self) -> int:
        return len(self.source)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        made: queue.SimpleQueue[_Made] = queue.SimpleQueue()
        room, closed = threading.Semaphore(self.depth), threading.Event()
        worker = threading.Thread(
            target=_prepare,
            args=(self.source, epoch, start, made, room, closed),
            name="ansatz-prefetch",
            daemon=True,
        )
        worker.start()
        try:
            while True:
                batch, error = made.get()
                if error is not None:
                    raise error
                if batch is None:
                    return
                room.release()
                yield batch
        finally:  # also when the iterator is dropped half-way
            closed.set()
            room.release()
            if worker is not threading.current_thread():  # where a cycle's garbage may end it
                worker.join()


def _prepare(
    source: Source,
    epoch: int,
    start: int,
    made: "queue.SimpleQueue[_Made]",
    room: threading.Semaphore,
    closed: threading.Event,
) -> None:
    try:
        coming = iter(source.batches(epoch, start))
        while True:
            room.acquire()
            batch = None if closed.is_set() else next(coming, None)
            made.put((batch, None))
            if batch is None:
                return
    except BaseException as error:  # handed over, not hidden
        made.put((None, error))
