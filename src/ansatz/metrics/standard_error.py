"""Standard errors of metrics, from what each row contributes to them."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.metrics.classification import auc, middle_rank
from ansatz.metrics.weights import require_equal_shapes, row_mean, row_weight


class Estimate(NamedTuple):
    r"""A metric and the influence of each row on it.

    The metric behaves, for many rows, like the mean of :math:`\theta + \psi_i`: its standard error
    is that of a mean, and the difference of two metrics on the same rows has the difference of
    their influences.

    Example:
        >>> import torch
        >>> from ansatz.metrics import mean_estimate
        >>> mean_estimate(torch.tensor([1.0, 3.0])).influence.tolist()
        [-1.0, 1.0]
    """

    value: float
    influence: Tensor  # (N,), of weighted mean zero

    def minus(self, other: "Estimate") -> "Estimate":
        """The paired difference on the same rows."""
        return Estimate(self.value - other.value, self.influence - other.influence)


@takes_arrays
def mean_estimate(values: Tensor, weight: Tensor | None = None) -> Estimate:
    """Computes the mean over rows of a score.

    Shapes:
        - values: ``(N,)``.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import mean_estimate
        >>> mean_estimate(torch.tensor([1.0, 3.0])).value
        2.0
    """
    values = values.double()
    mean = row_mean(values, weight)
    return Estimate(float(mean), values - mean)


@takes_arrays
def rmse_estimate(y: Tensor, point: Tensor, weight: Tensor | None = None) -> Estimate:
    r"""Computes the root mean squared error; by the delta method d sqrt(m) = dm / (2 sqrt(m)).

    Shapes:
        - y, point: ``(N,)``, or ``(N, K)``: then the mean over the K targets.
        - weight: ``(N,)``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import rmse_estimate
        >>> rmse_estimate(torch.zeros(2), torch.tensor([2.0, -2.0])).value
        2.0
    """
    require_equal_shapes("rmse", y, point)
    if y.ndim > 1:
        return _mean_of(rmse_estimate, y, point, weight)
    squared = (y.double() - point.double()) ** 2
    value, influence = mean_estimate(squared, weight)
    root = value**0.5
    return Estimate(root, influence / (2 * root) if root > 0 else influence)


@takes_arrays
def r2_estimate(y: Tensor, point: Tensor, weight: Tensor | None = None) -> Estimate:
    r"""Computes 1 - MSE / Var(y), by the delta method in both.

    .. math:: \psi_i = -\frac{e_i^2 - M}{V} + \frac{M}{V^2} \left((y_i - \bar y)^2 - V\right)

    nan where y does not vary.

    Shapes:
        - y, point: ``(N,)``, or ``(N, K)``: then the mean over the K targets.
        - weight: ``(N,)``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import r2_estimate
        >>> r2_estimate(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 1.0])).value
        0.5
    """
    require_equal_shapes("r2", y, point)
    if y.ndim > 1:
        return _mean_of(r2_estimate, y, point, weight)
    y = y.double()
    squared = mean_estimate((y - point.double()) ** 2, weight)
    total = mean_estimate((y - row_mean(y, weight)) ** 2, weight)
    if not total.value > 0:
        return Estimate(float("nan"), torch.full_like(y, torch.nan))
    slope = squared.value / total.value**2
    influence = slope * total.influence - squared.influence / total.value
    return Estimate(1 - squared.value / total.value, influence)


@takes_arrays
def auc_estimate(y: Tensor, score: Tensor, weight: Tensor | None = None) -> Estimate:
    r"""Computes the area under the ROC curve with DeLong's variance.

    A positive row contributes :math:`V_i - A`, with :math:`V_i` the share of negative rows below
    it (ties half), a negative one likewise; scaled so that the standard error of their mean is
    exactly that of DeLong, DeLong and Clarke-Pearson for independent rows. nan where y has one
    class only.

    Shapes:
        - y: ``(N,)``, 0 or 1.
        - score: ``(N,)``.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import auc_estimate
        >>> auc_estimate(torch.tensor([0, 0, 1, 1]), torch.tensor([0.1, 0.4, 0.35, 0.8])).value
        0.75

    References:
        DeLong, DeLong and Clarke-Pearson (1988), Comparing the areas under two or more correlated
        receiver operating characteristic curves. https://doi.org/10.2307/2531595
    """
    require_equal_shapes("auc", y, score)
    w, positive = row_weight(score, weight), (y == 1).double()
    area = auc(y, score, w)
    plus, minus = float((w * positive).sum()), float((w * (1 - positive)).sum())
    if min(plus, minus) <= 1:
        return Estimate(float(area), torch.full_like(w, torch.nan))
    share = torch.where(
        positive > 0,
        middle_rank(score, w * (1 - positive)) / minus,
        1 - middle_rank(score, w * positive) / plus,
    )
    n = plus + minus
    side = torch.where(positive > 0, _stretch(n, plus), _stretch(n, minus))
    return Estimate(float(area), side * (share - area))


@takes_arrays
def influence_error(
    influence: Tensor,
    weight: Tensor | None = None,
    *,
    group: Tensor | None = None,
    time: Tensor | None = None,
) -> float:
    r"""Computes the standard error of an estimate from the influences of its rows.

    Independent rows: :math:`\sqrt{\sum w_i \psi_i^2 / (n (n - 1))}` with :math:`n = \sum w_i`.
    Rows in groups: influences are summed within each group, :math:`\sqrt{\tfrac{G}{G-1}} / n`
    times the root of the sum of squares over G groups. Rows in order of time: Newey and West's sum
    of autocovariances, with Bartlett weights to the lag :math:`\lfloor 4 (N/100)^{2/9} \rfloor`;
    rows of one time are summed first. nan for a single row or group.

    Args:
        influence: ``(N,)``, of mean zero.
        weight: ``(N,)`` frequency weights.
        group: ``(N,)`` codes; rows of one group may depend on each other.
        time: ``(N,)``; neighbours in time may depend on each other. Not with ``group``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import influence_error
        >>> influence_error(torch.tensor([-1.0, 1.0]))
        1.0

    References:
        Newey and West (1987), A simple, positive semi-definite, heteroskedasticity and
        autocorrelation consistent covariance matrix. https://doi.org/10.2307/1913610
    """
    w = row_weight(influence, weight)
    n = float(w.sum())
    terms = w * influence.double()
    if group is not None:
        totals = _sums(terms, group)
        count = len(totals)
        if count < 2:
            return float("nan")
        return float((count / (count - 1) * totals.square().sum()).sqrt()) / n
    if time is not None:
        return _newey_west(_sums(terms, time)) / n
    if n <= 1:
        return float("nan")
    return float(((w * influence.double().square()).sum() / (n * (n - 1))).sqrt())


def _mean_of(
    estimate: Callable[[Tensor, Tensor, Tensor | None], Estimate],
    y: Tensor,
    point: Tensor,
    weight: Tensor | None,
) -> Estimate:
    """The mean over targets."""
    parts = [estimate(*pair, weight) for pair in zip(y.unbind(1), point.unbind(1), strict=True)]
    value = sum(part.value for part in parts) / len(parts)
    return Estimate(value, torch.stack([part.influence for part in parts]).mean(0))


def _newey_west(totals: Tensor) -> float:
    count = len(totals)
    if count < 2:
        return float("nan")
    lags = min(int(4 * (count / 100) ** (2 / 9)), count - 1)
    variance = totals.square().sum()
    for lag in range(1, lags + 1):
        variance = variance + 2 * (1 - lag / (lags + 1)) * (totals[lag:] * totals[:-lag]).sum()
    return float((count / (count - 1) * variance).clamp(min=0).sqrt())


def _sums(terms: Tensor, key: Tensor) -> Tensor:
    """Sums of the terms of each key, keys in order."""
    _, place = key.unique(return_inverse=True)
    return terms.new_zeros(int(place.max()) + 1).scatter_add_(0, place, terms)


def _stretch(n: float, part: float) -> Tensor:
    """So that a sum over all n rows gives DeLong's sum over the part, divided by part - 1."""
    return torch.tensor(n / part * (part / (part - 1) * (n - 1) / n) ** 0.5, dtype=torch.float64)
