"""Two models of numbers scored row by row in one measure, or refused where there is none."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import DataError
from ansatz.likelihoods import Quantiles
from ansatz.report.judged import Judged
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


def loss_pair(a: Judged, b: Judged) -> ScorePair:
    """By the loss of the first that is no law; the other enters with what the loss asks for.

    That is its mean for a squared error, its median for an absolute one, its quantiles.
    """
    owner = a if a.distribution is None else b
    if change_between(a, b) is not None:
        raise DataError(
            f"{a.name} and {b.name} predict one quantity on two scales: a loss cannot be "
            "translated. Give both the same target."
        )
    scores = [_loss_of(owner, judged) for judged in (a, b)]
    note = f"{owner.law_name} is a loss, not a law: the models are compared by it."
    return ScorePair(owner.law_name, scores[0], scores[1], higher=False, note=note)


def _loss_of(owner: Judged, judged: Judged) -> NDArray[np.float64]:
    y, law = owner.job.y, owner.law
    with torch.no_grad():
        if judged.law.name == law.name and judged.law.options == law.options:
            terms = law.loss(judged.raw, y)
        elif isinstance(law, Quantiles):
            terms = _pinball(law, judged, y)
        elif law.name in ("mse", "mae", "huber", "tukey"):
            median = law.name == "mae" and judged.distribution is not None
            point = judged.distribution.median if median else judged.law.point(judged.raw)  # type: ignore[union-attr]
            terms = law.loss(point.unsqueeze(-1), y)
        else:
            raise DataError(
                f"{owner.name} has the loss {law.name}, which {judged.name} ({judged.law_name}) "
                "cannot be judged by."
            )
    return terms.double().reshape(len(terms), -1).mean(1).numpy()


def _pinball(law: Quantiles, judged: Judged, y: Tensor) -> Tensor:
    if judged.distribution is None:
        raise DataError(f"{judged.law_name} predicts a point: it has no quantiles to compare by.")
    levels = torch.tensor(law.levels, dtype=torch.float64)
    like = judged.distribution.mean
    at = torch.stack([judged.distribution.icdf(torch.full_like(like, q)) for q in law.levels], -1)
    error = y.unsqueeze(-1) - at
    return torch.maximum(levels * error, (levels - 1) * error).sum(-1)
