"""Holds the evidence of a report: a fitted model and held-out rows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

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
    from ansatz.report.baselines import Forecast
    from ansatz.report.outcome_report import OutcomeReport

T = TypeVar("T")


class ExampleNoun(NamedTuple):
    """The name of an example, singular and plural."""

    one: str
    many: str

    @property
    def an(self) -> str:
        """The singular with its article."""
        return f"{'an' if self.one[0] in 'aeio' else 'a'} {self.one}"


class Novelty(NamedTuple):
    """The distance of each row from the training rows."""

    value: NDArray[np.float64]  # ``(N,)``
    name: str  # for an axis
    title: str  # in one word
    meaning: str  # in a sentence


class Contribution:
    """The contribution of a structure to reports; the base class adds nothing.

    Attributes:
        caveat: the last sentence of the page.
        draws_confusion: whether a chapter draws the confusion matrix; else it is a table.
        no_novelty: why there is no :meth:`novelty`.
    """

    caveat = "It describes the model, not causes."
    draws_confusion = False
    no_novelty = "the training rows are not available"

    def unit(self, model: "Model") -> ExampleNoun:
        """Names an example."""
        return ExampleNoun(*(model.outcome.unit or model.structure.unit))

    def chapters(self, axis: str) -> list[Chapter]:
        """Lists the chapters of models with outcomes on this axis."""
        return []

    def sample(self, model: "Model", job: "Job", *, seed: int) -> NDArray[np.intp] | None:
        """Samples the rows of a report, in order; None for all of them."""
        return None

    def features(self, rows: Any) -> Any:
        """Converts rows for the sections."""
        return rows

    def inputs(self, features: Any, job: "Job") -> Any:
        """Converts features for the fitted model."""
        return features

    def columns(self, model: "Model", features: Any) -> list[Column]:
        """Describes each feature, where features are columns."""
        return []

    def has_features(self, evidence: "Evidence") -> bool:
        """Tests whether there are any features."""
        return True

    def baselines(self, evidence: "Evidence") -> "tuple[list[Forecast], list[str]]":
        """Fits further baselines beside the linear and the constant model, with notes."""
        return [], []

    def layers(self, evidence: "Evidence") -> list[Table]:
        """Lists the layers of the network, where they are shown."""
        return []

    def novelty(self, evidence: "Evidence") -> Novelty | None:
        """Computes the distance of each test row from the training rows."""
        return None


def contribution(structure: Structure | type[Structure]) -> Contribution:
    """Makes the contribution of a structure."""
    found: Contribution = load(structure.report)()
    return found


class TrainingRows(NamedTuple):
    """The training rows of the model."""

    X: Any  # a frame or grids
    y: Any  # as given
    weight: NDArray[np.float64]
    offset: NDArray[np.float64] | None
    job: Job  # as the pipeline reads them, with group and time


@dataclass
class Evidence:
    """A fitted model on held-out rows, with everything that a section of a report needs.

    Args:
        model: the fitted model.
        X: the test rows: a frame or grids.
        y: their outcomes, as given.
        outcome: the outcomes as the likelihood takes them, ``(N, ...)``.
        value: the outcomes as ``distribution`` takes them, ``(N, ...)``: without what is known
            beforehand, such as the number of trials.
        weight: ``(N,)`` frequency weights.
        offset: ``(N,)``, known parts of the linear predictor, or None.
        group: group labels of the rows, or None.
        time: times of the rows, or None.
        likelihood: the likelihood.
        distribution: the predicted distributions; None for a loss.
        point: predictions, ``(N, ...)``; classes as codes.
        seed: of everything random in the report.
        training: the training rows, if available.
        fit: the record of the fit.
        columns: the features.
        rows: the numbers of the test rows in their table, from 1.
        job: the test rows as the pipeline reads them.
        name: of the model, for titles.
        origin: what the rows were read from.
        settings: options of the report: costs, refits.
        total: number of all test rows, if these are a sample.
        trained_on: number of these rows that the model was trained on; None where it is not known.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report import gather
        >>> x = np.linspace(0, 1, 40).reshape(-1, 1)
        >>> model = Regressor(network="linear").fit(x[::2], x[::2, 0])
        >>> evidence = gather(model, x[1::2], x[1::2, 0])
        >>> evidence.point.shape, evidence.columns[0].name
        ((20,), 'x1')
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
    training: TrainingRows | None = None
    fit: dict[str, Any] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    name: str = "model"
    origin: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    total: int | None = None
    trained_on: int | None = 0
    kept: dict[str, Any] = field(
        default_factory=dict, repr=False
    )  # computed once for several sections

    def once(self, key: str, compute: Callable[[], T]) -> T:
        """Computes a result that several sections need, or returns the stored one."""
        if key not in self.kept:
            self.kept[key] = compute()
        found: T = self.kept[key]
        return found

    @property
    def axis(self) -> str:
        """Whether an outcome belongs to a row or to each element of an example."""
        return self.model.axis

    @cached_property
    def contribution(self) -> Contribution:
        """The contribution of the structure to the report."""
        return contribution(self.model.structure)

    @cached_property
    def outcome_report(self) -> "OutcomeReport":
        """The contribution of the outcome to the report."""
        found: OutcomeReport = load(self.model.outcome.report)()
        return found

    @property
    def unit(self) -> ExampleNoun:
        """The name of an example: a row, an image."""
        return self.contribution.unit(self.model)

    @property
    def rows_called(self) -> str:
        """What the page calls the rows: test rows only where the model was not trained on them."""
        many = self.unit.many
        return f"test {many}" if self.trained_on == 0 else f"{many} that were given"

    @property
    def target(self) -> str:
        """The name of the outcome."""
        column_roles = self.model.column_roles
        if self.model.outcome.is_x:
            return "x"
        if column_roles is not None:
            return str(column_roles.outcome_name)
        return ", ".join(self.model.outcome.names or ["y"])

    @property
    def classes(self) -> NDArray[Any] | None:
        """The labels of the classes that outcomes are codes of, or None."""
        is_one = not self.job.target.event  # an order of labels is not a class
        return self.model.outcome.labels if is_one else None

    @property
    def is_censored(self) -> bool:
        """Whether outcomes may be censored."""
        return bool(self.model.outcome.is_censored)

    @property
    def loss_name(self) -> str:
        """The name of the loss of a row: nll, or loss where there is no likelihood."""
        has_nll = self.likelihood.has_distribution or self.classes is not None
        return "nll" if has_nll else "loss"

    def predictive(self, X: Any = None) -> Predictive:
        """Predicts the test rows, or the same rows with other features X."""
        if X is None and "raw" in self.kept:
            return Predictive(self.likelihood, self.kept["raw"])
        rows = self.contribution.inputs(self.X if X is None else X, self.job)
        return self.model.predictive(rows, self.job.offset, notes=[])

    def row_losses(self, X: Any = None) -> Tensor:
        """Computes the loss of each test row, ``(N,)``, the mean over its targets."""
        return self.model.outcome.row_losses(self.predictive(X), self.outcome)
