"""Sizes of networks that are refused before anything is allocated."""

from collections.abc import Sequence

from torch import nn

from ansatz.errors import UsageError
from ansatz.layers.limits import require_whole

MAX_DEPTH = 1_000  # hidden layers
MAX_BYTES = 2**31  # parameters and buffers that a name on the command line may ask for


def check_widths(owner: str, widths: object) -> tuple[int, ...]:
    """``widths`` as a tuple of ints, if each is a sensible width and there are not too many."""
    if not isinstance(widths, Sequence) or isinstance(widths, (str, bytes)):
        raise UsageError(f"widths of {owner} must be a list such as [128, 128], got {widths!r:.40}")
    if len(widths) > MAX_DEPTH:
        raise UsageError(f"{owner} may have up to {MAX_DEPTH} hidden layers, got {len(widths)}.")
    return tuple(require_whole(f"widths[{i}] of {owner}", m) for i, m in enumerate(widths))


def check_size(owner: str, network: nn.Module, limit: int = MAX_BYTES) -> None:
    """Refuses a network whose tensors take more than ``limit`` bytes.

    Meant for a network built on the meta device, where tensors have shapes and no memory.

    Example:
        >>> import torch
        >>> from ansatz.networks import check_size
        >>> check_size("mlp", torch.nn.Linear(2**20, 2**20, device="meta"))
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: mlp would take 4398.1 GB, above the limit of 2.1 GB; use ...
    """
    tensors = [*network.parameters(), *network.buffers()]
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    if size > limit:
        raise UsageError(
            f"{owner} would take {size / 1e9:.1f} GB, above the limit of {limit / 1e9:.1f} GB; "
            "use smaller sizes, or build its class yourself."
        )
