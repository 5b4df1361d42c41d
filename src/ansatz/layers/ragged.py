"""Rows of different lengths, one behind the other, and reductions of each."""

import math
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

Reduce = Literal["sum", "mean", "max"]


class Ragged(NamedTuple):
    """B rows of different lengths: the tokens of texts, the elements of sets, points of clouds.

    Row b is ``values[offsets[b]:offsets[b + 1]]``; it may be empty. Nothing is padded. A batch may
    hold it in place of any tensor.

    Args:
        values: ``(N, ...)``, all rows one behind the other.
        offsets: ``(B + 1,)`` int64, from 0 to N, never falling.

    Example:
        >>> import torch
        >>> from ansatz.layers import Ragged
        >>> ragged = Ragged(torch.tensor([5, 6, 7]), torch.tensor([0, 1, 3]))
        >>> ragged.lengths, ragged.rows
        (tensor([1, 2]), tensor([0, 1, 1]))
    """

    values: Tensor
    offsets: Tensor

    @classmethod
    def of(cls, parts: "list[Tensor] | tuple[Tensor, ...]") -> "Ragged":
        """Puts tensors of different lengths, at least one, one behind the other."""
        lengths = torch.tensor([0, *map(len, parts)], device=parts[0].device)
        return cls(torch.cat(list(parts)), lengths.cumsum(0))

    @property
    def lengths(self) -> Tensor:
        """The length of each row, ``(B,)``."""
        return self.offsets.diff()

    @property
    def rows(self) -> Tensor:
        """The row of each value, ``(N,)``."""
        return rows_of(self.offsets, len(self.values))

    def count_rows(self) -> int:
        """The number of rows, B."""
        return len(self.offsets) - 1

    def take_rows(self, rows: slice | Tensor) -> "Ragged":
        """The rows of a slice, or those of an index tensor in its order."""
        if isinstance(rows, slice):
            first, last, step = rows.indices(self.count_rows())
            if step == 1:  # a run of rows is a run of values: nothing to copy
                kept = self.offsets[first : max(first, last) + 1]
                return Ragged(self.values[kept[0] : kept[-1]], kept - kept[0])
        place, offsets = places(self.offsets, rows)
        return Ragged(self.values[place], offsets)


def places(offsets: Tensor, rows: slice | Tensor) -> tuple[Tensor, Tensor]:
    """Where the values of some rows stand, and the offsets of these rows by themselves.

    Example:
        >>> import torch
        >>> from ansatz.layers.ragged import places
        >>> places(torch.tensor([0, 1, 3]), torch.tensor([1, 0]))
        (tensor([1, 2, 0]), tensor([0, 2, 3]))
    """
    starts, lengths = offsets[:-1][rows], offsets.diff()[rows]
    found = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    shift = (starts - found[:-1]).repeat_interleave(lengths)
    return shift + torch.arange(len(shift), device=shift.device), found


def as_rows(values: Tensor) -> Tensor:
    """``(N, ...)`` as ``(N, K)``, whether or not there are any."""
    return values.reshape(len(values), math.prod(values.shape[1:]))


def rows_of(offsets: Tensor, count: int | None = None) -> Tensor:
    """The row of each of ``count`` values, ``(N,)``."""
    row = torch.arange(len(offsets) - 1, device=offsets.device)
    return row.repeat_interleave(offsets.diff(), output_size=count)


def segment_sum(values: Tensor, offsets: Tensor) -> Tensor:
    r"""Sums each row of ragged values; an empty row gives 0.

    .. math:: y_b = \sum_{i = o_b}^{o_{b+1} - 1} x_i

    The numbers of a row are added in their order, forwards and backwards, so the same bits come
    out on any number of threads. It can be differentiated any number of times.

    Shapes:
        - values: ``(N, ...)``; offsets ``(B + 1,)``; returns ``(B, ...)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import segment_sum
        >>> segment_sum(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0, 1, 1, 3]))
        tensor([1., 0., 5.])
    """
    if torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling():
        return values.new_zeros(len(offsets) - 1, *values.shape[1:]).index_add(
            0, rows_of(offsets), values
        )
    found: Tensor = _Sum.apply(values, offsets)
    return found


def segment_mean(values: Tensor, offsets: Tensor) -> Tensor:
    """The mean of each row of ragged values, 0 for an empty row; shapes of :func:`segment_sum`.

    Example:
        >>> import torch
        >>> from ansatz.layers import segment_mean
        >>> segment_mean(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0, 1, 1, 3]))
        tensor([1.0000, 0.0000, 2.5000])
    """
    total = segment_sum(values, offsets)
    return total / _beside(offsets.diff().clamp(min=1), total)


