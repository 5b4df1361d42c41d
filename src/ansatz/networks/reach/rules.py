"""What each of torch's operations does to the intervals of ``Reach``.

Operations are those that torch's dispatcher sees, of which all layers and functions consist; so no
rule knows a module. An operation that no rule knows makes each unit see all that its inputs see:
a receptive field may then be told too large, never too small.
"""

from typing import Any

import torch
from torch import Tensor

from ansatz.networks.reach.intervals import Reach
from ansatz.networks.reach.moves import ANY_MOVE, MOVES, moved
from ansatz.networks.reach.rule import Arguments, Find, tensors
from ansatz.networks.reach.sums import SUMS
from ansatz.networks.reach.union import merge
from ansatz.networks.reach.windows import WINDOWS

RULES = WINDOWS | MOVES | SUMS

# Torch does not mark them as such, although they are.
POINTWISE = {
    "hardswish", "hardswish_", "prelu", "_prelu_kernel", "rrelu_with_noise", "rrelu_with_noise_",
    "rrelu_with_noise_functional", "log_sigmoid", "log_sigmoid_forward",
}  # fmt: skip


def reach_of(
    operation: Any, arguments: Arguments, find: Find, output: Tensor, place: int = 0
) -> Reach | None:
    """The intervals of ``output``, which ``operation`` made of its arguments.

    Args:
        operation: what torch's dispatcher calls.
        arguments: by the names of its schema.
        find: gives the intervals of a tensor.
        output: the result, or one of several.
        place: which of them.

    Example:
        >>> import torch
        >>> from ansatz.networks.reach import Reach, reach_of
        >>> x = torch.zeros(1, 1, 5)
        >>> negated = reach_of(torch.ops.aten.neg.default, {"self": x},
        ...                    lambda tensor: Reach.start(tensor.shape), -x)
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
