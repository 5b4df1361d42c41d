"""The most confident mistakes about grids, as pictures."""

from ansatz.figures.section import Section
from ansatz.report import image_mistakes
from ansatz.report.class_questions import class_probabilities
from ansatz.report.evidence import Evidence
from ansatz.report.grid_network import names_of
from ansatz.report.grid_pictures import shown_late


def section(evidence: Evidence) -> Section | None:
    """Mistakes in the order of their confidence; None where outcomes are no classes.

    Args:
        evidence: of a model of grids on its test rows.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.report import gather
        >>> from ansatz.report.grid_mistakes import section
        >>> images = np.random.default_rng(0).normal(size=(20, 12, 12)).astype(np.float32)
        >>> model = Classifier(network="linear_grid", epochs=1).fit(images, np.arange(20) % 2)
        >>> section(gather(model, images, np.arange(20) % 2)).title
        'The most confident mistakes'
    """
    if evidence.classes is None or evidence.distribution is None:
        return None
    probs, code = class_probabilities(evidence)
    classes, names = list(evidence.classes), names_of(evidence)
    return image_mistakes.section(shown_late(evidence.X), code, probs, classes, names=names)
