"""How far forecasts of directions are from the outcomes."""

import math

import torch
from torch import Tensor

from ansatz.metrics.weights import require_equal_shapes, row_mean


def angular_distance(first: Tensor, second: Tensor) -> Tensor:
    """The angle between two directions, from 0 to pi.

    Example:
        >>> import torch
        >>> from ansatz.metrics import angular_distance
        >>> angular_distance(torch.tensor(0.1), torch.tensor(6.2))  # over the cut
        tensor(0.1832)
    """
    gap = first - second
    return (gap - 2 * math.pi * torch.round(gap / (2 * math.pi))).abs()


def mean_angular_error(y: Tensor, point: Tensor, weight: Tensor | None = None) -> Tensor:
    """The mean angle between outcomes and predicted directions, in radians: smaller is better.

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


def sample_circular_crps(samples: Tensor, y: Tensor) -> Tensor:
    r"""The circular CRPS of each direction from M draws, in radians: smaller is better.

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
