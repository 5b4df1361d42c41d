"""The effect of each of torch's operations on receptive fields.

Operations are those that torch's dispatcher sees, of which all layers and functions consist; so no
rule knows a module. An operation that no rule knows makes each unit see all that its inputs see:
a receptive field may then be reported too large, never too small.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ansatz.networks.fields.receptive_fields import (
    LEAD,
    Arguments,
    Fields,
    Find,
    Rule,
    merge,
    rules_of,
    subject,
    tensors,
)
from ansatz.networks.fields.windows import WINDOWS

MOVES: dict[str, Rule] = {}
_rule = rules_of(MOVES)

# They are applied to the intervals themselves.
ANY_MOVE = {
    "view", "_unsafe_view", "reshape", "_reshape_copy", "select", "flip", "roll", "index_select",
    "index", "gather", "repeat", "stack", "split", "split_with_sizes", "unbind",
    "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle", "diagonal",
}  # fmt: skip


def moved(operation: Any, arguments: Arguments, find: Find, output: Tensor, place: int) -> Fields:
    """The intervals after any operation of ``ANY_MOVE``; ``place`` counts its outputs."""

    def swap(value: Any, axis: int, i: int, j: int) -> Any:
        if isinstance(value, (list, tuple)):
            return [swap(each, axis, i, j) for each in value]
        if not isinstance(value, Tensor):
            return value
        fields = find(value)
        if fields is not None:
            return fields.arrays[axis][i, j].expand(value.shape).contiguous()
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


def _ordered(fields: Fields, order: Sequence[int | None], shape: Sequence[int]) -> Fields:
    """New axis n was axis order[n]; None for one that is new. The rest had length 1."""
    kept = [axis for axis in order if axis is not None]
    arrays = []
    for array in fields.arrays:
        dropped = [axis for axis in range(len(fields.shape)) if axis not in kept]
        line = array.permute(0, 1, *(LEAD + axis for axis in [*dropped, *kept]))
        sizes = iter(line.shape[LEAD + len(dropped) :])
        arrays.append(line.reshape(2, 2, *(1 if axis is None else next(sizes) for axis in order)))
    lanes = tuple(order.index(lane) if lane in kept else None for lane in fields.lanes)
    blocks = fields.blocks if kept == sorted(kept) else ()  # turned, they would be other places
    return Fields(tuple(arrays), tuple(shape), lanes, fields.periods, blocks)


@_rule("alias", "clone", "detach", "_to_copy", "contiguous", "lift_fresh")
def _alike(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    return subject(arguments, find)


@_rule("copy_")
def _copied(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    found = find(arguments["src"])
    return merge([found], shape) if found else find(arguments["self"]).nothing()  # type: ignore


@_rule("permute")
def _permuted(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    return _ordered(subject(arguments, find), [d % len(shape) for d in arguments["dims"]], shape)


@_rule("transpose")
def _transposed(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    order = list(range(len(shape)))
    i, j = arguments["dim0"], arguments["dim1"]
    order[i], order[j] = order[j], order[i]
    return _ordered(subject(arguments, find), order, shape)


@_rule("t")
def _turned(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    return _ordered(subject(arguments, find), list(range(len(shape)))[::-1], shape)


@_rule("unsqueeze")
def _unsqueezed(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    order: list[int | None] = list(range(len(shape) - 1))
    order.insert(arguments["dim"] % len(shape), None)
    return _ordered(subject(arguments, find), order, shape)


@_rule("squeeze")
def _squeezed(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    fields = subject(arguments, find)
    axes = range(len(fields.shape))
    chosen = arguments.get("dim", list(axes))
    chosen = {d % len(axes) for d in ([chosen] if isinstance(chosen, int) else chosen)}
    order = [axis for axis in axes if axis not in chosen or fields.shape[axis] > 1]
    return _ordered(fields, order, shape)


@_rule("expand")
def _expanded(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    return merge([subject(arguments, find)], shape)


@_rule("cat")
def _cat(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    """Side by side: only the axis that grows is written out, so that channels stay cheap."""
    axis = arguments.get("dim", 0) % len(shape)
    parts = [(t, find(t)) for t in arguments["tensors"] if t.ndim == len(shape)]
    there = [fields for _, fields in parts if fields is not None]
    arrays = []
    for grid_axis in range(len(there[0].arrays)):
        lines = []
        for tensor, fields in parts:
            empty = torch.full((2, 2, *[1] * len(shape)), math.inf, dtype=torch.float64)
            array = empty if fields is None else fields.arrays[grid_axis]
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
    return Fields(tuple(arrays), tuple(shape), tuple(lanes), whole.periods)


SUMS: dict[str, Rule] = {}
_sum_rule = rules_of(SUMS)


@_sum_rule("mean", "sum", "amax", "amin", "max", "min", "var", "std", "prod", "logsumexp", "norm",
       "linalg_vector_norm", "any", "all", "argmax", "argmin", "median")  # fmt: skip
def _reduced(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    if "other" in arguments:  # the larger of two tensors
        return merge([r for each in arguments.values() if (r := find(each))], shape)
    fields, axes = subject(arguments, find), arguments.get("dim")
    count = len(fields.shape)
    chosen = range(count) if axes in (None, []) else [axes] if isinstance(axes, int) else axes
    dropped = {axis % count for axis in chosen}
    fields = fields.hull(dropped)
    if len(shape) < count:
        kept = [axis for axis in range(count) if axis not in dropped]
        arrays = tuple(a.squeeze(tuple(2 + axis for axis in dropped)) for a in fields.arrays)
        lanes = tuple(kept.index(lane) if lane in kept else None for lane in fields.lanes)
        return Fields(arrays, tuple(shape), lanes, fields.periods)
    return Fields(fields.arrays, tuple(shape), fields.lanes, fields.periods)


@_sum_rule("_softmax", "_log_softmax", "cumsum", "cumprod", "sort", "argsort", "logcumsumexp")
def _along(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    return subject(arguments, find).hull([arguments.get("dim", -1)])


@_sum_rule("mm", "bmm", "addmm", "baddbmm", "matmul")
def _product(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    """Row i and column j: all of row i of the first, all of column j of the second."""
    names = [name for name in ("mat1", "batch1", "self") if name in arguments]
    left = find(arguments[names[0]])
    right = find(next(arguments[n] for n in ("mat2", "batch2", "other") if n in arguments))
    added = find(arguments["self"]) if len(names) > 1 else None
    parts = [added] if added else []
    if left:
        parts.append(left.hull([-1]).resized(len(left.shape) - 1, 1))
    if right:
        parts.append(right.hull([-2]).resized(len(right.shape) - 2, 1))
    return merge(parts, shape)


@_sum_rule("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training")
def _batch_norm(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    """Running moments leave each unit alone; those of the batch are of all places."""
    fields = subject(arguments, find)
    rest = [axis for axis in range(len(shape)) if axis != 1]
    return fields.hull(rest) if arguments.get("training", False) else fields


@_sum_rule("native_layer_norm", "_fused_rms_norm")
def _layer_norm(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    axes = range(len(shape) - len(arguments["normalized_shape"]), len(shape))
    return subject(arguments, find).hull(axes)


@_sum_rule("native_group_norm")
def _group_norm(arguments: Arguments, find: Find, shape: Sequence[int]) -> Fields:
    fields = subject(arguments, find).hull(range(2, len(shape)))
    return fields.mix(1, arguments["group"], shape[1])


RULES = WINDOWS | MOVES | SUMS

# Torch does not mark them as such, although they are.
POINTWISE = {
    "hardswish", "hardswish_", "prelu", "_prelu_kernel", "rrelu_with_noise", "rrelu_with_noise_",
    "rrelu_with_noise_functional", "log_sigmoid", "log_sigmoid_forward",
}  # fmt: skip


def fields_of(
    operation: Any, arguments: Arguments, find: Find, output: Tensor, place: int = 0
) -> Fields | None:
    """Computes the intervals of ``output``, which ``operation`` made of its arguments.

    Args:
        operation: what torch's dispatcher calls.
        arguments: by the names of its schema.
        find: gives the intervals of a tensor.
        output: the result, or one of several.
        place: which of them.

    Example:
        >>> import torch
        >>> from ansatz.networks.fields import Fields, fields_of
        >>> x = torch.zeros(1, 1, 5)
        >>> negated = fields_of(torch.ops.aten.neg.default, {"self": x},
        ...                    lambda tensor: Fields.start(tensor.shape), -x)
        >>> negated.lanes
        (2,)
    """
    name = operation.overloadpacket.__name__
    parts = [r for each in tensors(arguments.values()) if (r := find(each)) is not None]
    if not parts or name.endswith("_like") or name.startswith("new_"):
        return None
    shape = tuple(output.shape)
    if name in ("fill_", "zero_"):
        return parts[0].nothing()
    if name in RULES:
        return RULES[name](arguments, find, shape)
    if torch.Tag.pointwise in operation.tags or name in POINTWISE:
        return merge(parts, shape)
    if name in ANY_MOVE:
        return moved(operation, arguments, find, output, place)
    return merge([part.everything(shape) for part in parts], shape)
