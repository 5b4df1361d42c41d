"""The rows of a linear fit, checked and in float64."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.errors import DataError, UsageError


class Rows(NamedTuple):
    """Columns, outcomes and weights of the rows that count, in float64.

    Args:
        x: ``(N, D)``.
        y: ``(N,)``, or ``(N, L)`` where an outcome is a vector; codes stay whole numbers.
        weight: ``(N,)`` frequency weights, positive.
        precision: ``(N,)`` R's prior weights, positive; None when not given.
        offset: ``(N,)``; None when not given.
    """

    x: Tensor
    y: Tensor
    weight: Tensor
    precision: Tensor | None
    offset: Tensor | None

    @classmethod
    def of(
        cls,
        x: Tensor,
        y: Tensor,
        weight: Tensor | None,
        precision: Tensor | None,
        offset: Tensor | None,
        names: Sequence[str],
        event_ndim: int = 0,
    ) -> "Rows":
        """Checks shapes and values; rows with weight or precision 0 are left out.

        ``event_ndim`` is the likelihood's: 1 where an outcome is a vector.
        """
        if x.ndim != 2:
            raise UsageError(f"a linear model needs x of shape (N, D), got {tuple(x.shape)}.")
        if y.shape[:1] != x.shape[:1] or y.ndim != 1 + event_ndim:
            expected = f"({len(x)},)" if not event_ndim else f"({len(x)}, L)"
            advice = " Fit several targets one by one." if not event_ndim else ""
            raise UsageError(
                f"a linear model needs one outcome per row: {len(x)} rows go with y {expected}, "
                f"got y {tuple(y.shape)}.{advice}"
            )
        if len(names) != x.shape[1]:
            raise UsageError(f"{x.shape[1]} columns need as many names, got {len(names)}.")
        for label, values in (("weight", weight), ("precision", precision), ("offset", offset)):
            _check_column(label, values, len(x))
        weight = torch.ones(len(x)) if weight is None else weight
        counts = weight > 0
        if precision is not None:
            counts &= precision > 0
        if not bool(counts.any()):
            raise DataError("a linear model needs a row with a positive weight, got none.")
        x = x[counts].double()
        bad = ~torch.isfinite(x)
        if bool(bad.any()):
            row, column = (int(i) for i in bad.nonzero()[0])
            raise DataError(
                f"column '{names[column]}' must be finite, got {float(x[row, column])} in "
                f"row {int(counts.nonzero()[row])}. Impute or drop the row."
            )
        y = y[counts]
        return cls(
            x,
            y.double() if y.is_floating_point() or y.dtype == torch.bool else y,
            weight[counts].double(),
            None if precision is None else precision[counts].double(),
            None if offset is None else offset[counts].double(),
        )


def _check_column(label: str, values: Tensor | None, count: int) -> None:
    if values is None:
        return
    if values.shape != (count,):
        raise UsageError(f"{label} must have shape ({count},), got {tuple(values.shape)}.")
    bad = ~torch.isfinite(values)
    if label != "offset":
        bad |= values < 0
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        expected = "finite" if label == "offset" else "finite and >= 0"
        raise DataError(f"{label} must be {expected}, got {float(values[row])} in row {row}.")
