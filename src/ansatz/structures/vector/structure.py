"""Rows of a table: the order of the columns is fixed, nothing else is known."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.spec import InputSpec


class Vector:
    """A fixed number of features per row, without any symmetry.

    An input is ``(x,)`` with x ``(B, D)``, or ``(x, codes)`` with codes ``(B, C)`` of categorical
    columns that the network embeds.

    Example:
        >>> import torch
        >>> from ansatz.structures import Vector
        >>> Vector().spec(torch.zeros(5, 3)).features
        3
    """

    name = "vector"
    network = "mlp"
    linear_network = "linear"
    symmetry = "none"
    report = "ansatz.structures.vector.report.contribution:VectorReport"

    def spec(self, x: Any) -> InputSpec:
        """D from x ``(B, D)``; the levels of each column of codes as the largest code."""
        values, *codes = (x,) if isinstance(x, Tensor) else tuple(x)
        if not isinstance(values, Tensor) or values.ndim != 2 or len(codes) > 1:
            got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise UsageError(f"a vector input is x of shape (B, D), or (x, codes); got {got}.")
        if not codes:
            return InputSpec("vector", values.shape[1])
        if codes[0].ndim != 2 or len(codes[0]) != len(values):
            raise UsageError(
                f"codes must have shape ({len(values)}, C), got {tuple(codes[0].shape)}."
            )
        levels = codes[0].amax(0).tolist() if len(codes[0]) else [0] * codes[0].shape[1]
        return InputSpec("vector", values.shape[1], tuple(int(level) for level in levels))

    def collate(self, rows: Sequence[Any]) -> tuple[Tensor, ...]:
        """Rows of D numbers, or pairs (numbers, codes), stacked along a new first axis."""
        if not len(rows):
            raise UsageError("collate needs at least one row.")
        if isinstance(rows[0], tuple):
            return tuple(
                torch.stack([torch.as_tensor(v) for v in part]) for part in zip(*rows, strict=True)
            )
        stacked = torch.stack([torch.as_tensor(row) for row in rows])
        return (stacked,)
