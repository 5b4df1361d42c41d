"""What a structure contributes to a report: chapters, words, answers about rows."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.data import Column
from ansatz.figures.section import Chapter, Table
from ansatz.fitting.contracts.structure import Structure
from ansatz.registry import load

if TYPE_CHECKING:
    from ansatz.fitting.job import Job
    from ansatz.fitting.model import Model
    from ansatz.report.baselines import Forecast
    from ansatz.report.evidence import Evidence


class Unit(NamedTuple):
    """What an example is called."""

    one: str
    many: str

    @property
    def an(self) -> str:
        """The singular with its article."""
        return f"{'an' if self.one[0] in 'aeio' else 'a'} {self.one}"


class Novelty(NamedTuple):
    """How far each row lies from the training rows.

    Args:
        value: ``(N,)``.
        name: for an axis.
        title: in one word.
        meaning: in a sentence.
    """

    value: NDArray[np.float64]
    name: str
    title: str
    meaning: str


class Contribution:
    """What a structure contributes; these are the answers of one that adds nothing.

    Attributes:
        caveat: the last sentence of the page.
        draws_confusion: whether a chapter draws the confusion matrix; else it is a table.
        no_novelty: why there is no :meth:`novelty`.
    """

    caveat = "It describes the model, not causes."
    draws_confusion = False
    no_novelty = "training rows are not at hand"

    def unit(self, model: "Model") -> Unit:
        """What an example is called."""
        return Unit(*model.structure.unit)

    def chapters(self, axis: str) -> list[Chapter]:
        """The chapters of models with outcomes on this axis."""
        return []

    def sample(self, model: "Model", job: "Job", *, seed: int) -> NDArray[np.intp] | None:
        """The rows that a report looks at, in order; None for all of them."""
        return None

    def features(self, rows: Any) -> Any:
        """Rows as sections take them."""
        return rows

    def inputs(self, features: Any, job: "Job") -> Any:
        """Features as the fitted model takes them."""
        return features

    def columns(self, model: "Model", features: Any) -> list[Column]:
        """What each feature is, where features are columns."""
        return []

    def has_features(self, evidence: "Evidence") -> bool:
        """Whether there is anything to predict from."""
        return True

    def baselines(self, evidence: "Evidence") -> "tuple[list[Forecast], list[str]]":
        """Further models beside the linear and the constant one, and what is said about them."""
        return [], []

    def layers(self, evidence: "Evidence") -> list[Table]:
        """The layers of the network, where they are shown."""
        return []

    def novelty(self, evidence: "Evidence") -> Novelty | None:
        """How far each test row lies from the training rows."""
        return None


def contribution(structure: Structure | type[Structure]) -> Contribution:
    """What a structure contributes."""
    found: Contribution = load(structure.report)()
    return found
