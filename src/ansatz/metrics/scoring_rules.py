"""Proper scores of predicted distributions, draws and quantiles."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.metrics.weights import row_mean


@takes_arrays
def log_score(distribution: Any, y: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Computes the mean log density of the outcomes: larger is better; its negative is the nll.

    .. math:: \sum_i w_i \log p_i(y_i) / \sum_i w_i

    The only proper score that looks at nothing but the density where the outcome fell.

    Args:
        distribution: one per outcome, with a method ``log_prob(y)``.
        y: ``(N,)``, or ``(N, K)``: then the mean over the K targets too.
        weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import log_score
        >>> distribution = torch.distributions.Exponential(torch.ones(2))
        >>> log_score(distribution, torch.tensor([1.0, 3.0])).item()
        -2.0

    References:
        Gneiting and Raftery (2007), Strictly proper scoring rules, section 4.1.
        https://doi.org/10.1198/016214506000001437
    """
    return row_mean(distribution.log_prob(y), weight).mean()


@takes_arrays
def crps(distribution: Any, y: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Computes the mean CRPS of the outcomes, in the unit of y: smaller is better.

    .. math:: \int (F(x) - 1[x \ge y])^2 dx

    It is the absolute error where F is a point, and rewards a distribution that is as wide as
    needed.

    Args:
        distribution: one per outcome, with a method ``crps(y)``.
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


@takes_arrays
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
    pair = (rank.reshape(-1, *(1,) * y.ndim) * ordered).sum(0) / (count * (count - 1))
    return ordered.abs().mean(0) - pair


_BLOCK = 2**22  # differences held at once


@takes_arrays
def energy_score(distribution: Any, y: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Computes the mean energy score of vector outcomes, in the unit of y: smaller is better.

    .. math:: E\|Y - y\| - \tfrac12 E\|Y - Y'\|

    The CRPS of vectors: it sees the dependence of the K numbers too, if only weakly. Numbers of
    different units should be scaled before.

    Args:
        distribution: one per outcome, with a method ``energy_score(y)``.
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


@takes_arrays
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


@takes_arrays
def pinball(
    y: Tensor, quantiles: Tensor, levels: Sequence[float], weight: Tensor | None = None
) -> Tensor:
    r"""Computes the mean pinball loss over levels and rows, in the unit of y: smaller is better.

    .. math:: \max(\tau e, (\tau - 1) e), \qquad e = y - q_\tau

    Its expectation is least at the tau-quantile. Over all levels from 0 to 1 its mean is half the
    CRPS; at 1/2 alone it is half the absolute error.

    Args:
        y: ``(N,)``, or ``(N, K)``: then the mean over the K targets too.
        quantiles: ``(N, Q)`` or ``(N, K, Q)``, one per level.
        levels: Q numbers strictly between 0 and 1.
        weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import pinball
        >>> round(pinball(torch.tensor([3.0]), torch.tensor([[1.0]]), [0.9]).item(), 4)  # 0.9 * 2
        1.8

    References:
        Koenker and Bassett (1978), Regression quantiles. https://doi.org/10.2307/1913643
    """
    level = torch.tensor(list(levels), dtype=torch.float64, device=y.device)
    if quantiles.shape != (*y.shape, len(level)):
        raise ValueError(
            f"pinball needs one quantile per level, {(*y.shape, len(level))}, "
            f"got {tuple(quantiles.shape)}."
        )
    if len(level) == 0 or not bool(((level > 0) & (level < 1)).all()):
        raise ValueError(f"levels must be strictly between 0 and 1, got {list(levels)}.")
    error = y.double().unsqueeze(-1) - quantiles.double()
    return row_mean(torch.maximum(level * error, (level - 1) * error).mean(-1), weight).mean()
