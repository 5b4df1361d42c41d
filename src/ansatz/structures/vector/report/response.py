"""The numbers of a prediction whose dependence on a column can be drawn."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.figures.number import number
from ansatz.figures.printable import printable
from ansatz.report.evidence import Evidence
from ansatz.report.predictive import predictive

MOST = 3  # curves in one panel


class Response(NamedTuple):
    """What is drawn: the names of the numbers, and where a time is part of them.

    Example:
        >>> from ansatz.structures.vector.report.response import Response
        >>> Response(("mean of y",), (0,), 0.0).names
        ('mean of y',)
    """

    names: tuple[str, ...]
    picks: tuple[int, ...]  # which of a vector
    horizon: float = 0.0


def choose_response(evidence: Evidence) -> Response | None:
    """The mean of a number; the probability of a class; survival; the share of a part.

    None for directions, whose mean cannot be accumulated.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report import gather
        >>> from ansatz.structures.vector.report.response import choose_response
        >>> x = np.arange(9.0).reshape(-1, 1)
        >>> model = Regressor("normal", network="linear").fit(x, x[:, 0])
        >>> choose_response(gather(model, x, x[:, 0])).names
        ('predicted y',)
    """
    law = evidence.distribution
    target = printable(evidence.target, 40)
    if getattr(law, "circular", False):
        return None
    if evidence.is_survival:
        horizon = _horizon(evidence)
        if int(getattr(evidence.law, "causes", 1)) > 1:
            return Response((f"P(cause 1 by {number(horizon, 3)})",), (0,), horizon)
        return Response((f"P(T > {number(horizon, 3)})",), (0,), horizon)
    if evidence.classes is not None and evidence.outcome.ndim == 1:
        labels = [f"P({printable(label, 24)})" for label in evidence.classes]
        if len(labels) == 2:
            return Response((labels[1],), (1,))
        share = np.bincount(evidence.outcome.numpy().astype(np.intp), minlength=len(labels))
        picks = tuple(np.argsort(-share, kind="stable")[:MOST].tolist())
        return Response(tuple(labels[k] for k in picks), picks)
    if hasattr(law, "ranks"):
        items = [f"P({printable(item, 24)} first)" for item in evidence.model.items_]
        return Response(tuple(items[:MOST]), tuple(range(min(MOST, len(items)))))
    width = evidence.point.shape[1] if evidence.point.ndim == 2 else 1
    if width > 1:
        names = evidence.model.target_names_[:MOST]
        return Response(
            tuple(f"predicted {printable(name, 24)}" for name in names), tuple(range(len(names)))
        )
    return Response((f"predicted {target}",), (0,))


def respond(
    evidence: Evidence, response: Response, raw: Tensor, model: object = None
) -> NDArray[np.float64]:
    """The numbers at the rows that ``raw`` belongs to, ``(N, R)``.

    Args:
        evidence: gives the law.
        response: what is asked for.
        raw: served raw numbers.
        model: whose law it is, if not the evidence's.

    Example:
        >>> import inspect
        >>> from ansatz.structures.vector.report.response import respond
        >>> list(inspect.signature(respond).parameters)
        ['evidence', 'response', 'raw', 'model']
    """
    estimator = evidence.model if model is None else model
    law = estimator.model_.objective.likelihood  # type: ignore[attr-defined]
    with torch.no_grad():
        if evidence.is_survival:
            return _survival(law, raw, response.horizon)
        if evidence.classes is not None:
            served, _ = predictive(estimator, law, raw, evidence.outcome)  # type: ignore[arg-type]
            probs = served.probs  # type: ignore[union-attr]
            both = torch.stack([1 - probs, probs], -1) if probs.ndim == 1 else probs
            return both[:, list(response.picks)].numpy()
        if hasattr(evidence.distribution, "ranks"):
            return law.distribution(raw).probs[:, list(response.picks)].numpy()
        point = law.point(raw).double()
        if point.ndim == 1:
            point = point.unsqueeze(1)
        return point[:, list(response.picks)].numpy()


def _horizon(evidence: Evidence) -> float:
    """The middle of the observed times, those of the training rows where they are known."""
    followed = evidence.model.followed_
    if len(followed.time):
        seen = followed.time[followed.event > 0]
        return float((seen if len(seen) else followed.time).median())
    return float(followed.horizon) / 2


def _survival(law: object, raw: Tensor, horizon: float) -> NDArray[np.float64]:
    from ansatz.outcomes.survival_metrics import log_survival_at

    if int(getattr(law, "causes", 1)) > 1:
        end = torch.tensor([horizon], dtype=raw.dtype)
        return law.incidence(raw, end, 1).numpy()  # type: ignore[attr-defined]
    return log_survival_at(law.distribution(raw), [horizon]).exp().numpy()  # type: ignore[attr-defined]
