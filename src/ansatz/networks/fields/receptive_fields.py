"""Receptive fields of units as intervals, carried from tensor to tensor.

A = number of axes of the input grid. For each of them a tensor has an interval per unit, from the
first to the last pixel that the unit can see. Intervals are kept as (first, -last), so that taking
unions is taking minima, in two versions:

- *exact*: on the grid as it is, whose padding holds nothing;
- *endless*: as if the grid went on beyond its border, which gives a unit at the border the same
  receptive field as one in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

INF = math.inf
LEAD = 2  # leading axes of an array of intervals: (exact, endless), (first, -last)


class PoolingWindows(NamedTuple):
    """The windows of a pooling along one axis."""

    window: int
    stride: int
    padding: int
    dilation: int
    pixels: int  # of what is pooled


@dataclass(frozen=True)
class Fields:
    """The receptive fields of the units of one tensor, as intervals.

    Args:
        arrays: one per axis of the grid, ``(2, 2, *shape)`` with 1 for axes of the tensor along
            which it is constant; inf where a unit sees nothing.
        shape: that of the tensor.
        lanes: the axis of the tensor that runs along each axis of the grid; None where none does.
        periods: (units, pixels) per axis of the grid: this number of units on, the intervals are
            this number of pixels on. Their ratio is the stride.
        blocks: per axis of the grid the windows of the pooling that made these units, if one did:
            where numbers can go back to that are put where a maximum was.

    Example:
        >>> from ansatz.networks.fields.receptive_fields import Fields
        >>> Fields.start((1, 3, 4, 5)).lanes
        (2, 3)
    """

    arrays: tuple[Tensor, ...]
    shape: tuple[int, ...]
    lanes: tuple[int | None, ...]
    periods: tuple[tuple[int, int], ...]
    blocks: tuple[PoolingWindows | None, ...] = ()

    @classmethod
    def start(cls, shape: Sequence[int]) -> Fields:
        """The input itself, ``(B, C, *size)``: each pixel sees itself."""
        axes = range(2, len(shape))
        arrays = []
        for lane in axes:
            pixels = torch.arange(shape[lane], dtype=torch.float64)
            form = [shape[lane] if axis == lane else 1 for axis in range(len(shape))]
            both = torch.stack([pixels, -pixels]).view(1, 2, *form)
            arrays.append(both.expand(2, *both.shape[1:]))
        return cls(tuple(arrays), tuple(shape), tuple(axes), ((1, 1),) * len(arrays))

    def rearranged(self, arrays: Sequence[Tensor], shape: Sequence[int]) -> Fields:
        """The units in another order, by arrays in that order.

        A lane is followed where its axis stays, or is cut or joined with one behind it.
        """
        form, smaller = tuple(shape), tuple(compress(array) for array in arrays)
        lanes, periods = list(self.lanes), list(self.periods)
        for axis, lane in enumerate(self.lanes):
            only = _only_lane(smaller[axis])
            found = None if lane is None else _same_axis(self.shape, lane, form)
            if found is None or (only is not None and only != found[0]):
                lanes[axis] = only
            else:
                lanes[axis], *ratio = found
                periods[axis] = _slower(periods[axis], *ratio)
        return Fields(smaller, form, tuple(lanes), tuple(periods))

    def enlarged(self, lanes: tuple[int | None, ...], a: int, b: int) -> Fields:
        """On these lanes, a units that stand for b of before."""
        periods = tuple(_slower(period, a, b) for period in self.periods)
        return replace(self, lanes=lanes, periods=periods)

    def nothing(self) -> Fields:
        """Units of the same shape that see nothing."""
        empty = torch.full((2, 2, *[1] * len(self.shape)), INF, dtype=torch.float64)
        return replace(self, arrays=(empty,) * len(self.arrays))

    def resized(self, axis: int, length: int) -> Fields:
        """Another number of units along an axis on which all see the same."""
        return replace(self, shape=(*self.shape[:axis], length, *self.shape[axis + 1 :]))

    def hull(self, axes: Iterable[int]) -> Fields:
        """Units that see all that is seen along ``axes``; those stay, with one interval."""
        chosen = {axis % len(self.shape) for axis in axes}
        dims = tuple(LEAD + axis for axis in chosen)
        arrays = tuple(a.amin(dims, keepdim=True) if dims else a for a in self.arrays)
        lanes = tuple(None if lane in chosen else lane for lane in self.lanes)
        return replace(self, arrays=arrays, lanes=lanes)

    def everything(self, shape: Sequence[int]) -> Fields:
        """Units that see all that any unit here sees."""
        whole = self.hull(range(len(self.shape)))
        form = (2, 2, *[1] * len(shape))
        arrays = tuple(array.reshape(form) for array in whole.arrays)
        return replace(whole, arrays=arrays, shape=tuple(shape))

    def mix(self, axis: int, groups: int, outputs: int) -> Fields:
        """Channels that each see all channels of their group."""
        dim, arrays = LEAD + axis, []
        for array in self.arrays:
            if array.shape[dim] > 1:
                parts = array.unflatten(dim, (groups, -1)).amin(dim + 1)
                array = compress(parts.repeat_interleave(outputs // groups, dim), dim)
            arrays.append(array)
        shape = (*self.shape[:axis], outputs, *self.shape[axis + 1 :])
        return replace(self, arrays=tuple(arrays), shape=shape)

    def windows(
        self,
        axis: int,
        index: Tensor,
        *,
        present: Tensor | None = None,
        ratio: tuple[int, int] = (1, 1),
        clamp: bool = False,
        unbounded: Tensor | None = None,
    ) -> Fields:
        """Units that each see a window of units along ``axis``.

        Args:
            axis: of the tensor.
            index: ``(units, taps)``, where the window lies; beyond the ends there is padding.
            present: ``(units, taps)``, False for taps that do not exist.
            ratio: (a, b): a new units stand for b old ones.
            clamp: True where padding repeats the border.
            unbounded: ``(units, taps)``, where it would lie on an endless grid, if not there.
        """
        length = self.shape[axis]
        taps = torch.ones_like(index, dtype=torch.bool) if present is None else present
        inside = taps if clamp else taps & (index >= 0) & (index < length)
        arrays = tuple(
            self._window(grid_axis, axis, (index, unbounded), taps, inside)
            for grid_axis in range(len(self.arrays))
        )
        periods = list(self.periods)
        for grid_axis, lane in enumerate(self.lanes):
            if lane == axis:
                periods[grid_axis] = _slower(periods[grid_axis], *ratio)
        shape = (*self.shape[:axis], len(index), *self.shape[axis + 1 :])
        return Fields(arrays, shape, self.lanes, tuple(periods))

    def _window(
        self,
        grid_axis: int,
        axis: int,
        indices: tuple[Tensor, Tensor | None],
        taps: Tensor,
        inside: Tensor,
    ) -> Tensor:
        index, unbounded = indices
        array, dim = self.arrays[grid_axis], LEAD + axis
        along = self.lanes[grid_axis] == axis
        if array.shape[dim] == 1 and not along:
            if bool(inside.any(1).all()):
                return array  # no unit without a tap: the interval along another axis stays
        length = self.shape[axis]
        line = array.movedim(dim, -1)
        line = line.expand(*line.shape[:-1], length)
        exact = line[0][..., index.clamp(0, length - 1)].masked_fill(~inside, INF)
        unbounded = index if unbounded is None else unbounded
        endless = _beyond(line[1], unbounded, self.periods[grid_axis] if along else (1, 0))
        found = torch.stack([exact, endless.masked_fill(~taps, INF)]).amin(-1)
        return found.movedim(-1, dim)


def _beyond(line: Tensor, index: Tensor, period: tuple[int, int]) -> Tensor:
    """Intervals at ``index``, those beyond the ends by the period."""
    units, pixels = period
    length = line.shape[-1]
    after = torch.div(index - length + units, units, rounding_mode="floor").clamp(min=0)
    before = torch.div(index, units, rounding_mode="floor").clamp(max=0)
    turns = after + before
    place = (index - turns * units).clamp(0, length - 1)
    moved = turns * pixels
    return line[..., place] + torch.stack([moved, -moved]).view(
        2, *[1] * (line.ndim - 2), *moved.shape
    )


def _slower(period: tuple[int, int], a: int, b: int) -> tuple[int, int]:
    """The period after a new units stand for b old ones."""
    common = math.gcd(a, b)
    a, b = a // common, b // common
    units, pixels = period
    shared = math.gcd(b, units)
    return a * units // shared, pixels * b // shared


def compress(array: Tensor, *dims: int) -> Tensor:
    """Length 1 for axes along which nothing changes."""
    for dim in dims or range(LEAD, array.ndim):
        first = array.narrow(dim, 0, 1)
        if array.shape[dim] > 1 and bool((array == first).all()):
            array = first
    return array


def _only_lane(array: Tensor) -> int | None:
    """The only axis along which the interval changes, if there is one."""
    varying = [dim for dim in range(LEAD, array.ndim) if array.shape[dim] > 1]
    return varying[0] - LEAD if len(varying) == 1 else None


def _same_axis(
    old: tuple[int, ...], lane: int, new: tuple[int, ...]
) -> tuple[int, int, int] | None:
    """Where an axis is after a view, and how many units stand for how many of the old."""
    if math.prod(old) != math.prod(new):  # a part was taken: count from the end
        place = len(new) - len(old) + lane
        return (place, 1, 1) if place >= 0 and new[place:] == old[lane:] else None
    before, length = math.prod(old[:lane]), old[lane]
    for place, size in enumerate(new):
        if math.prod(new[:place]) == before and size > 1:
            whole = size % length == 0 or length % size == 0
            return (place, size, length) if whole else None
    return None


def merge(parts: Sequence[Fields], shape: Sequence[int]) -> Fields:
    """Units that see what the units of all parts see; shapes are broadcast as torch does."""
    aligned = [align(part, len(shape)) for part in parts]
    arrays, lanes, periods = [], [], []
    for axis in range(len(aligned[0].arrays)):
        found = aligned[0].arrays[axis]
        for part in aligned[1:]:
            found = torch.minimum(found, part.arrays[axis])
        arrays.append(found)
        running = [part for part in aligned if part.lanes[axis] is not None] or aligned
        lanes.append(running[0].lanes[axis])
        units = math.lcm(*(part.periods[axis][0] for part in running))
        first = running[0].periods[axis]
        periods.append((units, first[1] * units // first[0]))
    return Fields(tuple(arrays), tuple(shape), tuple(lanes), tuple(periods))


def align(part: Fields, axes: int) -> Fields:
    """The same with axes of length 1 in front."""
    more = axes - len(part.shape)
    if more <= 0:
        return part
    arrays = tuple(a.view(2, 2, *[1] * more, *a.shape[LEAD:]) for a in part.arrays)
    lanes = tuple(None if lane is None else lane + more for lane in part.lanes)
    return replace(part, arrays=arrays, shape=(*[1] * more, *part.shape), lanes=lanes)


Arguments = dict[str, Any]
Find = Callable[[Any], Fields | None]  # the intervals of a tensor, None where it sees nothing
Rule = Callable[[Arguments, Find, Sequence[int]], Fields]


def rules_of(book: dict[str, Rule]) -> Callable[..., Callable[[Rule], Rule]]:
    """A decorator that writes a rule into ``book`` under the names of operations."""

    def named(*names: str) -> Callable[[Rule], Rule]:
        def keep(rule: Rule) -> Rule:
            book.update(dict.fromkeys(names, rule))
            return rule

        return keep

    return named


def tensors(values: Iterable[Any]) -> Iterable[Tensor]:
    """The tensors among arguments, also those in lists."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)


def subject(arguments: Arguments, find: Find) -> Fields:
    """The intervals of the tensor that an operation is about.

    Those of its other tensors (a kernel that is computed from the input) are seen by all units.
    """
    main, *others = tensors(arguments.values())
    own, rest = find(main), [r for each in others if (r := find(each)) is not None]
    if own is not None and not rest:
        return own
    beside = [r.everything([1] * main.ndim) for r in rest]
    return merge([*([own] if own else []), *beside], tuple(main.shape))
