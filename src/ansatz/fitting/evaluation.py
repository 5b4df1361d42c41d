"""Metrics of predictions whose outcomes are known."""

import torch
from torch import Tensor

from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.likelihoods import Quantiles
from ansatz.metrics import judge, pinball


def evaluate_predictive(predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
    """Every metric that applies: of the law's distribution, or of a loss's point alone.

    Args:
        predictive: of each row.
        y: outcomes, ``(N, ...)``.
        weight: ``(N,)`` frequency weights.
    """
    likelihood, raw = predictive
    with torch.no_grad():
        if not likelihood.is_law:
            found = judge(y, point=likelihood.point(raw), weight=weight)
            if isinstance(likelihood, Quantiles):
                at = likelihood.quantiles(raw)
                found = {"pinball": float(pinball(y, at, likelihood.levels, weight)), **found}
            return found
        distribution, outcome = likelihood.given(raw, y)
        # The point that belongs to the outcome: a count of successes, not their share.
        point = likelihood.point(raw) if outcome is y else distribution.mean
        return judge(outcome, point=point, distribution=distribution, weight=weight)
