"""Sums: reductions, matrix products and normalisations, whose units see many others."""

from collections.abc import Sequence

from ansatz.networks.reach.intervals import Reach
from ansatz.networks.reach.rule import Arguments, Find, Rule, rules_of, subject
from ansatz.networks.reach.union import merge

SUMS: dict[str, Rule] = {}
_rule = rules_of(SUMS)


@_rule("mean", "sum", "amax", "amin", "max", "min", "var", "std", "prod", "logsumexp", "norm",
       "linalg_vector_norm", "any", "all", "argmax", "argmin", "median")  # fmt: skip
def _reduced(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    if "other" in arguments:  # the larger of two tensors
        return merge([r for each in arguments.values() if (r := find(each))], shape)
    reach, axes = subject(arguments, find), arguments.get("dim")
    count = len(reach.shape)
    chosen = range(count) if axes in (None, []) else [axes] if isinstance(axes, int) else axes
    dropped = {axis % count for axis in chosen}
    reach = reach.hull(dropped)
    if len(shape) < count:
        kept = [axis for axis in range(count) if axis not in dropped]
        arrays = tuple(a.squeeze(tuple(2 + axis for axis in dropped)) for a in reach.arrays)
        lanes = tuple(kept.index(lane) if lane in kept else None for lane in reach.lanes)
        return Reach(arrays, tuple(shape), lanes, reach.periods)
    return Reach(reach.arrays, tuple(shape), reach.lanes, reach.periods)


@_rule("_softmax", "_log_softmax", "cumsum", "cumprod", "sort", "argsort", "logcumsumexp")
def _along(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    return subject(arguments, find).hull([arguments.get("dim", -1)])


@_rule("mm", "bmm", "addmm", "baddbmm", "matmul")
def _product(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
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


@_rule("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training")
def _batch_norm(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    """Running moments leave each unit alone; those of the batch are of all places."""
    reach = subject(arguments, find)
    rest = [axis for axis in range(len(shape)) if axis != 1]
    return reach.hull(rest) if arguments.get("training", False) else reach


@_rule("native_layer_norm", "_fused_rms_norm")
def _layer_norm(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    axes = range(len(shape) - len(arguments["normalized_shape"]), len(shape))
    return subject(arguments, find).hull(axes)


@_rule("native_group_norm")
def _group_norm(arguments: Arguments, find: Find, shape: Sequence[int]) -> Reach:
    reach = subject(arguments, find).hull(range(2, len(shape)))
    return reach.mix(1, arguments["group"], shape[1])
