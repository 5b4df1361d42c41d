"""What signals, images and volumes contribute to a report."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ansatz.figures.section import Chapter, Table
from ansatz.likelihoods import Likelihood
from ansatz.report.contribution import Axis, Contribution, Unit
from ansatz.spec import InputSpec
from ansatz.structures.grid.baselines import fit_linear_grid
from ansatz.structures.grid.report.masks import Masks
from ansatz.structures.grid.report.network import layer_table
from ansatz.structures.grid.report.sample import sample_rows
from ansatz.structures.grid.report.units import UNITS

if TYPE_CHECKING:
    from ansatz.fitting.job import Job
    from ansatz.report.evidence import Evidence

_HERE = "ansatz.structures.grid.report"
_ALL = [
    Chapter(50, "filters and feature maps", f"{_HERE}.filters:section"),
    Chapter(51, "perturbations and symmetries", f"{_HERE}.robustness:section"),
    Chapter(90, "the data", f"{_HERE}.examples:section"),
]
_CHAPTERS: dict[Axis, list[Chapter]] = {
    "row": [
        Chapter(40, "classes taken for others", f"{_HERE}.confusion:section"),
        Chapter(41, "confident mistakes", f"{_HERE}.mistakes:section"),
        Chapter(42, "best and worst examples", f"{_HERE}.cases:section"),
        Chapter(43, "what predictions rest on", f"{_HERE}.saliency:section"),
    ],
    "element": [
        Chapter(40, "masks over their images", f"{_HERE}.overlays:section"),
        Chapter(41, "scores of each class", f"{_HERE}.mask_classes:section"),
        Chapter(42, "reliability of the cells' probabilities", f"{_HERE}.mask_reliability:section"),
        Chapter(43, "recalibration", f"{_HERE}.mask_recalibration:section"),
    ],
}


class GridReport(Contribution):
    """Adds pictures of examples, attributions, filters and certificates of symmetry.

    Example:
        >>> from ansatz.report.contribution import contribution
        >>> contribution("grid").chapters("element")[0].words
        'masks over their images'
    """

    caveat = "What predictions rest on describes the network, not causes."
    draws_confusion = True
    no_novelty = "grids have no leverage"

    def unit(self, spec: InputSpec) -> Unit:
        """Signals, images or volumes, by the axes of their cells."""
        return UNITS[len(spec.size)]

    def chapters(self, axis: Axis) -> list[Chapter]:
        """The chapters on examples, or on masks, and those on the network."""
        return _CHAPTERS[axis] + _ALL

    def sample(self, model: Any, job: "Job", *, seed: int) -> NDArray[np.intp] | None:
        """As many examples as take a minute of arithmetic and fit in memory."""
        return sample_rows(model, job, seed=seed)

    def linear(self, law: Likelihood, job: "Job", seed: int) -> tuple[Any, list[str]]:
        """A linear map of the cells."""
        return fit_linear_grid(law, job, seed), []

    def layers(self, evidence: "Evidence") -> list[Table]:
        """The layers with their shapes and receptive fields."""
        return [layer_table(evidence)]

    def elements(self) -> Masks:
        """Scores of masks."""
        return Masks()
