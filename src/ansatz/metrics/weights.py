"""Means over rows with frequency weights: a weight of 2 is the row twice."""

import torch
from torch import Tensor

from ansatz.arrays import takes_arrays


@takes_arrays
def row_mean(values: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Computes the weighted mean over the first axis, in double precision.

    .. math:: \bar v = \sum_i w_i v_i / \sum_i w_i

    Shapes:
        - values: ``(N, ...)``.
        - weight: ``(N,)``; ones when not given. A row of weight 0 is absent, even if it is nan.
        - returns: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import row_mean
        >>> row_mean(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 1.0])).item()
        2.0
    """
    values = values.double()
    weight = row_weight(values, weight)
    wide = weight.reshape(-1, *(1,) * (values.ndim - 1))
    return torch.where(wide > 0, values * wide, 0).sum(0) / weight.sum()


def row_weight(values: Tensor, weight: Tensor | None) -> Tensor:
    """One weight per row of ``values``, checked, in double precision."""
    if weight is None:
        return torch.ones(len(values), dtype=torch.float64, device=values.device)
    if weight.shape != values.shape[:1]:
        raise ValueError(
            f"weight needs one entry per row, {tuple(values.shape[:1])}, got {tuple(weight.shape)}."
        )
    return weight.to(values.device).double()


def require_equal_shapes(name: str, y: Tensor, other: Tensor) -> None:
    """Refuses to broadcast predictions against outcomes."""
    if y.shape != other.shape:
        raise ValueError(
            f"{name} needs predictions of the shape of y, {tuple(y.shape)}, "
            f"got {tuple(other.shape)}."
        )


@takes_arrays
def standard_error(values: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Computes the standard error of a mean over rows, sd / sqrt(n).

    .. math:: \sqrt{\frac{\sum_i w_i (v_i - \bar v)^2}{(n - 1)\, n}}, \qquad n = \sum_i w_i

    for independent rows; nan for a single one.

    Shapes:
        - values: ``(N,)``, such as the log score of each row.
        - weight: ``(N,)``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import standard_error
        >>> standard_error(torch.tensor([1.0, 3.0])).item()
        1.0
    """
    n = row_weight(values, weight).sum()
    variance = row_mean((values.double() - row_mean(values, weight)) ** 2, weight)
    return torch.where(n > 1, (variance / (n - 1)).sqrt(), torch.nan)
