"""Quadratures of many rows, few at a time."""

from collections.abc import Callable

import torch
from torch import Tensor


def in_blocks(function: Callable[..., Tensor], *tensors: Tensor, size: int = 2**10) -> Tensor:
    """``function(*tensors)`` of rows in blocks, so that what it makes of them stays in the cache.

    A million rows of a hundred nodes each would take a gigabyte, and four times as long.

    Args:
        function: from tensors ``(N,)`` to one ``(N, ...)``, row by row.
        tensors: of one shape ``(...)``.
        size: rows at once.
    """
    shape = tensors[0].shape
    parts = zip(*(t.reshape(-1).split(size) for t in tensors), strict=True)
    value = torch.cat([function(*part) for part in parts])
    return value.reshape((*shape, *value.shape[1:]))
