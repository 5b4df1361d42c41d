"""Batches from a ``torch.utils.data.DataLoader``, as the trainer takes them."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler

from ansatz.data.batch import Batch
from ansatz.data.source import Source
from ansatz.errors import UsageError
from ansatz.seeds import derive


class LoaderSource:
    """The batches of a DataLoader, the same ones for the same (seed, epoch, position).

    Before each epoch the generators of the loader and of its sampler are seeded by (seed, epoch),
    and ``set_epoch(epoch)`` of sampler and data set is called where there is one. A run that goes
    on in the middle of an epoch reads the batches before it again, and leaves torch's random
    numbers as they were. This makes resuming exact for torch's own samplers, with any number of
    workers. A sampler or an iterable data set that draws its order elsewhere cannot be repeated:
    ``note`` reports it.

    Each item is ``(x, y)``, ``(x1, x2, ..., y)``, or a :class:`~ansatz.data.Batch` that a
    ``collate_fn`` makes, with weights and offsets.

    Args:
        loader: the DataLoader.
        seed: of the order of rows.

    Example:
        >>> import torch
        >>> from torch.utils.data import DataLoader, TensorDataset
        >>> from ansatz.training import LoaderSource
        >>> rows = TensorDataset(torch.randn(5, 2), torch.zeros(5))
        >>> source = LoaderSource(DataLoader(rows, batch_size=2, shuffle=True), seed=0)
        >>> [len(batch.index) for batch in source.batches(epoch=0, start=1)]
        [2, 1]
    """

    def __init__(self, loader: "DataLoader[Any]", seed: int = 0) -> None:
        try:
            self._size = len(loader)
        except TypeError:
            raise UsageError(
                "this DataLoader has no length, which budgets and epochs are counted by: give its "
                "data set a method __len__."
            ) from None
        self.loader, self.seed = loader, seed
        self.batch_size = loader.batch_size or 1024

    def __len__(self) -> int:
        return self._size

    @property
    def note(self) -> str | None:
        """Why a resumed run may see other batches; None where it sees the same."""
        if isinstance(self.loader.dataset, IterableDataset):
            what, known = type(self.loader.dataset), hasattr(self.loader.dataset, "set_epoch")
        else:
            sampler = self._sampler
            what = type(sampler)
            known = isinstance(sampler, SequentialSampler) or any(
                hasattr(sampler, name) for name in ("generator", "set_epoch")
            )
        if known:
            return None
        return (
            f"this DataLoader has the order of {what.__name__}, which has neither a generator nor "
            "set_epoch: a resumed run may see other batches."
        )

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        drawn = torch.Generator().manual_seed(derive(self.seed, "loader", epoch))
        self.loader.generator = drawn
        if hasattr(self._sampler, "generator"):
            self._sampler.generator = drawn
        for part in (self._sampler, self.loader.dataset):
            if hasattr(part, "set_epoch"):
                part.set_epoch(epoch)
        before = torch.get_rng_state()
        items = iter(self.loader)
        for _ in islice(items, start):
            pass
        if start:
            torch.set_rng_state(before)
        first = start * self.batch_size
        for item in items:
            batch = as_batch(item)
            count = len(batch.index)
            if not isinstance(item, Batch):
                batch = batch._replace(index=torch.arange(first, first + count))
            first += count
            yield batch

    @property
    def _sampler(self) -> Any:
        sampler: Any = self.loader.sampler
        own = self.loader.batch_sampler  # a batch sampler of the user's own may hold another
        return getattr(own, "sampler", sampler) if own is not None else sampler


def as_batch(item: Any) -> Batch:
    """What a DataLoader gives, as a batch: inputs first, the outcome last."""
    if isinstance(item, Batch):
        return item
    if isinstance(item, tuple | list) and len(item) > 1:
        *inputs, target = item
        if isinstance(target, Tensor) and all(isinstance(each, Tensor) for each in inputs):
            return Batch.of(tuple(inputs), target)
    raise UsageError(
        f"a DataLoader must give (x, y) or (x1, x2, ..., y) of tensors, got a {_described(item)}. "
        "Let its collate_fn return ansatz.data.Batch.of((x1, x2), y)."
    )


def _described(item: Any) -> str:
    if isinstance(item, tuple | list):
        return f"{type(item).__name__} of {', '.join(type(each).__name__ for each in item)}"
    return type(item).__name__


def as_source(data: Any, seed: int) -> Source:
    """A source as it is, or the source of a DataLoader."""
    if isinstance(data, DataLoader):
        return LoaderSource(data, seed)
    if not hasattr(data, "batches"):
        raise UsageError(
            "the trainer takes a source (ansatz.data.TensorSource) or a torch DataLoader, got a "
            f"{type(data).__name__}."
        )
    source: Source = data
    return source
