"""Two models of numbers scored row by row in one measure, or refused where there is none."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import DataError
from ansatz.likelihoods import Quantiles
from ansatz.report.evaluated import Evaluated
from ansatz.report.measure import change_between, require_same_measure
from ansatz.report.paired_scores import ScorePair


def number_pair(a: Evaluated, b: Evaluated) -> ScorePair:
    """The log scores of two models of numbers; a loss that is not a likelihood is compared by itself."""
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


def log_score_pair(a: Evaluated, b: Evaluated) -> ScorePair:
    """The log scores of two models that have one measure."""
    return ScorePair("log score", a.log_scores.numpy(), b.log_scores.numpy(), higher=True)


def number_beside(a: Evaluated, b: Evaluated) -> ScorePair | None:
    """CRPS or energy score of two models; None for losses and targets on different scales."""
    if a.distribution is None or b.distribution is None or change_between(a, b) is not None:
        return None
    for name in ("energy_score", "crps"):
        if all(hasattr(evaluated.distribution, name) for evaluated in (a, b)):
            first, second = (_by_method(evaluated, name) for evaluated in (a, b))
            if np.isfinite(first).all() and np.isfinite(second).all():
                return ScorePair(name, first, second, higher=False)
            return None
    return None


def _by_method(evaluated: Evaluated, name: str) -> NDArray[np.float64]:
    with torch.no_grad():
        terms: Tensor = getattr(evaluated.distribution, name)(evaluated.value)
    return terms.double().reshape(len(terms), -1).mean(1).numpy()


def loss_pair(a: Evaluated, b: Evaluated) -> ScorePair:
    """By the loss of the first that is no likelihood; the other enters with what the loss asks for.

    That is its mean for a squared error, its median for an absolute one, its quantiles.
    """
    owner = a if a.distribution is None else b
    if change_between(a, b) is not None:
        raise DataError(
            f"{a.name} and {b.name} predict one quantity on two scales: a loss cannot be "
            "translated. Give both the same target."
        )
    scores = [_loss_of(owner, evaluated) for evaluated in (a, b)]
    note = f"{owner.likelihood_name} is a loss, not a likelihood: the models are compared by it."
    return ScorePair(owner.likelihood_name, scores[0], scores[1], higher=False, note=note)


def _loss_of(owner: Evaluated, evaluated: Evaluated) -> NDArray[np.float64]:
    y, likelihood = owner.job.y, owner.likelihood
    with torch.no_grad():
        if (
            evaluated.likelihood.name == likelihood.name
            and evaluated.likelihood.options == likelihood.options
        ):
            terms = likelihood.loss(evaluated.raw, y)
        elif isinstance(likelihood, Quantiles):
            terms = _pinball(likelihood, evaluated, y)
        elif likelihood.name in ("mse", "mae", "huber", "tukey"):
            if likelihood.name == "mae" and evaluated.distribution is not None:
                point = evaluated.distribution.median
            else:
                point = evaluated.likelihood.point(evaluated.raw)
            terms = likelihood.loss(point.unsqueeze(-1), y)
        else:
            raise DataError(
                f"{owner.name} has the loss {likelihood.name}, which {evaluated.name} ({evaluated.likelihood_name}) "
                "cannot be evaluated by."
            )
    return terms.double().reshape(len(terms), -1).mean(1).numpy()


def _pinball(likelihood: Quantiles, evaluated: Evaluated, y: Tensor) -> Tensor:
    if evaluated.distribution is None:
        raise DataError(
            f"{evaluated.likelihood_name} predicts a point: it has no quantiles to compare by."
        )
    levels = torch.tensor(likelihood.levels, dtype=torch.float64)
    like = evaluated.distribution.mean
    at = torch.stack(
        [evaluated.distribution.icdf(torch.full_like(like, q)) for q in likelihood.levels], -1
    )
    error = y.unsqueeze(-1) - at
    return torch.maximum(levels * error, (levels - 1) * error).sum(-1)
