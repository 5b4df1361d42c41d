"""Supplies what signals, images and volumes add to a report."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ansatz.figures.section import Chapter, Table
from ansatz.report.evidence import Contribution, ExampleNoun
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
        Chapter(40, "confused classes", f"{_HERE}.confusion:section"),
        Chapter(41, "confident mistakes", f"{_HERE}.examples:confident_mistakes"),
        Chapter(42, "best and worst examples", f"{_HERE}.examples:best_and_worst"),
        Chapter(43, "attributions", f"{_HERE}.saliency:section"),
    ],
    "element": [Chapter(40, "masks over images", f"{_HERE}.overlays:section")],
}


class GridReport(Contribution):
    """The contribution of grids: pictures, attributions, filters, certificates of symmetry."""

    caveat = "Attributions describe the network, not causes."
    draws_confusion = True
    no_novelty = "grids have no leverage"

    def unit(self, model: "Model") -> ExampleNoun:
        """Names signals, images or volumes, by the number of axes."""
        return UNITS[len(model.encoder.spec.size)]

    def chapters(self, axis: str) -> list[Chapter]:
        """Lists the chapters on examples, or on masks, and those on the network."""
        return _CHAPTERS[axis] + _ALL

    def sample(self, model: "Model", job: "Job", *, seed: int) -> NDArray[np.intp] | None:
        """Samples the examples within time and memory limits."""
        return sample_rows(model, job, seed=seed)

    def layers(self, evidence: "Evidence") -> list[Table]:
        """Lists the layers with their shapes and receptive fields."""
        return [layer_table(evidence)] if evidence.model.posterior.networks else []
