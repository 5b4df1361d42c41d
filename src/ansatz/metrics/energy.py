"""The energy score: how good a forecast of a vector is."""

from typing import Protocol

import torch
from torch import Tensor

from ansatz.metrics.weights import row_mean

_BLOCK = 2**22  # differences held at once


class Energetic(Protocol):
    """A distribution of vectors that knows its own score."""

    def energy_score(self, y: Tensor) -> Tensor:
        """The score of each outcome."""
        ...


def energy_score(distribution: Energetic, y: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""The mean energy score of vector outcomes, in the unit of y: smaller is better.

    .. math:: E\|Y - y\| - \tfrac12 E\|Y - Y'\|

    The CRPS of vectors: it sees the dependence of the K numbers too, if only weakly. Numbers of
    different units should be scaled before.

    Args:
        distribution: one distribution per outcome.
        y: ``(N, K)``.
        weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import MultivariateNormal
        >>> from ansatz.metrics import energy_score
        >>> distribution = MultivariateNormal(covariance="diagonal").distribution(torch.zeros(1, 4))
        >>> near, far = torch.zeros(1, 2), torch.ones(1, 2)
        >>> bool(energy_score(distribution, near) < energy_score(distribution, far))
        True

    References:
        Gneiting and Raftery (2007), Strictly proper scoring rules, section 4.3.
        https://doi.org/10.1198/016214506000001437
    """
    return row_mean(distribution.energy_score(y), weight)


def sample_energy_score(samples: Tensor, y: Tensor) -> Tensor:
    r"""Estimates the energy score of each outcome from M draws, without bias.

    .. math:: \frac1M \sum_i \|x_i - y\| - \frac{1}{2 M (M - 1)} \sum_{i \ne j} \|x_i - x_j\|

    Dividing by M^2 instead would favour narrow samples.

    Shapes:
        - samples: ``(M, ..., K)``, M >= 2.
        - y: ``(..., K)``.
        - returns: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import sample_energy_score
        >>> sample_energy_score(torch.tensor([[[0.0, 0.0]], [[6.0, 8.0]]]), torch.zeros(1, 2))
        tensor([0.])

    References:
        Gneiting et al. (2008), Assessing probabilistic forecasts of multivariate quantities.
        https://doi.org/10.1007/s11749-008-0114-x
    """
    count = len(samples)
    if count < 2 or samples.shape[1:] != y.shape or y.ndim < 1:
        raise ValueError(
            f"sample_energy_score needs samples (M, *y.shape) with M >= 2 and y (..., K), "
            f"got {tuple(samples.shape)} for y {tuple(y.shape)}."
        )
    near = (samples - y).norm(dim=-1).mean(0)
    apart = torch.zeros_like(near)
    block = max(1, _BLOCK // max(1, samples.numel()))
    for start in range(0, count, block):
        part = samples[start : start + block].unsqueeze(1)  # (b, 1, ..., K)
        apart = apart + (part - samples).norm(dim=-1).sum((0, 1))
    return near - 0.5 * apart / (count * (count - 1))
