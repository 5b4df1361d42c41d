"""All the numbers that apply to a set of predictions."""

import math
from typing import Any

import torch
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.metrics.classification import accuracy, auc, brier, ece
from ansatz.metrics.errors import mae, mean_angular_error, r2, rmse
from ansatz.metrics.ranking import kendall_tau, top_one_accuracy
from ansatz.metrics.scoring_rules import crps, energy_score, log_score


@takes_arrays
def compute_metrics(
    y: Tensor,
    *,
    point: Tensor | None = None,
    distribution: Any = None,
    weight: Tensor | None = None,
) -> dict[str, float | None]:
    """Computes every metric that applies, by name; None where it is undefined.

    A distribution over classes (one with ``probs``) gives nll, accuracy, brier, ece and auc; one
    over rankings (with ``ranks``) gives nll, kendall_tau and top_one_accuracy; any other gives nll
    and crps, or the energy score where outcomes are vectors. A point gives rmse, mae and r2; the
    mean angular error where outcomes are directions (a distribution that is ``circular``); or
    accuracy, where both it and y are of integer dtype, which means class codes.

    Args:
        y: the outcomes, ``(N,)`` or ``(N, K)``.
        point: predictions of the same shape.
        distribution: one predictive distribution per outcome.
        weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import compute_metrics
        >>> compute_metrics(torch.tensor([0.0, 2.0]), point=torch.tensor([0.0, 1.0]))["r2"]
        0.5
    """
    with torch.no_grad():
        if distribution is not None and hasattr(distribution, "ranks"):
            values = _rankings(y, distribution, weight)
        elif distribution is not None and _is_over_classes(distribution):
            values = _classes(y, distribution, weight)
        elif point is not None and not (y.is_floating_point() or point.is_floating_point()):
            values = {"accuracy": accuracy(y, point, weight)}
        else:
            values = _numbers(y, point, distribution, weight)
        return {name: _number(value) for name, value in values.items()}


def _numbers(
    y: Tensor, point: Tensor | None, distribution: Any, weight: Tensor | None
) -> dict[str, Tensor]:
    values = {}
    if distribution is not None:
        values["nll"] = -log_score(distribution, y, weight)
        if hasattr(distribution, "energy_score"):
            values["energy_score"] = energy_score(distribution, y, weight)
        else:
            values["crps"] = crps(distribution, y, weight)
    if point is not None and getattr(distribution, "circular", False):
        values["mean_angular_error"] = mean_angular_error(y, point, weight)
    elif point is not None:
        values["rmse"] = rmse(y, point, weight)
        values["mae"] = mae(y, point, weight)
        values["r2"] = r2(y, point, weight)
    return values


def _is_over_classes(distribution: Any) -> bool:
    """Classes have probabilities; so has a count of successes, which is a number all the same."""
    return hasattr(distribution, "probs") and not hasattr(distribution, "trials")


def _classes(y: Tensor, distribution: Any, weight: Tensor | None) -> dict[str, Tensor]:
    probs = distribution.probs
    several = probs.ndim > y.ndim
    predicted = probs.argmax(-1) if several else (probs > 0.5).long()
    # A binary logit still ranks rows whose probabilities have been rounded to 1.
    score = probs if several else getattr(distribution, "logits", probs)
    values = {
        "nll": -log_score(distribution, y, weight),
        "accuracy": accuracy(y.long(), predicted, weight),
    }
    for name, metric, forecast in (
        ("brier", brier, probs),
        ("ece", ece, probs),
        ("auc", auc, score),
    ):
        # Several targets: each column by itself, then their mean.
        columns = (
            [(y, forecast)] if y.ndim == 1 else zip(y.unbind(1), forecast.unbind(1), strict=True)
        )
        values[name] = torch.stack([metric(t, f, weight) for t, f in columns]).mean()
    return values


def _rankings(y: Tensor, distribution: Any, weight: Tensor | None) -> dict[str, Tensor]:
    order = distribution.mode.expand(len(y), -1)
    unranked = distribution.unranked
    return {
        "nll": -log_score(distribution, y, weight),
        "kendall_tau": kendall_tau(y, order, weight, unranked=unranked),
        "top_one_accuracy": top_one_accuracy(y, order, weight, unranked=unranked),
    }


def _number(value: Tensor) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
