"""Distances of two samples: energy distance, maximum mean discrepancy, precision and recall."""

import torch
from torch import Tensor


def standardized(real: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
    """Both samples as rows, in units of the standard deviations of the first."""
    a, b = (each.double().reshape(len(each), -1) for each in (real, drawn))
    mean, scale = a.mean(0), a.std(0, unbiased=False)
    scale = torch.where(scale > 1e-9, scale, 1.0)
    return (a - mean) / scale, (b - mean) / scale


def energy_distance(real: Tensor, drawn: Tensor, *, scaled: bool = True) -> float:
    r"""The energy distance of two samples of vectors, in units of the first.

    .. math:: 2 E\|X - Y\| - E\|X - X'\| - E\|Y - Y'\| \ge 0

    It is 0 only for equal distributions; pairs of one sample are of different rows.

    Args:
        real: ``(N, ...)``.
        drawn: ``(M, ...)``.
        scaled: in units of the standard deviations of the first sample, or as they are.

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
    a, b = real.double().flatten(1), drawn.double().flatten(1)
    if scaled:
        a, b = standardized(real, drawn)
    return float(2 * torch.cdist(a, b).mean() - _within(a) - _within(b))


def _within(x: Tensor) -> Tensor:
    count = len(x)
    return torch.cdist(x, x).sum() / max(count * (count - 1), 1)


def mean_discrepancy(real: Tensor, drawn: Tensor) -> float:
    r"""The squared maximum mean discrepancy of two samples, by an unbiased estimate.

    .. math:: E k(X, X') + E k(Y, Y') - 2 E k(X, Y), \qquad k(x, y) = e^{-\|x - y\|^2 / (2 h^2)}

    with h the median distance of the first sample.

    Args:
        real: ``(N, ...)``.
        drawn: ``(M, ...)``.

    Example:
        >>> import torch
        >>> from ansatz.generative.distances import mean_discrepancy
        >>> rng = torch.Generator().manual_seed(0)
        >>> x = torch.randn(200, 2, generator=rng)
        >>> mean_discrepancy(x, x + 3) > 0.5
        True

    References:
        Gretton et al. (2012), A kernel two-sample test, lemma 6.
    """
    a, b = standardized(real, drawn)
    width = torch.pdist(a[:1_000]).median().clamp(min=1e-9)

    def kernel(x: Tensor, y: Tensor) -> Tensor:
        return (-torch.cdist(x, y).square() / (2 * width**2)).exp()

    def within(x: Tensor) -> Tensor:
        count = len(x)
        return (kernel(x, x).sum() - count) / max(count * (count - 1), 1)

    return float(within(a) + within(b) - 2 * kernel(a, b).mean())


def precision_and_recall(real: Tensor, drawn: Tensor, neighbours: int = 5) -> tuple[float, float]:
    """The shares of drawn examples among the real ones, and of real ones among the drawn.

    An example is among a sample if it lies within the distance of one of its members to that
    member's k-th neighbour.

    Args:
        real: ``(N, ...)``.
        drawn: ``(M, ...)``.
        neighbours: k.

    Example:
        >>> import torch
        >>> from ansatz.generative.distances import precision_and_recall
        >>> x = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
        >>> precision_and_recall(x, x)
        (1.0, 1.0)

    References:
        Kynkaanniemi et al. (2019), Improved precision and recall metric for assessing generative
        models. https://arxiv.org/abs/1904.06991
    """
    a, b = standardized(real, drawn)

    def inside(x: Tensor, members: Tensor) -> float:
        k = min(neighbours, len(members) - 1)
        radius = torch.cdist(members, members).kthvalue(k + 1, 1).values
        return float((torch.cdist(x, members) <= radius).any(1).double().mean())

    return inside(b, a), inside(a, b)
