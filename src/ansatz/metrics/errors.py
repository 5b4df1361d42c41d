"""How far point predictions are from the outcomes."""

import torch
from torch import Tensor

from ansatz.metrics.weights import require_equal_shapes, row_mean


def rmse(y: Tensor, point: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""The root mean squared error, :math:`\sqrt{\sum_i w_i (y_i - f_i)^2 / \sum_i w_i}`.

    Shapes:
        - y, point: ``(N,)``, or ``(N, K)``: then the mean over the K targets, as in scikit-learn.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import rmse
        >>> rmse(torch.tensor([0.0, 0.0]), torch.tensor([1.0, 7.0])).item()
        5.0
    """
    require_equal_shapes("rmse", y, point)
    return row_mean((y.double() - point.double()) ** 2, weight).sqrt().mean()


def mae(y: Tensor, point: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""The mean absolute error, :math:`\sum_i w_i |y_i - f_i| / \sum_i w_i`.

    Shapes:
        - y, point: ``(N,)``, or ``(N, K)``: then the mean over the K targets.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import mae
        >>> mae(torch.tensor([0.0, 0.0]), torch.tensor([1.0, -3.0])).item()
        2.0
    """
    require_equal_shapes("mae", y, point)
    return row_mean((y.double() - point.double()).abs(), weight).mean()


def r2(y: Tensor, point: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""The share of the variance explained.

    .. math:: R^2 = 1 - \frac{\sum_i w_i (y_i - f_i)^2}{\sum_i w_i (y_i - \bar y)^2}

    with the weighted mean of these very y. nan where y is constant: there is no variance to
    explain (scikit-learn calls that 0 or 1).

    Shapes:
        - y, point: ``(N,)``, or ``(N, K)``: then the mean over the K targets.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import r2
        >>> r2(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 1.0])).item()
        0.5
    """
    require_equal_shapes("r2", y, point)
    y, point = y.double(), point.double()
    total = row_mean((y - row_mean(y, weight)) ** 2, weight)
    ratio = row_mean((y - point) ** 2, weight) / torch.where(total > 0, total, torch.nan)
    return (1 - ratio).mean()
