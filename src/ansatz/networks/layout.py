"""How the numbers of a grid lie in memory: channels last, where convolutions are faster."""

from typing import TypeVar

import torch
from torch import Tensor, nn

_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}

T = TypeVar("T", Tensor, nn.Module)


def channels_last(what: T) -> T:
    """A batch of images or volumes, or a network, with the channels of a cell side by side.

    The same numbers in another order of memory: shapes and results stay. Batches of signals and
    of rows are returned as they are, and so is a network without convolutions.

    Args:
        what: ``(B, C, H, W)``, ``(B, C, D, H, W)``, or a network, which is changed in place.
    """
    if isinstance(what, Tensor):
        layout = _FORMATS.get(what.ndim)
        return what if layout is None else what.contiguous(memory_format=layout)
    weights = {p.ndim for p in what.parameters()}
    for dimensions, layout in _FORMATS.items():
        if dimensions in weights:
            what = what.to(memory_format=layout)  # type: ignore[call-overload]
    return what
