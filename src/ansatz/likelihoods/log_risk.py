"""Log-risks of Cox's model for its baseline hazard, by models that did not learn from the rows."""

import math
from collections.abc import Iterable

from torch import Tensor, logsumexp

Fold = tuple[Tensor, Tensor, Tensor]  # rows of a model, rows it left out, its log-risks of all


def fair_log_risks(own: Tensor, others: Iterable[Fold]) -> Tensor:
    """Each row's log-risk by the model that left it out; its own where none did.

    Log-risks of rows that a flexible model learned from know too well who had the event: those left
    at risk look safer than they are, and the baseline that makes up for it is too high for new
    rows. Only differences of log-risks mean anything, so every fold is put on the level of the
    whole fit.

    Args:
        own: ``(N,)`` of the whole fit.
        others: for each fold the rows learned from, those left out, and ``(N,)`` log-risks.
    """
    fair = own.clone()
    for inside, outside, other in others:
        fair[outside] = other[outside] + log_mean_risk(own[inside]) - log_mean_risk(other[inside])
    return fair


def log_mean_risk(log_risk: Tensor) -> Tensor:
    """The log of the mean risk."""
    return logsumexp(log_risk, 0) - math.log(len(log_risk))
