"""What is asked of predicted classes: events that happen or not, with their probabilities."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.figures.printable import printable
from ansatz.report.evidence import Evidence

Numbers = NDArray[np.float64]
MOST = 6  # classes that are shown


class Question(NamedTuple):
    """Something that happens or not, with its predicted probability.

    Args:
        name: of the event.
        event: ``(N,)``, 0 or 1.
        probability: ``(N,)``.
    """

    name: str
    event: Numbers
    probability: Numbers


def questions(evidence: Evidence) -> list[Question]:
    """What is asked of class probabilities.

    Two classes: the second. Ordered ones: whether the outcome is above each threshold. Others:
    each class against the rest, the six most frequent ones, and whether the most probable class
    is the right one.
    """
    probs, code = class_probabilities(evidence)
    labels = evidence.classes
    names = [
        printable(name, 30) for name in (labels if labels is not None else range(len(probs.T)))
    ]
    if probs.shape[1] == 2:
        return [Question(names[1], (code == 1).astype(np.float64), probs[:, 1])]
    if evidence.likelihood.name == "ordinal":
        above = probs[:, ::-1].cumsum(1)[:, ::-1]
        return [
            Question(f"{names[k]} or more", (code >= k).astype(np.float64), above[:, k].clip(0, 1))
            for k in range(1, min(probs.shape[1], MOST + 1))
        ]
    weight = evidence.weight.numpy()
    frequent = np.argsort(-np.bincount(code, weight, probs.shape[1]), kind="stable")[:MOST]
    found = [
        Question(names[k], (code == k).astype(np.float64), probs[:, k]) for k in sorted(frequent)
    ]
    top = probs.argmax(1)
    return [*found, Question("the predicted class", (top == code).astype(np.float64), probs.max(1))]


def class_probabilities(evidence: Evidence) -> tuple[Numbers, NDArray[np.intp]]:
    """Predicted probabilities ``(N, K)`` and the codes of the outcomes ``(N,)``."""
    likelihood = evidence.distribution
    assert likelihood is not None
    with torch.no_grad():
        probs: torch.Tensor = likelihood.probs  # type: ignore[attr-defined]
    if probs.ndim == 1:
        probs = torch.stack([1 - probs, probs], 1)
    return probs.double().numpy(), evidence.value.long().numpy().astype(np.intp)
