"""Windows: convolutions, poolings, interpolations, paddings and slices of units."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ansatz.networks.fields.receptive_fields import (
    Arguments,
    Fields,
    Find,
    PoolingWindows,
    Rule,
    merge,
    rules_of,
    subject,
)

WINDOWS: dict[str, Rule] = {}
_rule = rules_of(WINDOWS)


def _taps(length: int, window: int, stride: int, padding: int, dilation: int) -> Tensor:
    """(length, window): the places s i + d m - p."""
    return stride * torch.arange(length)[:, None] + dilation * torch.arange(window)[None] - padding


def _scattered(
    length: int, window: int, stride: int, padding: int, dilation: int
) -> tuple[Tensor, Tensor]:
    """(length, window): the units i with a tap s i + d m - p on a place, and whether there is one.

    The other way round than ``_taps``: of what goes back to the places that it came from.
    """
    place = torch.arange(length)[:, None] + padding - dilation * torch.arange(window)[None]
    return torch.div(place, stride, rounding_mode="floor"), place % stride == 0


def _at(values: Any, axis: int, default: int = 0) -> int:
    """An option of a window along one axis: a number for all, or one per axis."""
    if isinstance(values, int):
        return values
    return int(values[axis] if len(values) > 1 else values[0]) if len(values) else default


@_rule("convolution", "_convolution", "convolution_overrideable")
def _convolution(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    fields, weight = subject(arguments, find), arguments["weight"]
    fields = fields.mix(1, arguments["groups"], shape[1])
    for axis, k in enumerate(weight.shape[2:]):
        s, p, d = (_at(arguments[name], axis) for name in ("stride", "padding", "dilation"))
        length = shape[2 + axis]
        if arguments["transposed"]:
            index, present = _scattered(length, k, s, p, d)
            fields = fields.windows(2 + axis, index, present=present, ratio=(s, 1))
        else:
            fields = fields.windows(2 + axis, _taps(length, k, s, p, d), ratio=(1, s))
    return fields


@_rule(
    "max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool1d", "avg_pool2d", "avg_pool3d"
)
def _pool(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    fields = subject(arguments, find)
    kernel, blocks = arguments["kernel_size"], {}
    for axis in range(len(kernel)):
        k = _at(kernel, axis)
        s, p = _at(arguments.get("stride") or [], axis, k), _at(arguments.get("padding", 0), axis)
        d = _at(arguments.get("dilation", 1), axis)
        place = len(shape) - len(kernel) + axis
        blocks[place] = PoolingWindows(k, s, p, d, fields.shape[place])
        fields = fields.windows(place, _taps(shape[place], k, s, p, d), ratio=(1, s))
    return replace(fields, blocks=tuple(blocks.get(lane or 0) for lane in fields.lanes))


@_rule("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def _adaptive_pool(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    fields, axes = subject(arguments, find), len(arguments["output_size"])
    for place in range(len(shape) - axes, len(shape)):
        old, new = fields.shape[place], shape[place]
        if new == 1:
            fields = fields.hull([place]).resized(place, 1)
            continue
        units = torch.arange(new)
        begin, end = units * old // new, -(-(units + 1) * old // new)
        index = begin[:, None] + torch.arange(int((end - begin).max()))
        fields = fields.windows(place, index, present=index < end[:, None], ratio=(new, old))
    return fields


@_rule("max_unpool2d", "max_unpool3d")
def _unpool(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    """A number may come back anywhere in the window that it was the maximum of."""
    own, where = find(arguments["self"]), find(arguments["indices"])
    fields = merge([r for r in (own, where) if r is not None], arguments["self"].shape)
    places = range(len(shape) - len(arguments["output_size"]), len(shape))
    blocks = _blocks(where, places)
    # Indices count the pixels of a whole grid: on one of other sizes they are other places.
    kept = all(block.pixels == shape[place] for place, block in list(blocks.items())[1:])
    if not kept or any(shape[place] > 1 and place not in blocks for place in places):
        whole = fields.hull(places)
        for place in places:
            whole = whole.resized(place, shape[place])
        return whole
    for place, (k, s, p, d, _) in blocks.items():
        index, present = _scattered(shape[place], k, s, p, d)
        fields = fields.windows(place, index, present=present, ratio=(s, 1))
    return fields


def _blocks(where: Fields | None, places: Sequence[int]) -> dict[int, PoolingWindows]:
    """The windows of the pooling that chose the indices, by axis of the tensor."""
    if where is None or not where.blocks:
        return {}
    found = dict(zip(where.lanes, where.blocks, strict=True))
    return {place: block for place in places if (block := found.get(place)) is not None}


def _scales(arguments: Arguments, axes: int) -> list[float | None]:
    names = ("scales",) if axes == 1 else ("scales_d", "scales_h", "scales_w")[-axes:]
    return [arguments.get(name) for name in names]


def _nearest(offset: float) -> Rule:
    def rule(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
        fields, axes = subject(arguments, find), len(shape) - 2
        for axis, scale in enumerate(_scales(arguments, axes), start=2):
            old, new = fields.shape[axis], shape[axis]
            place = (torch.arange(new) + offset) / (scale or new / old)
            index = (place + 1e-9).floor().long().clamp(max=old - 1)[:, None]
            fields = fields.windows(axis, index, ratio=(new, old))
        return fields

    return rule


def _linear(taps: tuple[int, ...]) -> Rule:
    def rule(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
        fields, axes = subject(arguments, find), len(shape) - 2
        for axis, scale in enumerate(_scales(arguments, axes), start=2):
            old, new = fields.shape[axis], shape[axis]
            units = torch.arange(new, dtype=torch.float64)
            if arguments["align_corners"]:
                place = units * (old - 1) / max(new - 1, 1)
            else:
                place = (units + 0.5) / (scale or new / old) - 0.5
            below = (place + 1e-9).floor()
            on_a_pixel = (place - below).abs() < 1e-8  # the other taps then weigh nothing
            index = below.long()[:, None] + torch.tensor(taps)
            present = ~on_a_pixel[:, None] | (torch.tensor(taps) == 0)
            fields = fields.windows(axis, index, present=present, ratio=(new, old), clamp=True)
        return fields

    return rule


for _name in ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"):
    WINDOWS[_name] = _nearest(0.0)
    WINDOWS[f"_{_name.replace('nearest', 'nearest_exact')}"] = _nearest(0.5)
for _name in ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"):
    WINDOWS[_name] = _linear((0, 1))
WINDOWS["upsample_bicubic2d"] = _linear((-1, 0, 1, 2))


@_rule("constant_pad_nd")
def _pad(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    fields, pad = subject(arguments, find), arguments["pad"]
    for back in range(len(pad) // 2):
        axis = len(shape) - 1 - back
        fields = fields.windows(axis, (torch.arange(shape[axis]) - pad[2 * back])[:, None])
    return fields


def _pad_by(mirror: bool) -> Rule:
    """With a mirror image, or copies of the border."""

    def rule(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
        fields, pad = subject(arguments, find), arguments["padding"]
        for back in range(len(pad) // 2):
            axis = len(shape) - 1 - back
            length = fields.shape[axis]
            plain = torch.arange(shape[axis]) - pad[2 * back]
            index = plain
            if mirror:
                index = index.abs()
                index = torch.where(index < length, index, 2 * length - 2 - index)
            index = index.clamp(0, length - 1)
            fields = fields.windows(axis, index[:, None], unbounded=plain[:, None])
        return fields

    return rule


for _axes in ("1d", "2d", "3d"):
    WINDOWS[f"reflection_pad{_axes}"] = _pad_by(mirror=True)
    WINDOWS[f"replication_pad{_axes}"] = _pad_by(mirror=False)


@_rule("slice")
def _slice(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    fields = subject(arguments, find)
    axis = arguments.get("dim", 0) % len(shape)
    start, step = arguments.get("start") or 0, arguments.get("step", 1)
    start = min(max(start + fields.shape[axis] if start < 0 else start, 0), fields.shape[axis])
    index = (start + step * torch.arange(shape[axis]))[:, None]
    return fields if not len(index) else fields.windows(axis, index, ratio=(1, step))


@_rule("unfold")
def _unfold(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    """The units of each window, on an axis of their own behind the others."""
    fields = subject(arguments, find)
    axis, size, step = arguments["dimension"], arguments["size"], arguments["step"]
    axis %= len(fields.shape)
    begins = step * torch.arange(shape[axis])[:, None]
    taps = [fields.windows(axis, begins + m, ratio=(1, step)) for m in range(size)]
    lines = zip(*(tap.arrays for tap in taps), strict=True)
    arrays = tuple(torch.stack(line, -1) for line in lines)
    return Fields(arrays, tuple(shape), taps[0].lanes, taps[0].periods)


@_rule("glu")
def _gated(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    """The first half of an axis times a gate from the second."""
    axis = arguments.get("dim", -1) % len(shape)
    first = torch.arange(shape[axis])
    halves = torch.stack([first, first + shape[axis]], 1)
    return subject(arguments, find).windows(axis, halves)
