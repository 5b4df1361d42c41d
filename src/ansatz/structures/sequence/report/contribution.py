"""Supplies what texts and signals of unequal length add to a report."""

from typing import TYPE_CHECKING

from ansatz.data.sequences.sequences import Texts
from ansatz.figures.section import Chapter
from ansatz.report.evidence import Contribution, ExampleNoun

if TYPE_CHECKING:
    from ansatz.fitting.model import Model

_HERE = "ansatz.structures.sequence.report"
_CHAPTERS = [
    Chapter(40, "coloured texts", f"{_HERE}.coloured_texts:section"),
    Chapter(41, "lengths", f"{_HERE}.lengths:section"),
    Chapter(42, "attention", f"{_HERE}.attention:section"),
]


class SequenceReport(Contribution):
    """The contribution of texts: coloured examples, calibration by length, attention maps."""

    caveat = "Attributions describe the network, not causes."
    no_novelty = "texts have no leverage"

    def unit(self, model: "Model") -> ExampleNoun:
        """Names texts; signals are sequences."""
        if getattr(model.encoder, "tokens", None) is None:
            return ExampleNoun("sequence", "sequences")
        return ExampleNoun(*model.structure.unit)

    def chapters(self, axis: str) -> list[Chapter]:
        """Lists the chapters on whole texts; outcomes of steps have none of these."""
        return _CHAPTERS if axis == "row" else []


def are_texts(rows: object) -> bool:
    """Tests whether the rows of a report are texts."""
    return isinstance(rows, Texts)
