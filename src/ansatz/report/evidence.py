"""What a report is drawn from: a fitted model and rows that it never saw."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import Column
from ansatz.figures.section import Chapter, Table
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model
from ansatz.likelihoods import Distribution, Likelihood
from ansatz.registry import load

if TYPE_CHECKING:
    from ansatz.fitting.job import Job
    from ansatz.fitting.model import Model
    from ansatz.report.baselines import Forecast
    from ansatz.report.outcome_report import OutcomeReport


class Unit(NamedTuple):
    """What an example is called."""

    one: str
    many: str

    @property
    def an(self) -> str:
        """The singular with its article."""
        return f"{'an' if self.one[0] in 'aeio' else 'a'} {self.one}"


class Novelty(NamedTuple):
    """How far each row lies from the training rows."""

    value: NDArray[np.float64]  # ``(N,)``
    name: str  # for an axis
    title: str  # in one word
    meaning: str  # in a sentence


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


class Learned(NamedTuple):
    """The rows that the model learned from."""

    X: Any  # as sections take them: a frame, grids
    y: Any  # as given
    weight: NDArray[np.float64]
    offset: NDArray[np.float64] | None
    job: Job  # the same as the pipeline reads it, with group and time


@dataclass
class Evidence:
    """A fitted model on held-out rows, with everything that a section of a report may ask for.

    Args:
        model: fitted.
        X: the test rows as sections take them: a frame, grids.
        y: their outcomes, as given.
        outcome: the same as the likelihood takes them, ``(N, ...)``.
        value: what ``distribution`` is evaluated by, ``(N, ...)``: ``outcome`` unless part of that
            is known beforehand, as the number of trials is.
        weight: ``(N,)`` frequency weights.
        offset: ``(N,)``, known parts of the linear predictor, or None.
        group: rows alike in it belong together, or None.
        time: orders the rows, or None.
        likelihood: the likelihood.
        distribution: the predictive as served; None for a loss without a likelihood.
        point: predictions, ``(N, ...)``; classes as codes.
        seed: of everything random in the report.
        learn: the rows learned from, where they are at hand.
        fit: what the fit recorded about itself.
        columns: what each feature is.
        rows: the numbers of the test rows in their table, from 1.
        job: the test rows as the pipeline reads them.
        name: of the model, for titles.
        origin: what the rows were read from.
        settings: what was asked of the report: costs, refits.
        total: test rows that there were, where these are a sample of them.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report import gather
        >>> x = np.linspace(0, 1, 40).reshape(-1, 1)
        >>> model = Regressor(network="linear").fit(x[::2], x[::2, 0])
        >>> evidence = gather(model, x[1::2], x[1::2, 0])
        >>> evidence.point.shape, evidence.columns[0].name
        ((20,), 'x0')
    """

    model: Model
    X: Any
    y: Any
    outcome: Tensor
    value: Tensor
    weight: Tensor
    offset: NDArray[np.float64] | None
    group: NDArray[Any] | None
    time: NDArray[Any] | None
    likelihood: Likelihood
    distribution: Distribution | None
    point: NDArray[Any]
    rows: NDArray[np.int64]
    job: Job
    seed: int = 0
    learn: Learned | None = None
    fit: dict[str, Any] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    name: str = "model"
    origin: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    total: int | None = None
    kept: dict[str, Any] = field(default_factory=dict, repr=False)  # what sections share

    @property
    def axis(self) -> str:
        """Where an outcome sits: on a row, or on each element of an example."""
        return self.model.axis

    @cached_property
    def contribution(self) -> Contribution:
        """What the structure of the rows contributes to the report."""
        return contribution(self.model.structure)

    @cached_property
    def outcome_report(self) -> "OutcomeReport":
        """What the outcomes contribute to the report."""
        found: OutcomeReport = load(self.model.outcome.report)()
        return found

    @property
    def unit(self) -> Unit:
        """What a row is called: a row, an image."""
        return self.contribution.unit(self.model)

    @property
    def target(self) -> str:
        """What the outcome is called."""
        column_roles = self.model.column_roles
        if column_roles is not None:
            return str(column_roles.outcome_name)
        return ", ".join(self.model.outcome.names or ["y"])

    @property
    def classes(self) -> NDArray[Any] | None:
        """The labels of the classes that outcomes are codes of, or None."""
        is_one = not self.job.target.event  # an order of labels is not one of them
        return self.model.outcome.labels if is_one else None

    @property
    def is_censored(self) -> bool:
        """Whether outcomes may be known in part."""
        return bool(self.model.outcome.is_censored)

    def predictive(self, X: Any = None) -> Predictive:
        """The served predictive of the test rows."""
        if X is None and "raw" in self.kept:
            return Predictive(self.likelihood, self.kept["raw"])
        rows = self.contribution.inputs(self.X if X is None else X, self.job)
        return self.model.predictive(rows, self.job.offset, notes=[])

    def row_losses(self, X: Any = None) -> Tensor:
        """The loss of each test row, ``(N,)``, the mean over its targets; the nll of a likelihood."""
        return self.model.outcome.row_losses(self.predictive(X), self.outcome)
