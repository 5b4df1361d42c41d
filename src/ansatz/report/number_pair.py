"""Two models of numbers scored row by row in one measure, or refused where there is none."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.report.judged import Judged
from ansatz.report.loss_pair import loss_pair
from ansatz.report.measure import change_between, require_same_measure
from ansatz.report.paired_scores import ScorePair


def number_pair(a: Judged, b: Judged) -> ScorePair:
    """The log scores of two models of numbers; a loss that is not a law is compared by itself."""
    if a.distribution is None or b.distribution is None:
        return loss_pair(a, b)
    change = change_between(a, b)
    require_same_measure(a, b, change)
    if change is None:
        return log_score_pair(a, b)
    note = (
        f"the target of {b.name} is that of {a.name} on another scale ({change.name}): its density "
        "was translated."
    )
    scores = b.log_scores.numpy() + change.log_slope
    return ScorePair("log score", a.log_scores.numpy(), scores, True, note)


def log_score_pair(a: Judged, b: Judged) -> ScorePair:
    """The log scores of two models that have one measure."""
    return ScorePair("log score", a.log_scores.numpy(), b.log_scores.numpy(), higher=True)


def number_beside(a: Judged, b: Judged) -> ScorePair | None:
    """CRPS or energy score of two models; None for losses and targets on different scales."""
    if a.distribution is None or b.distribution is None or change_between(a, b) is not None:
        return None
    for name in ("energy_score", "crps"):
        if all(hasattr(judged.distribution, name) for judged in (a, b)):
            first, second = (_by_method(judged, name) for judged in (a, b))
            if np.isfinite(first).all() and np.isfinite(second).all():
                return ScorePair(name, first, second, higher=False)
            return None
    return None


def _by_method(judged: Judged, name: str) -> NDArray[np.float64]:
    with torch.no_grad():
        terms: Tensor = getattr(judged.distribution, name)(judged.value)
    return terms.double().reshape(len(terms), -1).mean(1).numpy()
