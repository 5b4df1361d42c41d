"""Which classes of grids are taken for which."""

from ansatz.figures.section import Section
from ansatz.report import image_confusion
from ansatz.report.class_questions import class_probabilities
from ansatz.report.evidence import Evidence


def section(evidence: Evidence) -> Section | None:
    """The confusion matrix of the test rows as a picture; None where outcomes are no classes.

    Args:
        evidence: of a model of grids on its test rows.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.report import gather
        >>> from ansatz.report.grid_confusion import section
        >>> images = np.random.default_rng(0).normal(size=(20, 12, 12)).astype(np.float32)
        >>> model = Classifier(network="linear_grid", epochs=1).fit(images, np.arange(20) % 2)
        >>> section(gather(model, images, np.arange(20) % 2)).title
        'Which classes are taken for which'
    """
    if evidence.classes is None or evidence.distribution is None:
        return None
    probs, code = class_probabilities(evidence)
    return image_confusion.section(
        code, probs, list(evidence.classes), weight=evidence.weight.numpy()
    )
