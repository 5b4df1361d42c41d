"""Distances of two samples: energy distance, maximum mean discrepancy, precision and recall."""

import torch
from torch import Tensor


def standardized(real: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
    """Both samples as rows, in units of the standard deviations of the first."""
    a, b = (each.double().reshape(len(each), -1) for each in (real, drawn))
    mean, scale = a.mean(0), a.std(0, unbiased=False)
    scale = torch.where(scale > 1e-9, scale, 1.0)
    return (a - mean) / scale, (b - mean) / scale


def energy_distance(real: Tensor, drawn: Tensor) -> float:
    r"""The energy distance of two samples of vectors, in units of the first.

    .. math:: 2 E\|X - Y\| - E\|X - X'\| - E\|Y - Y'\| \ge 0

    It is 0 only for equal distributions; pairs of one sample are of different rows.

    Args:
        real: ``(N, ...)``.
        drawn: ``(M, ...)``.

    Example:
        >>> import torch
        >>> from ansatz.generative.distances import energy_distance
        >>> rng = torch.Generator().manual_seed(0)
        >>> x = torch.randn(300, 2, generator=rng)
        >>> abs(energy_distance(x, torch.randn(300, 2, generator=rng))) < 0.05
        True

    References:
        Szekely and Rizzo (2013), Energy statistics. https://doi.org/10.1016/j.jspi.2013.03.018
    """
    a, b = standardized(real, drawn)
    return float(2 * torch.cdist(a, b).mean() - _within(a) - _within(b))


def _within(x: Tensor) -> Tensor:
    count = len(x)
    return torch.cdist(x, x).sum() / max(count * (count - 1), 1)
