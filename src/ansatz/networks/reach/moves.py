"""Moves: operations that put numbers elsewhere and change none."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ansatz.networks.reach.intervals import LEAD, Reach
from ansatz.networks.reach.rule import Arguments, Find, Rule, rules_of, subject, tensors
from ansatz.networks.reach.union import merge

MOVES: dict[str, Rule] = {}
_rule = rules_of(MOVES)

# They are applied to the intervals themselves.
ANY_MOVE = {
    "view", "_unsafe_view", "reshape", "_reshape_copy", "select", "flip", "roll", "index_select",
    "index", "gather", "repeat", "stack", "split", "split_with_sizes", "unbind",
    "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle", "diagonal",
}  # fmt: skip


def moved(operation: Any, arguments: Arguments, find: Find, output: Tensor, place: int) -> Reach:
    """The intervals after any operation of ``ANY_MOVE``; ``place`` counts its outputs."""

    def swap(value: Any, axis: int, i: int, j: int) -> Any:
        if isinstance(value, (list, tuple)):
            return [swap(each, axis, i, j) for each in value]
        if not isinstance(value, Tensor):
            return value
        reach = find(value)
        if reach is not None:
            return reach.arrays[axis][i, j].expand(value.shape).contiguous()
        # A number that sees nothing; whole numbers are places.
        nothing = torch.full(value.shape, math.inf, dtype=torch.float64)
        return nothing if value.is_floating_point() else value.cpu()

    def apply(axis: int, i: int, j: int) -> Tensor:
        found = operation(**{key: swap(value, axis, i, j) for key, value in arguments.items()})
        return found if isinstance(found, Tensor) else found[place]

    first = next(r for each in tensors(arguments.values()) if (r := find(each)) is not None)
    arrays = [
        torch.stack([torch.stack([apply(axis, i, j) for j in (0, 1)]) for i in (0, 1)])
        for axis in range(len(first.arrays))
    ]
    found = first.rearranged(arrays, output.shape)
    name = operation.overloadpacket.__name__
    if name == "pixel_shuffle":
        return found.enlarged(first.lanes, arguments["upscale_factor"], 1)
    if name == "pixel_unshuffle":
        return found.enlarged(first.lanes, 1, arguments["downscale_factor"])
    return found


def _ordered(reach: Reach, order: Sequence[int | None], shape: Sequence[int]) -> Reach:
    """New axis n was axis order[n]; None for one that is new. The rest had length 1."""
    kept = [axis for axis in order if axis is not None]
    arrays = []
    for array in reach.arrays:
        dropped = [axis for axis in range(len(reach.shape)) if axis not in kept]
        line = array.permute(0, 1, *(LEAD + axis for axis in [*dropped, *kept]))
        sizes = iter(line.shape[LEAD + len(dropped) :])
        arrays.append(line.reshape(2, 2, *(1 if axis is None else next(sizes) for axis in order)))
    lanes = tuple(order.index(lane) if lane in kept else None for lane in reach.lanes)
    blocks = reach.blocks if kept == sorted(kept) else ()  # turned, they would be other places
    return Reach(tuple(arrays), tuple(shape), lanes, reach.periods, blocks)


@_rule("alias", "clone", "detach", "_to_copy", "contiguous", "lift_fresh")
def _alike(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    return subject(arguments, find)


@_rule("copy_")
def _copied(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    found = find(arguments["src"])
    return merge([found], shape) if found else find(arguments["self"]).nothing()  # type: ignore


@_rule("permute")
def _permuted(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    return _ordered(subject(arguments, find), [d % len(shape) for d in arguments["dims"]], shape)


@_rule("transpose")
def _transposed(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    order = list(range(len(shape)))
    i, j = arguments["dim0"], arguments["dim1"]
    order[i], order[j] = order[j], order[i]
    return _ordered(subject(arguments, find), order, shape)


@_rule("t")
def _turned(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    return _ordered(subject(arguments, find), list(range(len(shape)))[::-1], shape)


@_rule("unsqueeze")
def _unsqueezed(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    order: list[int | None] = list(range(len(shape) - 1))
    order.insert(arguments["dim"] % len(shape), None)
    return _ordered(subject(arguments, find), order, shape)


@_rule("squeeze")
def _squeezed(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    reach = subject(arguments, find)
    axes = range(len(reach.shape))
    chosen = arguments.get("dim", list(axes))
    chosen = {d % len(axes) for d in ([chosen] if isinstance(chosen, int) else chosen)}
    order = [axis for axis in axes if axis not in chosen or reach.shape[axis] > 1]
    return _ordered(reach, order, shape)


@_rule("expand")
def _expanded(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    return merge([subject(arguments, find)], shape)


@_rule("cat")
def _cat(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    """Side by side: only the axis that grows is written out, so that channels stay cheap."""
    axis = arguments.get("dim", 0) % len(shape)
    parts = [(t, find(t)) for t in arguments["tensors"] if t.ndim == len(shape)]
    there = [reach for _, reach in parts if reach is not None]
    arrays = []
    for grid_axis in range(len(there[0].arrays)):
        lines = []
        for tensor, reach in parts:
            empty = torch.full((2, 2, *[1] * len(shape)), math.inf, dtype=torch.float64)
            array = empty if reach is None else reach.arrays[grid_axis]
            form = list(array.shape)
            form[LEAD + axis] = tensor.shape[axis]
            lines.append(array.expand(form))
        sizes = [max(sizes) for sizes in zip(*(line.shape for line in lines), strict=True)]
        for place, line in enumerate(lines):
            sizes[LEAD + axis] = line.shape[LEAD + axis]
            lines[place] = line.expand(sizes)
        arrays.append(torch.cat(lines, LEAD + axis))
    whole = merge([each.hull([axis]).resized(axis, 1) for each in there], shape)
    lanes = [
        axis if any(r.lanes[a] == axis for r in there) else lane
        for a, lane in enumerate(whole.lanes)
    ]
    return Reach(tuple(arrays), tuple(shape), tuple(lanes), whole.periods)
