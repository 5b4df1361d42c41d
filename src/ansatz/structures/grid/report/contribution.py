"""What signals, images and volumes contribute to a report."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ansatz.figures.section import Chapter, Table
from ansatz.report.evidence import Contribution, Unit
from ansatz.structures.grid.report.network import layer_table
from ansatz.structures.grid.report.pictures import UNITS, sample_rows

if TYPE_CHECKING:
    from ansatz.fitting.job import Job
    from ansatz.fitting.model import Model
    from ansatz.report.evidence import Evidence

_HERE = "ansatz.structures.grid.report"
_ALL = [
    Chapter(50, "filters and feature maps", f"{_HERE}.network:section"),
    Chapter(51, "perturbations and symmetries", f"{_HERE}.robustness:section"),
    Chapter(90, "the data", f"{_HERE}.examples:section"),
]
_CHAPTERS: dict[str, list[Chapter]] = {
    "row": [
        Chapter(40, "classes taken for others", f"{_HERE}.confusion:section"),
        Chapter(41, "confident mistakes", f"{_HERE}.examples:confident_mistakes"),
        Chapter(42, "best and worst examples", f"{_HERE}.examples:best_and_worst"),
        Chapter(43, "what predictions rest on", f"{_HERE}.saliency:section"),
    ],
    "element": [Chapter(40, "masks over their images", f"{_HERE}.overlays:section")],
}


class GridReport(Contribution):
    """Adds pictures of examples, attributions, filters and certificates of symmetry."""

    caveat = "What predictions rest on describes the network, not causes."
    draws_confusion = True
    no_novelty = "grids have no leverage"

    def unit(self, model: "Model") -> Unit:
        """Signals, images or volumes, by the axes of their cells."""
        return UNITS[len(model.encoder.spec.size)]

    def chapters(self, axis: str) -> list[Chapter]:
        """The chapters on examples, or on masks, and those on the network."""
        return _CHAPTERS[axis] + _ALL

    def sample(self, model: "Model", job: "Job", *, seed: int) -> NDArray[np.intp] | None:
        """As many examples as take a minute of arithmetic and fit in memory."""
        return sample_rows(model, job, seed=seed)

    def layers(self, evidence: "Evidence") -> list[Table]:
        """The layers with their shapes and receptive fields."""
        return [layer_table(evidence)] if evidence.model.posterior.networks else []
