"""What predictions of classes rest on, on some test images."""

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.report import image_saliency
from ansatz.report.class_questions import class_probabilities
from ansatz.report.evidence import Evidence
from ansatz.report.grid_network import ClassScores, inputs_of, one_network
from ansatz.report.grid_pictures import pictures_of
from ansatz.report.grid_sample import affordable
from ansatz.report.section import Section, Text

WORK = 5e10  # multiply-adds of all attributions
TIMES = 32 * 3 + 256  # predictions: gradients along a path, and covered windows


def section(evidence: Evidence) -> Section | None:
    """Attributions of right answers and of confident mistakes; None but for classes of images.

    Args:
        evidence: of a model of grids on its test rows.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.report import gather
        >>> from ansatz.report.grid_saliency import section
        >>> images = np.random.default_rng(0).normal(size=(20, 12, 12)).astype(np.float32)
        >>> model = Classifier(network="linear_grid", epochs=1).fit(images, np.arange(20) % 2)
        >>> section(gather(model, images, np.arange(20) % 2)).title
        'What predictions rest on'
    """
    if evidence.classes is None or evidence.distribution is None or evidence.unit != "images":
        return None
    probs, code = class_probabilities(evidence)
    network = ClassScores(one_network(evidence))
    count = affordable(evidence, WORK, least=2, most=image_saliency.SHOWN, times=TIMES)
    rows = _chosen(code, probs, count, evidence.seed)
    x = inputs_of(evidence, rows)
    with torch.no_grad():
        if network(x[:1]).shape[1] != probs.shape[1]:
            return None  # thresholds of ordered classes are no scores of classes
    top = torch.as_tensor(probs[rows].argmax(1))
    maps = image_saliency.attributions(network, x, top)  # 0: the mean of the channels
    baseline = "uniformly grey" if x.shape[1] == 1 else "uniform, averagely coloured"
    made = image_saliency.section(
        pictures_of(evidence.X[rows]),
        maps,
        code[rows],
        probs[rows],
        list(evidence.classes),
        baseline=baseline,
    )
    if made is not None:
        made.parts.append(Text(_words(evidence, code, probs, rows), "note"))
    return made


def _chosen(
    code: NDArray[np.intp], probs: NDArray[np.float64], count: int, seed: int
) -> NDArray[np.intp]:
    """Right answers at random, and as many of the most confident mistakes."""
    top = probs.argmax(1)
    wrong = np.flatnonzero(top != code)
    wrong = wrong[np.argsort(-probs[wrong, top[wrong]], kind="stable")]
    right = np.random.default_rng(seed).permutation(np.flatnonzero(top == code))
    mistakes = wrong[: max(count // 2, count - len(right))]
    return np.concatenate([right[: count - len(mistakes)], mistakes])


def _words(
    evidence: Evidence, code: NDArray[np.intp], probs: NDArray[np.float64], rows: NDArray[np.intp]
) -> str:
    mistakes = int((probs[rows].argmax(1) != code[rows]).sum())
    said = f"{len(rows) - mistakes} right answers drawn at random"
    if mistakes:
        said += f" and the {mistakes} most confident mistakes"
    members = len(getattr(evidence.model.model_, "members", [None]))
    return f"{said}.{' Of an ensemble its first network is explained.' if members > 1 else ''}"
