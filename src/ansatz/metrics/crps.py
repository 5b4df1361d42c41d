"""The continuous ranked probability score."""

from typing import Protocol

import torch
from torch import Tensor

from ansatz.metrics.weights import row_mean


class Ranked(Protocol):
    """A distribution that knows its own score, as those of ``ansatz.likelihoods`` do."""

    def crps(self, y: Tensor) -> Tensor:
        """The score of each outcome."""
        ...


def crps(distribution: Ranked, y: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""The mean CRPS of the outcomes, in the unit of y: smaller is better.

    .. math:: \int (F(x) - 1[x \ge y])^2 dx

    It is the absolute error where F is a point, and rewards a spread that is as wide as needed.

    Args:
        distribution: one distribution per outcome.
        y: ``(N,)``, or ``(N, K)``: then the mean over the K targets too.
        weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import NormalDistribution
        >>> from ansatz.metrics import crps
        >>> round(crps(NormalDistribution(torch.zeros(1), torch.ones(1)), torch.zeros(1)).item(), 4)
        0.2337

    References:
        Gneiting and Raftery (2007), Strictly proper scoring rules, section 4.2.
        https://doi.org/10.1198/016214506000001437
    """
    return row_mean(distribution.crps(y), weight).mean()


def sample_crps(samples: Tensor, y: Tensor) -> Tensor:
    r"""Estimates the CRPS of each outcome from M draws, without bias.

    .. math:: \frac1M \sum_i |x_i - y| - \frac{1}{2 M (M - 1)} \sum_{i \ne j} |x_i - x_j|

    The double sum is taken over the sorted draws, :math:`\sum_{i \ne j} |x_i - x_j| =
    2 \sum_i (2i - M - 1) x_{(i)}`. Dividing by M^2 instead would favour narrow samples.

    Shapes:
        - samples: ``(M, ...)``, M >= 2.
        - y: ``(...)``.
        - returns: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import sample_crps
        >>> sample_crps(torch.tensor([[0.0], [2.0]]), torch.tensor([1.0]))
        tensor([0.])

    References:
        Ferro (2014), Fair scores for ensemble forecasts. https://doi.org/10.1002/qj.2270
    """
    count = len(samples)
    if count < 2 or samples.shape[1:] != y.shape:
        raise ValueError(
            f"sample_crps needs samples (M, *y.shape) with M >= 2, got {tuple(samples.shape)} "
            f"for y {tuple(y.shape)}."
        )
    rank = 2 * torch.arange(1, count + 1, dtype=samples.dtype, device=samples.device) - count - 1
    # Centred at y: the ranks add up to 0, and far from 0 the sum would lose its digits.
    ordered = (samples - y).sort(0).values
    spread = (rank.reshape(-1, *(1,) * y.ndim) * ordered).sum(0) / (count * (count - 1))
    return ordered.abs().mean(0) - spread
