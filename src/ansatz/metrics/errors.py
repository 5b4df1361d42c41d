"""Errors of point predictions of numbers and directions."""

import math

import torch
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.metrics.weights import require_equal_shapes, row_mean


@takes_arrays
def mse(y: Tensor, point: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Computes the mean squared error, :math:`\sum_i w_i (y_i - f_i)^2 / \sum_i w_i`.

    Shapes:
        - y, point: ``(N,)``, or ``(N, K)``: then the mean over the K targets, as in scikit-learn.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> from ansatz.metrics import mse
        >>> float(mse([0.0, 0.0], [1.0, 7.0]))
        25.0
    """
    require_equal_shapes("mse", y, point)
    return row_mean((y.double() - point.double()) ** 2, weight).mean()


@takes_arrays
def rmse(y: Tensor, point: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Computes the root mean squared error, :math:`\sqrt{\sum_i w_i (y_i - f_i)^2 / \sum_i w_i}`.

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


@takes_arrays
def mae(y: Tensor, point: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Computes the mean absolute error, :math:`\sum_i w_i |y_i - f_i| / \sum_i w_i`.

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


@takes_arrays
def r2(y: Tensor, point: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Computes the share of the variance explained.

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


@takes_arrays
def angular_distance(first: Tensor, second: Tensor) -> Tensor:
    """Computes the angle between two directions, from 0 to pi.

    Example:
        >>> import torch
        >>> from ansatz.metrics import angular_distance
        >>> angular_distance(torch.tensor(0.1), torch.tensor(6.2))  # over the cut
        tensor(0.1832)
    """
    gap = first - second
    return (gap - 2 * math.pi * torch.round(gap / (2 * math.pi))).abs()


@takes_arrays
def mean_angular_error(y: Tensor, point: Tensor, weight: Tensor | None = None) -> Tensor:
    """Computes the mean angle between outcomes and predictions, in radians: smaller is better.

    Shapes:
        - y, point: ``(N,)`` radians, or ``(N, K)``: then the mean over the K targets.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import mean_angular_error
        >>> y, point = torch.tensor([0.0, 3.0]), torch.tensor([0.5, -3.0])
        >>> round(mean_angular_error(y, point).item(), 4)  # 3 and -3 are 0.28 apart
        0.3916
    """
    require_equal_shapes("mean_angular_error", y, point)
    return row_mean(angular_distance(y.double(), point.double()), weight).mean()


@takes_arrays
def sample_circular_crps(samples: Tensor, y: Tensor) -> Tensor:
    r"""Computes the circular CRPS of each direction from M draws, in radians: smaller is better.

    .. math:: \frac1M \sum_i d(x_i, y) - \frac{1}{2 M (M - 1)} \sum_{i \ne j} d(x_i, x_j)

    with d the angle between two directions; unbiased for the distribution behind the draws.

    Shapes:
        - samples: ``(M, ...)`` radians, M >= 2.
        - y: ``(...)``.
        - returns: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import sample_circular_crps
        >>> samples = torch.tensor([[3.1], [-3.1]])
        >>> round(sample_circular_crps(samples, torch.tensor([3.1])).item(), 4)
        0.0

    References:
        Grimit et al. (2006), The continuous ranked probability score for circular variables.
        https://doi.org/10.1256/qj.05.235
    """
    count = len(samples)
    if count < 2 or samples.shape[1:] != y.shape:
        raise ValueError(
            f"sample_circular_crps needs samples (M, *y.shape) with M >= 2, "
            f"got {tuple(samples.shape)} for y {tuple(y.shape)}."
        )
    near = angular_distance(samples, y).mean(0)
    apart = torch.zeros_like(near)
    for draw in samples:
        apart = apart + angular_distance(samples, draw).sum(0)
    return near - 0.5 * apart / (count * (count - 1))
