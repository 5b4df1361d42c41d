"""Predicted masks over their images, from the best to the worst."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz.figures.section import Section, Text
from ansatz.report import image_overlays
from ansatz.report.evidence import Evidence
from ansatz.report.grid_network import names_of
from ansatz.report.grid_pictures import shown_late, slices_of

NOTES = {
    "signals": "Signals are drawn as curves, masks as bands behind them.",
    "volumes": "Of volumes the middle slice is shown and judged here.",
}


def section(evidence: Evidence) -> Section | None:
    """Overlays of the best, the median and the worst case, and where an ensemble disagrees.

    Args:
        evidence: of a model of masks on its test images.

    Example:
        >>> import numpy as np
        >>> from ansatz import Segmenter
        >>> from ansatz.report import gather
        >>> from ansatz.report.mask_overlays import section
        >>> images = np.random.default_rng(0).normal(size=(6, 8, 8)).astype(np.float32)
        >>> model = Segmenter(network="linear_pixels", epochs=1).fit(images, images > 0)
        >>> section(gather(model, images, images > 0)).title
        'Masks, from the best to the worst'
    """
    truth = slices_of(evidence.outcome.numpy())
    classes = [] if evidence.classes is None else [str(name) for name in evidence.classes]

    def disagree(rows: NDArray[Any]) -> NDArray[Any]:
        model: Any = evidence.model
        return slices_of(model.between_entropy(evidence.X[rows]))

    made = image_overlays.section(
        shown_late(evidence.X),
        np.maximum(truth, 0),
        slices_of(evidence.point),
        classes,
        labelled=truth >= 0,
        names=names_of(evidence),
        disagreement=disagree if evidence.model.inference == "ensemble" else None,
    )
    if made is not None and evidence.unit in NOTES:
        made.parts.append(Text(NOTES[evidence.unit], "note"))
    return made
