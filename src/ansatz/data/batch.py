"""What one training step sees."""

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Batch(NamedTuple):
    """Rows of inputs and outcomes.

    Each field is a tensor, a tuple, or a NamedTuple of tensors with common leading axes.

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
        first = first_tensor(target)
        if weight is None:
            dtype = first.dtype if first.is_floating_point() else torch.get_default_dtype()
            weight = torch.ones(len(first), dtype=dtype, device=first.device)
        return cls(inputs, target, weight, offset, torch.arange(len(first)))


def first_tensor(tree: Any) -> Tensor:
    """The first tensor of a nested tuple.

    Example:
        >>> import torch
        >>> first_tensor((torch.zeros(3), torch.ones(2))).shape
        torch.Size([3])
    """
    return tree if isinstance(tree, Tensor) else first_tensor(tree[0])


def map_tensors(function: Any, tree: Any) -> Any:
    """Applies ``function`` to each tensor of a nested tuple, keeping NamedTuples what they are.

    Example:
        >>> import torch
        >>> map_tensors(len, (torch.zeros(3), None))
        (3, None)
    """
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, tuple):
        parts = [map_tensors(function, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return tree


def to_device(tree: Any, device: torch.device | str) -> Any:
    """A batch, or any nested tuple of tensors, on ``device``.

    Example:
        >>> import torch
        >>> to_device((torch.zeros(2),), "meta")[0].device.type
        'meta'
    """
    return map_tensors(lambda tensor: tensor.to(device, non_blocking=True), tree)


def all_tensors(tree: object) -> list[Tensor]:
    """The tensors of a nested structure, in order.

    Example:
        >>> import torch
        >>> len(all_tensors((torch.zeros(1), (torch.zeros(2), None))))
        2
    """
    found: list[Tensor] = []
    map_tensors(found.append, tree)
    return found
