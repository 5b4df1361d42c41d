"""Answers of the size of x from networks that halve the grid: continue x, then crop."""

from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import pad


def pad_to_multiple(x: Tensor, multiple: int) -> Tensor:
    """Continues each axis of a grid by zeros, at its end, to a multiple of cells.

    At the end alone, so that what is pooled with what does not depend on the size.
    """
    gaps = [-n % multiple for n in x.shape[2:]]
    return pad(x, [v for gap in reversed(gaps) for v in (0, gap)]) if any(gaps) else x


def crop(x: Tensor, size: Sequence[int]) -> Tensor:
    """The first cells of each axis of a grid."""
    return _cut(x, [0] * len(size), size)


def crop_centre(x: Tensor, size: Sequence[int]) -> Tensor:
    """The cells of a grid that are left when both ends of each axis lose equally many."""
    return _cut(x, [(n - m) // 2 for n, m in zip(x.shape[2:], size, strict=True)], size)


def _cut(x: Tensor, starts: Sequence[int], size: Sequence[int]) -> Tensor:
    for axis, (start, length) in enumerate(zip(starts, size, strict=True), 2):
        x = x.narrow(axis, start, length)
    return x
