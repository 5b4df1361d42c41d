"""Metrics of classes and of their probabilities."""

import math

import torch
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.metrics.weights import require_equal_shapes, row_mean, row_weight


@takes_arrays
def accuracy(y: Tensor, predicted: Tensor, weight: Tensor | None = None) -> Tensor:
    """Computes the share of rows whose predicted class is the true one.

    Shapes:
        - y, predicted: ``(N,)`` class codes, or ``(N, K)``: then the share of all outcomes.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import accuracy
        >>> accuracy(torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 2, 0])).item()
        0.75
    """
    require_equal_shapes("accuracy", y, predicted)
    return row_mean((y == predicted).double(), weight).mean()


@takes_arrays
def brier(y: Tensor, probs: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Computes the mean squared error of probabilities: smaller is better.

    .. math:: \text{binary: } (p - y)^2, \qquad
              \text{K classes: } \sum_k (p_k - 1[y = k])^2

    The binary form is scikit-learn's ``brier_score_loss``; the sum over both classes of the same
    forecast is twice as large.

    Shapes:
        - y: ``(N,)``: 0 or 1, or class codes.
        - probs: ``(N,)`` P(y = 1), or ``(N, K)``.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import brier
        >>> y = torch.tensor([1, 0])
        >>> brier(y, torch.tensor([0.5, 0.5])).item()
        0.25
        >>> brier(y, torch.full((2, 2), 0.5)).item()
        0.5

    References:
        Brier (1950), Verification of forecasts expressed in terms of probability.
    """
    _require_probabilities("brier", y, probs)
    if probs.ndim == y.ndim:
        return row_mean((probs.double() - y) ** 2, weight).mean()
    hit = torch.nn.functional.one_hot(y.long(), probs.shape[-1])
    return row_mean(((probs.double() - hit) ** 2).sum(-1), weight).mean()


@takes_arrays
def ece(y: Tensor, probs: Tensor, weight: Tensor | None = None, *, bins: int = 15) -> Tensor:
    r"""Computes the expected calibration error over equal-count bins, less the noise's share.

    In bin b with weight :math:`n_b` let :math:`\delta_b` be the observed frequency
    :math:`\bar y_b` less the mean forecast. Even a perfect forecast has :math:`\delta_b \sim
    N(0, s_b^2)` with :math:`s_b^2 = \bar y_b (1 - \bar y_b) / n_b`, so that :math:`|\delta_b|`
    is too large by :math:`E|N(\delta_b, s_b^2)| - |\delta_b|`, which is subtracted:

    .. math:: \sum_b \frac{n_b}{n} \left(2 |\delta_b| - E|N(\delta_b, s_b^2)|\right),
              \quad E|N(\delta, s^2)| = s \sqrt{2/\pi}\, e^{-\delta^2/2s^2}
              + \delta\, \text{erf}(\delta / \sqrt2 s)

    That removes the noise's share to first order where a bin is off, and a factor 2 - sqrt(2) =
    0.59 of it is left where every bin is right; it may be slightly negative.

    A binary forecast is evaluated by P(y = 1); K classes by the probability of the most probable
    class and whether it was right. Rows with equal forecasts share a bin, that of their middle
    rank.

    Shapes:
        - y: ``(N,)``: 0 or 1, or class codes.
        - probs: ``(N,)`` P(y = 1), or ``(N, K)``.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import ece
        >>> y = torch.tensor([0.0, 1.0]).repeat(50)
        >>> round(ece(y, torch.full((100,), 0.9)).item(), 3)  # 0.9, happens half the time
        0.4

    References:
        Kumar, Liang and Ma (2019), Verified uncertainty calibration, section 5 (there by
        simulation). https://arxiv.org/abs/1909.10155
    """
    _require_probabilities("ece", y, probs)
    if probs.ndim == y.ndim:
        forecast, event = probs.double(), y.double()
    else:
        forecast, code = probs.double().max(-1)
        event = (code == y).double()
    weight = row_weight(forecast, weight)
    forecast, event, weight = (t[weight > 0] for t in (forecast, event, weight))
    share = middle_rank(forecast, weight) / weight.sum()
    place = (share * bins).long().clamp(max=bins - 1)
    mass, seen, forecasts = (
        forecast.new_zeros(bins).scatter_add_(0, place, v)
        for v in (weight, weight * event, weight * forecast)
    )
    mass, seen, forecasts = (v[mass > 0] for v in (mass, seen, forecasts))
    delta, rate = (seen - forecasts) / mass, seen / mass
    noise = (rate * (1 - rate)).clamp(min=0).div(mass).sqrt()
    return (mass * (2 * delta.abs() - _folded_normal_mean(delta, noise))).sum() / mass.sum()


@takes_arrays
def auc(y: Tensor, score: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Computes the area under the ROC curve: P(a positive row scores above a negative one).

    .. math:: \frac{\sum_{i: y=1} \sum_{j: y=0} w_i w_j (1[s_i > s_j] + \tfrac12 1[s_i = s_j])}
              {\sum_{i: y=1} w_i \sum_{j: y=0} w_j}

    With K columns of scores, each class against the rest, averaged over the classes that occur
    (macro average). nan where y has one class only.

    Shapes:
        - y: ``(N,)``: 0 or 1, or class codes.
        - score: ``(N,)``, or ``(N, K)``.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import auc
        >>> auc(torch.tensor([0, 0, 1, 1]), torch.tensor([0.1, 0.4, 0.35, 0.8])).item()
        0.75

    References:
        Hanley and McNeil (1982), The meaning and use of the area under a ROC curve.
        https://doi.org/10.1148/radiology.143.1.7063747
    """
    _require_probabilities("auc", y, score)
    weight = row_weight(score, weight)
    if score.ndim == y.ndim:
        return _binary_auc((y == 1).double(), score.double(), weight)
    present = [k for k in range(score.shape[-1]) if bool(((y == k) & (weight > 0)).any())]
    parts = [_binary_auc((y == k).double(), score[:, k].double(), weight) for k in present]
    return torch.stack(parts).mean() if len(present) > 1 else score.new_tensor(math.nan).double()


@takes_arrays
def average_precision(y: Tensor, score: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Computes the average precision: the area under the steps of precision over recall.

    .. math:: \sum_k (R_k - R_{k-1}) P_k

    over the different scores from the highest on, with the recall R and the precision P of the
    rows that score as high. nan where y has no positive row.

    Shapes:
        - y: ``(N,)``: 0 or 1.
        - score: ``(N,)``.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import average_precision
        >>> scores = torch.tensor([0.1, 0.4, 0.35, 0.8])
        >>> round(average_precision(torch.tensor([0, 0, 1, 1]), scores).item(), 4)
        0.8333
    """
    _require_probabilities("average_precision", y, score)
    weight = row_weight(score, weight)
    levels, group = (-score.double()).unique(return_inverse=True)
    hits, every = (
        weight.new_zeros(len(levels)).scatter_add_(0, group, each).cumsum(0)
        for each in (weight * (y == 1), weight)
    )
    gained = torch.diff(hits, prepend=hits.new_zeros(1)) / hits[-1]
    return (gained * hits / every.clamp(min=torch.finfo(every.dtype).tiny)).sum()


roc_auc = auc  # scikit-learn's name


def _binary_auc(positive: Tensor, score: Tensor, weight: Tensor) -> Tensor:
    # Mann and Whitney: the weight of the negatives below each positive, ties counted half.
    rank = middle_rank(score, weight * (1 - positive))
    plus, minus = (weight * positive).sum(), (weight * (1 - positive)).sum()
    return (weight * positive * rank).sum() / (plus * minus)


def middle_rank(values: Tensor, weight: Tensor) -> Tensor:
    """The weight below each value plus half the weight at it."""
    _, group = values.unique(return_inverse=True)  # sorted
    at = weight.new_zeros(int(group.max()) + 1).scatter_add_(0, group, weight)
    return (at.cumsum(0) - at / 2)[group]


def _folded_normal_mean(mean: Tensor, sd: Tensor) -> Tensor:
    """E|X| for X ~ N(mean, sd^2); |mean| where sd is 0."""
    z = mean / torch.where(sd > 0, sd, 1.0)
    wide = sd * math.sqrt(2 / math.pi) * (-z * z / 2).exp() + mean * torch.erf(z / math.sqrt(2))
    return torch.where(sd > 0, wide, mean.abs())


def _require_probabilities(name: str, y: Tensor, probs: Tensor) -> None:
    binary = probs.shape == y.shape
    if not binary and (probs.shape[:-1] != y.shape or probs.shape[-1] < 2):
        rows = ", ".join(map(str, y.shape))
        raise ValueError(
            f"{name} needs one score per row, ({rows},), or K > 1 of them, ({rows}, K), "
            f"got {tuple(probs.shape)}."
        )
