"""Signals, images and volumes: cells in rows, whose neighbours matter wherever they are."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.spec import InputSpec


class Grid:
    """C numbers in every cell of a signal, an image or a volume.

    An input is ``(x,)`` with x ``(B, C, L)``, ``(B, C, H, W)`` or ``(B, C, D, H, W)``. The answer
    should not change when the content is shifted, and for masks it should shift with it.

    Args:
        masks: whether the outcome is a label for every cell.

    Example:
        >>> import torch
        >>> from ansatz.structures import Grid
        >>> Grid().spec(torch.zeros(5, 3, 32, 32)).size
        (32, 32)
        >>> Grid(masks=True).network
        'unet'
    """

    name = "grid"
    symmetry = "shift"
    report = "ansatz.structures.grid.report.contribution:GridReport"

    def __init__(self, *, masks: bool = False) -> None:
        self.network = "unet" if masks else "small_resnet"
        self.linear_network = "linear_pixels" if masks else "linear_grid"

    def spec(self, x: Any) -> InputSpec:
        """Channels and cells of x ``(B, C, *size)``."""
        values = x if isinstance(x, Tensor) else x[0]
        if not isinstance(values, Tensor) or values.ndim not in (3, 4, 5):
            got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise UsageError(
                f"a grid input is x of shape (B, C, L), (B, C, H, W) or (B, C, D, H, W); got {got}."
            )
        return InputSpec.grid(*values.shape[1:])

    def collate(self, rows: Sequence[Any]) -> tuple[Tensor]:
        """Examples ``(C, *size)`` of one shape, stacked along a new first axis."""
        if not len(rows):
            raise UsageError("collate needs at least one example.")
        return (torch.stack([torch.as_tensor(row) for row in rows]),)