def segment_max(values: Tensor, offsets: Tensor) -> Tensor:
    """The largest number of each row and channel, 0 for an empty row.

    Of several largest ones the first has the gradient. Shapes of :func:`segment_sum`.

    Example:
        >>> import torch
        >>> from ansatz.layers import segment_max
        >>> segment_max(torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([0, 1, 1, 3]))
        tensor([-1.,  0., -2.])
    """
    if torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling():
        zeros = values.new_zeros(len(offsets) - 1, *values.shape[1:])
        row = _beside(rows_of(offsets), values).expand_as(values)
        return zeros.scatter_reduce(0, row, values, "amax", include_self=False)
    flat = as_rows(values)
    if not flat.numel():
        return values.new_zeros(len(offsets) - 1, *values.shape[1:])
    empty = (offsets.diff() == 0).unsqueeze(1)
    taken = torch.where(empty, 0, _first_largest(flat.detach(), offsets))
    found = torch.where(empty, 0, flat.gather(0, taken))
    return found.reshape(-1, *values.shape[1:])


def segment_largest(values: Tensor, offsets: Tensor) -> Tensor:
    """The largest number of each row and channel without a gradient, -inf for an empty row.

    Example:
        >>> import torch
        >>> from ansatz.layers.ragged import segment_largest
        >>> segment_largest(torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([0, 1, 1, 3]))
        tensor([-1., -inf, -2.])
    """
    if torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling():
        lowest = values.new_full((len(offsets) - 1, *values.shape[1:]), -torch.inf)
        row = _beside(rows_of(offsets), values).expand_as(values)
        return lowest.scatter_reduce(0, row, values.detach(), "amax")
    flat = as_rows(values.detach())
    if not flat.numel():
        return values.new_full((len(offsets) - 1, *values.shape[1:]), -torch.inf)
    found = torch.segment_reduce(flat, "max", offsets=offsets, axis=0)
    return found.reshape(-1, *values.shape[1:])


def segment_softmax(values: Tensor, offsets: Tensor) -> Tensor:
    """Positive numbers that sum to 1 over each row of values ``(N, ...)``, of the same shape.

    Example:
        >>> import torch
        >>> from ansatz.layers import segment_softmax
        >>> segment_softmax(torch.zeros(3), torch.tensor([0, 1, 3]))
        tensor([1.0000, 0.5000, 0.5000])
    """
    largest = segment_largest(values, offsets)
    scores = (values - spread(largest, offsets, len(values))).exp()
    return scores / spread(segment_sum(scores, offsets), offsets, len(values))


def spread(values: Tensor, offsets: Tensor, count: int | None = None) -> Tensor:
    """Repeats the number of each row for all its elements, ``(B, ...)`` to ``(N, ...)``.

    Example:
        >>> import torch
        >>> from ansatz.layers.ragged import spread
        >>> spread(torch.tensor([5.0, 7.0]), torch.tensor([0, 1, 3]))
        tensor([5., 7., 7.])
    """
    if torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling():
        return values[rows_of(offsets)]
    found: Tensor = _Spread.apply(values, offsets, count)
    return found


def segment_reduce(values: Tensor, offsets: Tensor, reduce: Reduce = "sum") -> Tensor:
    """The sum, mean or maximum of each row of ragged values; an empty row gives 0.

    Example:
        >>> import torch
        >>> from ansatz.layers import segment_reduce
        >>> segment_reduce(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0, 1, 3]), "max")
        tensor([1., 3.])
    """
    return {"sum": segment_sum, "mean": segment_mean, "max": segment_max}[reduce](values, offsets)


class _Sum(torch.autograd.Function):
    """Sums of rows; the derivative is :class:`_Spread`, whose derivative is this."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, offsets: Tensor) -> Tensor:
        ctx.save_for_backward(offsets)
        ctx.count = len(values)
        return _sums(values, offsets)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (offsets,) = ctx.saved_tensors
        return _Spread.apply(grads[0], offsets, ctx.count), None


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, offsets: Tensor, count: int | None) -> Tensor:
        ctx.save_for_backward(offsets)
        return values.index_select(0, rows_of(offsets, count))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (offsets,) = ctx.saved_tensors
        return _Sum.apply(grads[0], offsets), None, None


def _sums(values: Tensor, offsets: Tensor) -> Tensor:
    flat = as_rows(values)
    if not flat.numel() or not flat.is_floating_point():
        found = flat.new_zeros(len(offsets) - 1, flat.shape[1])
        return found.index_add_(0, rows_of(offsets), flat).reshape(-1, *values.shape[1:])
    order = torch.arange(len(flat), device=flat.device)
    found = functional.embedding_bag(order, flat, offsets, mode="sum", include_last_offset=True)
    return found.reshape(-1, *values.shape[1:])


def _first_largest(flat: Tensor, offsets: Tensor) -> Tensor:
    """The place of the first largest number of each row and channel, ``(B, K)``."""
    largest = torch.segment_reduce(flat, "max", offsets=offsets, axis=0)
    place = torch.arange(len(flat), device=flat.device, dtype=torch.float64).unsqueeze(1)
    is_largest = flat >= largest[rows_of(offsets, len(flat))]
    place = torch.where(is_largest | flat.isnan(), place, len(flat))
    return torch.segment_reduce(place, "min", offsets=offsets, axis=0).clamp(max=len(flat)).long()


def _beside(row: Tensor, like: Tensor) -> Tensor:
    """One number per row, with as many axes as ``like``."""
    return row.reshape(-1, *[1] * (like.ndim - 1))
