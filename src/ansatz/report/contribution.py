"""What a structure contributes to a report: chapters, words, answers about rows."""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import Column
from ansatz.figures.section import Chapter, Table
from ansatz.likelihoods import Likelihood
from ansatz.metrics import Estimate
from ansatz.registry import load
from ansatz.spec import InputSpec
from ansatz.structures.registry import registry

if TYPE_CHECKING:
    from ansatz.fitting.job import Job
    from ansatz.report.evidence import Evidence
    from ansatz.report.judged import Judged
    from ansatz.report.paired_scores import ScorePair
    from ansatz.report.rivals import Forecast

Axis = Literal["row", "element"]  # one outcome per example, or one for each of its elements


class Unit(NamedTuple):
    """What an example is called.

    Example:
        >>> from ansatz.report.contribution import Unit
        >>> Unit("image", "images").an
        'an image'
    """

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

    Example:
        >>> from ansatz.report.contribution import Novelty
        >>> Novelty._fields
        ('value', 'name', 'title', 'meaning')
    """

    value: NDArray[np.float64]
    name: str
    title: str
    meaning: str


class Elements(Protocol):
    """Scores outcomes that sit on the elements of an example.

    Example:
        >>> from ansatz.report.contribution import contribution
        >>> contribution("grid").elements().__class__.__name__
        'Masks'
    """

    def losses(self, law: Likelihood, raw: Tensor, y: Tensor) -> Tensor:
        """The mean loss of the labelled elements of each example, ``(N,)``."""
        ...

    def estimates(self, evidence: "Evidence", forecast: "Forecast") -> dict[str, Estimate]:
        """Metrics as means of examples, with the influence of each."""
        ...

    def calibration(self, evidence: "Evidence") -> str:
        """Whether probabilities of elements are right, in a sentence."""
        ...

    def constant(self, law: Likelihood, learn: "Job", test: "Job") -> tuple[Likelihood, Tensor]:
        """The constant model of the training elements: its law, and its numbers for ``test``."""
        ...

    def score_pair(self, a: "Judged", b: "Judged") -> "ScorePair":
        """The scores that two models are compared by, example by example."""
        ...

    def score_beside(self, a: "Judged", b: "Judged") -> "ScorePair":
        """A second score."""
        ...


class Contribution:
    """What a structure contributes; these are the answers of one that adds nothing.

    Attributes:
        caveat: the last sentence of the page.
        draws_confusion: whether a chapter draws the confusion matrix; else it is a table.
        no_novelty: why there is no :meth:`novelty`.

    Example:
        >>> from ansatz.report.contribution import Contribution
        >>> Contribution().chapters("row")
        []
    """

    caveat = "It describes the model, not causes."
    draws_confusion = False
    no_novelty = "training rows are not at hand"

    def unit(self, spec: InputSpec) -> Unit:
        """What an example is called."""
        return Unit("example", "examples")

    def chapters(self, axis: Axis) -> list[Chapter]:
        """The chapters of models with outcomes on this axis."""
        return []

    def sample(self, model: Any, job: "Job", *, seed: int) -> NDArray[np.intp] | None:
        """The rows that a report looks at, in order; None for all of them."""
        return None

    def features(self, rows: Any) -> Any:
        """Rows as sections take them."""
        return rows

    def inputs(self, features: Any, job: "Job") -> Any:
        """Features as the fitted model takes them."""
        return features

    def columns(self, model: Any, features: Any) -> list[Column]:
        """What each feature is, where features are columns."""
        return []

    def has_features(self, evidence: "Evidence") -> bool:
        """Whether there is anything to predict from."""
        return True

    def linear(self, law: Likelihood, job: "Job", seed: int) -> tuple[Any, list[str]] | None:
        """The linear model of a law, and what its fit had to say; None where there is none."""
        return None

    def baselines(self, evidence: "Evidence") -> "tuple[list[Forecast], list[str]]":
        """Further models beside the linear and the constant one, and what is said about them."""
        return [], []

    def layers(self, evidence: "Evidence") -> list[Table]:
        """The layers of the network, where they are shown."""
        return []

    def novelty(self, evidence: "Evidence") -> Novelty | None:
        """How far each test row lies from the training rows."""
        return None

    def elements(self) -> Elements | None:
        """Scores of outcomes on elements, where there may be any."""
        return None


def contribution(structure: str) -> Contribution:
    """What the structure of this name contributes.

    Example:
        >>> from ansatz.report.contribution import contribution
        >>> contribution("vector").caveat
        'Importance and effects describe predictions, not causes.'
    """
    place = getattr(registry.get(structure), "report", None)
    found: Contribution = Contribution() if place is None else load(place)()
    return found
