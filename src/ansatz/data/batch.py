"""Batches of rows: inputs, target, weight, offset, index."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, Self, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from ansatz.errors import DataError
from ansatz.layers.ragged import Ragged as Ragged

Tree = TypeVar("Tree")


class Cuttable(Protocol):
    """A field of a batch that says itself how it is cut: ragged rows, a graph.

    It may be a NamedTuple of tensors; any other class also has a method ``map_tensors(function)``,
    which gives it back with ``function`` applied to each of its tensors.
    """

    def count_rows(self) -> int:
        """The number of rows."""
        ...

    def take_rows(self, rows: slice | Tensor) -> Self:
        """The rows of a slice, or those of an index tensor in its order."""
        ...


class Batch(NamedTuple):
    """Rows of inputs and outcomes.

    Each field is a tensor with a row for each row of the batch, a tuple or NamedTuple of such, or
    a type that says itself how it is cut (:class:`Cuttable`).

    Args:
        inputs: the positional arguments of the network.
        target: the outcomes, ``(B, ...)``.
        weight: the target's leading shape; 0 = not observed (padding, an unlabelled voxel).
        offset: added to raw, ``(B, P)`` or broadcastable to it; None for no offset.
        index: ``(B,)`` row numbers, which name rows in errors.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> batch = Batch.of(torch.randn(4, 2), torch.zeros(4))
        >>> len(batch.index), batch.weight.sum().item()
        (4, 4.0)
    """

    inputs: tuple[Any, ...]
    target: Any
    weight: Tensor
    offset: Tensor | None
    index: Tensor  # type: ignore[assignment]  # hides tuple.index, which no batch needs

    @classmethod
    def of(
        cls,
        inputs: Any,
        target: Any,
        weight: Tensor | None = None,
        offset: Tensor | None = None,
    ) -> "Batch":
        """A batch of all rows, with weight 1 and index 0..B-1 where not given."""
        inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        first, rows = first_tensor(target), count_rows(target)
        if weight is None:
            dtype = first.dtype if first.is_floating_point() else torch.get_default_dtype()
            weight = torch.ones(rows, dtype=dtype, device=first.device)
        return cls(inputs, target, weight, offset, torch.arange(rows))


class MixedTarget(NamedTuple):
    """The outcomes of two rows that were mixed, ``(B,)`` each, and the share of the first."""

    first: Tensor
    second: Tensor
    share: Tensor


def take_rows(batch: Tree, rows: slice | Tensor) -> Tree:
    """Takes some rows of a batch, or of what may be one of its fields; all cutting is done here.

    An offset of one row, and a tensor without axes, hold for all rows and stay as they are. All
    rows in their order give ``batch`` itself.

    Raises:
        ValueError: a field has more or fewer rows than the batch.
        TypeError: a field is nothing that can be cut.
    """
    count = count_rows(batch)
    if isinstance(rows, slice):
        is_all = rows.indices(count) == (0, count, 1)
    else:
        is_all = len(rows) == count and torch.equal(rows, torch.arange(count, device=rows.device))
    return batch if is_all else cast(Tree, _cut(batch, rows, count, ""))


def _cut(tree: Any, rows: slice | Tensor, count: int, name: str) -> Any:
    if tree is None or (isinstance(tree, Tensor) and not tree.ndim):
        return tree
    if isinstance(tree, tuple) and not hasattr(tree, "take_rows"):
        parts = [_cut(part, rows, count, own) for own, part in named_parts(tree, name)]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    found = count_rows(tree)
    if found == count:
        return tree[rows] if isinstance(tree, Tensor) else tree.take_rows(rows)
    if name == "offset" and found == 1:  # broadcast to all rows
        return tree
    raise ValueError(
        f"{name or 'a tensor'} has {found} rows in a batch of {count}. Give it one for each row of "
        "the batch, or a type with a method take_rows, which says how it is cut."
    )


def count_rows(tree: Any) -> int:
    """Counts the rows of a batch, or of what may be one of its fields."""
    if isinstance(tree, Tensor):
        return len(tree)
    if isinstance(tree, Batch):
        return len(tree.index)
    if hasattr(tree, "count_rows"):
        return int(tree.count_rows())
    if isinstance(tree, tuple):
        return count_rows(tree[0])
    raise TypeError(
        "a field of a batch must be a tensor, a tuple of tensors, or a type with the methods "
        f"count_rows and take_rows, which say how it is cut; got {type(tree).__name__}."
    )


def named_parts(tree: tuple[Any, ...], name: str = "") -> Iterator[tuple[str, Any]]:
    """Names the parts of a tuple as errors do: ``target``, ``target.time``, ``inputs[0]``."""
    fields = getattr(tree, "_fields", None)
    for place, part in enumerate(tree):
        own = f"[{place}]" if fields is None else f".{fields[place]}" if name else fields[place]
        yield name + own, part


def first_tensor(tree: Any) -> Tensor:
    """The first tensor of a nested tuple."""
    if isinstance(tree, Tensor):
        return tree
    return first_tensor(tree[0]) if isinstance(tree, tuple) else all_tensors(tree)[0]


def map_tensors(function: Any, tree: Any) -> Any:
    """Applies ``function`` to each tensor of a nested tuple, keeping NamedTuples what they are.

    A class of its own applies it in its method ``map_tensors``.
    """
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, tuple):
        parts = [map_tensors(function, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return tree.map_tensors(function) if hasattr(tree, "map_tensors") else tree


def to_device(tree: Any, device: torch.device | str) -> Any:
    """A batch, or any nested tuple of tensors, on ``device``."""
    return map_tensors(lambda tensor: tensor.to(device, non_blocking=True), tree)


def all_tensors(tree: object) -> list[Tensor]:
    """The tensors of a nested structure, in order."""
    found: list[Tensor] = []
    map_tensors(found.append, tree)
    return found


class Padded(NamedTuple):
    """B sequences of different lengths, filled up to the longest; the inputs of a network.

    Args:
        values: ``(B, T)`` codes, 0 being padding, or ``(B, T, D)`` numbers.
        mask: ``(B, T)`` bool, True where a step is there; no step follows one that is not.
    """

    values: Tensor
    mask: Tensor

    def count_rows(self) -> int:
        """The number of sequences, B."""
        return len(self.mask)

    def take_rows(self, rows: slice | Tensor) -> "Padded":
        """Some of the sequences, filled up to the longest of them."""
        mask = self.mask[rows]
        longest = max(1, int(mask.any(0).sum()))
        return Padded(self.values[rows][:, :longest], mask[:, :longest])


def pad(ragged: Ragged) -> Padded:
    """Fills rows up with zeros to the longest of them; at least one step.

    Example:
        >>> import torch
        >>> from ansatz.data.batch import Ragged, pad
        >>> pad(Ragged(torch.tensor([5, 6, 7]), torch.tensor([0, 1, 3]))).values
        tensor([[5, 0],
                [6, 7]])
    """
    lengths = ragged.offsets.diff()
    steps = torch.arange(max(1, int(lengths.max())) if len(lengths) else 1)
    mask = steps < lengths.unsqueeze(1)  # (B, T)
    values = ragged.values.new_zeros(*mask.shape, *ragged.values.shape[1:])
    values[mask] = ragged.values
    return Padded(values, mask)


def check_weight(weight: Any, rows: int) -> np.ndarray:
    """Frequency weights as ``(N,)`` float64, ones when None: finite, none negative, not all zero.

    A row of weight 3 counts like three such rows, one of weight 0 like none.

    Example:
        >>> from ansatz.data import check_weight
        >>> check_weight([1, 2], rows=2)
        array([1., 2.])
        >>> check_weight([1, -2], rows=2)
        Traceback (most recent call last):
        ...
        ansatz.errors.DataError: weights must be >= 0, got -2 at row 2.
    """
    if weight is None:
        return np.ones(rows)
    values = check_numbers(weight, rows, "weights")
    negative = np.flatnonzero(values < 0)
    if len(negative):
        raise DataError(
            f"weights must be >= 0, got {values[negative[0]]:g} at row {negative[0] + 1}."
        )
    if rows and not values.any():
        raise DataError("weights are all zero: no row counts.")
    return values


def check_numbers(values: Any, rows: int, what: str) -> np.ndarray:
    """One finite number per row as ``(N,)`` float64; ``what`` names them in errors."""
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{what} must be numbers, got {type(values).__name__}.") from None
    if numbers.shape != (rows,):
        raise DataError(f"{what} must have shape ({rows},), one per row, got {numbers.shape}.")
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise DataError(
            f"{what} must be finite, got {numbers[bad[0]]} at row {bad[0] + 1} "
            f"({len(bad)} such rows)."
        )
    return numbers


UNLABELLED = -1  # not annotated, or from outside the frame: such a pixel takes no part in a loss
