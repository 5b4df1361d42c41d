"""Losses that are no laws: models compared by the loss itself."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import DataError
from ansatz.likelihoods import Quantiles
from ansatz.report.judged import Judged
from ansatz.report.measure import change_between
from ansatz.report.paired_scores import ScorePair


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
