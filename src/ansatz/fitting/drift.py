"""A note where the latest rows are not like those before them."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.fitting.choice import moments
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model

LEVEL = 0.9
FEWEST = 20  # rows: of fewer, a share says little
ERRORS = 3.0  # standard errors below what was to be expected


class _Hits(NamedTuple):
    """What a model claims to hit, and what it hits of the latest rows."""

    inside: Tensor  # (N,) 0 or 1; of several targets their share
    expected: Tensor  # (N,) its probability by the model
    words: str
    advice: str


def note_on_drift(model: Model, test: Job) -> list[str]:
    r"""Reports that predictions hold for fewer of the latest rows than they claim.

    A predictive distribution describes rows like the training rows. The latest rows follow it only
    if the relation of y and x stays as it was. Of numbers, 90 % intervals are counted; of classes,
    the rows that have the predicted class, which has the probability :math:`p_i`. A note follows
    where the share :math:`\hat p` of n rows is too small for chance,

    .. math:: \hat p < \bar p - 3 \sqrt{\textstyle\sum_i p_i (1 - p_i)} \,/\, n

    (:math:`p_i = 0.9` for intervals), with the shares of the earlier and the later half, which
    show whether the distance grows. Of intervals it says how much wider they must have been: the
    0.9-quantile of

    .. math:: r_i = |y_i - m_i| \,/\, |b_i - m_i|

    for the median m of a row and the bound b on the side of y.

    Args:
        model: as fitted to the earlier rows.
        test: the latest rows.
    """
    if len(test.y) < FEWEST or test.target.event:
        return []
    with torch.no_grad():
        served = model.predictive(test.rows, test.offset, notes=[])
        hits = _classes(model, served, test) if test.target.classes else _intervals(served, test)
    if hits is None:
        return []
    held, claimed = float(hits.inside.mean()), float(hits.expected.mean())
    count = len(hits.inside)
    error = float((hits.expected * (1 - hits.expected)).sum()) ** 0.5 / count
    if held >= claimed - ERRORS * error:
        return []
    order = np.arange(count)
    if test.time is not None:  # rows from disk come in their order
        order = np.argsort(moments(test.time), kind="stable")
    halves = [float(hits.inside[half].mean()) for half in np.array_split(order, 2)]
    return [
        f"of the latest {count:,} rows, {hits.words.format(held=held, claimed=claimed)} "
        f"({halves[0]:.0%} of their first half, {halves[1]:.0%} of their second): y depends on x "
        f"in another way than before, or x is not what it was. {hits.advice}"
    ]


def _intervals(served: Predictive, test: Job) -> _Hits | None:
    """Counts the outcomes inside their intervals."""
    likelihood, raw = served
    if likelihood.event_ndim or not likelihood.has_distribution:
        return None
    found = likelihood.distribution(raw)
    (lower, upper), middle = found.interval(LEVEL), found.icdf(torch.tensor(0.5).to(raw))
    inside = ((lower <= test.y) & (test.y <= upper)).double().reshape(len(test.y), -1)
    half = torch.where(test.y > middle, upper - middle, middle - lower)
    ratio = (test.y - middle).abs() / half
    ratio = ratio[ratio.isfinite()]
    wider = float(ratio.quantile(LEVEL)) if len(ratio) else 1.0
    times = f"{wider:.2g} times as wide " if wider > 1 else "wider "
    return _Hits(
        inside.mean(1),
        torch.full((len(inside),), LEVEL, dtype=inside.dtype),
        f"{LEVEL:.0%} intervals hold {{held:.0%}}",
        f"Intervals {times}would have held {LEVEL:.0%}. Fit again as rows come in.",
    )


def _classes(model: Model, served: Predictive, test: Job) -> _Hits | None:
    """Counts the rows that have the predicted class."""
    if test.target.axis != "row" or test.y.ndim != 1:
        return None
    chance, predicted = model.of_classes.probabilities(served).max(-1)
    return _Hits(
        (predicted == test.y.long()).double(),
        chance.double(),
        "{held:.0%} have the predicted class, by its probability {claimed:.0%} should",
        "Probabilities are too sure of such rows: fit again as rows come in.",
    )
