"""A fitted model: structure, encoder, posterior and outcome in one piece."""

import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data import Column
from ansatz.errors import UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.encoder import Encoder
from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.outcome import Metrics, OfClasses, OfTimes, Outcome
from ansatz.fitting.contracts.rows import Rows
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job
from ansatz.fitting.recalibration import Recalibration
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.task import Task
from ansatz.likelihoods import Likelihood
from ansatz.linear import LinearFit
from ansatz.training import History

if TYPE_CHECKING:
    from ansatz.fitting.summaries import SavedSummary


class Given(NamedTuple):
    """Rows to predict, with what is known beside their features."""

    rows: Rows
    offset: Tensor | None = None
    trials: NDArray[np.float64] | None = None


@dataclass
class Model:
    """What a fit leaves behind; one class for every structure, outcome and inference.

    Args:
        task: what was fitted; its outcome knows the classes.
        posterior: what is known about the weights, the encoder in it.
        features: what the rows are called, from :meth:`Rows.describe`.
        recipe: of the training; None for a model that was solved.
        history: of the training.
        has_offset: whether it was fitted with an offset, and needs one to predict.
        linear: the exact linear fits, with standard errors, one for each target.
        iterations: steps of the training, or of the solver.
        out_of_fold: what was said of training rows by networks that left them out.
        recalibration: of the predictive.
        conformal_scores: of rows that nothing else has seen.
        uses: the column roles of a model of ``ansatz.fit``.
        row_keys: hashes of the training rows.
        evidence: what ``ansatz.fit`` recorded.
        summary: that was saved with the model.
        optimizer_state: from which ``partial_fit`` goes on.
        notes: sentences about the training.
    """

    task: Task
    posterior: Posterior
    features: dict[str, Any]
    recipe: Recipe | None = None
    history: History | None = None
    has_offset: bool = False
    linear: list[LinearFit] = field(default_factory=list)
    iterations: int = 0
    out_of_fold: Any = None
    recalibration: Recalibration | None = None
    conformal_scores: Tensor | None = None
    column_roles: ColumnRoles | None = None
    row_keys: NDArray[np.uint64] | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    summary: "SavedSummary | None" = None
    optimizer_state: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()

    @property
    def structure(self) -> Structure:
        """What x looks like."""
        return self.task.structure

    @property
    def outcome(self) -> Outcome:
        """What is predicted."""
        return self.task.outcome

    @property
    def of_classes(self) -> OfClasses:
        """The outcome, where its labels have probabilities."""
        return cast(OfClasses, self.outcome)

    @property
    def of_times(self) -> OfTimes:
        """The outcome, where it is a time until an event."""
        return cast(OfTimes, self.outcome)

    @property
    def labels(self) -> NDArray[Any]:
        """What the codes of the outcomes stand for; only where there are codes."""
        assert self.outcome.labels is not None
        return self.outcome.labels

    @property
    def encoder(self) -> Encoder:
        """From rows to inputs."""
        return self.posterior.encoder

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of the predictive."""
        return self.posterior.likelihood

    @property
    def likelihood_name(self) -> str:
        """The likelihood as the user would say it: a censored Weibull distribution is weibull."""
        likelihood = self.likelihood
        return str(getattr(likelihood, "likelihood", likelihood).name)

    @property
    def network_name(self) -> str:
        """As the registry spells it; empty where there is no network."""
        return self.posterior.networks[0].name if self.posterior.networks else ""

    @property
    def network(self) -> nn.Module:
        """The trained network; of several, the first."""
        if not self.posterior.networks:
            raise UsageError(f"inference '{self.posterior.name}' has no network.")
        return self.posterior.networks[0].network

    @property
    def parameters(self) -> int:
        """How many numbers the networks hold."""
        return self.posterior.parameters

    @property
    def estimated(self) -> int:
        """How many numbers were estimated: those of a solved model, or a network's weights."""
        return sum(fit.parameters for fit in self.linear) or self.parameters

    @property
    def several(self) -> bool:
        """Whether there are several targets at once."""
        return bool(getattr(self.outcome, "shape", ())) and not self.likelihood.event_ndim

    @property
    def columns(self) -> list[Column] | None:
        """What the columns of a table were taken for; None where there are none."""
        found = self.features.get("columns")
        return None if found is None else [Column.model_validate(each) for each in found]

    @property
    def axis(self) -> str:
        """Where the outcomes sit: on an example, or on its elements."""
        return str(self.outcome.axis)

    @property
    def has_features(self) -> bool:
        """Whether there was anything to predict from."""
        return bool(self.features.get("count", 1))

    def with_options(self, **options: Any) -> "Model":
        """The same model, whose predictions have other options."""
        settings = self.task.settings
        if all(settings.options.get(name) == value for name, value in options.items()):
            return self
        settings = settings.change(options={**settings.options, **options})
        outcome, posterior = copy.copy(self.outcome), copy.copy(self.posterior)
        outcome.choose(settings)
        posterior.options = dict(settings.options)
        task = self.task._replace(outcome=outcome, settings=settings)
        return replace(self, task=task, posterior=posterior)

    def predictive(
        self, rows: Rows, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        """The likelihood of each row's outcome, as it is served."""
        return self.outcome.serve(self.posterior.predictive(rows, offset, notes=notes))

    def constant(self) -> Predictive:
        """The likelihood of a row of which nothing is known, for a model without features."""
        return self.predictive(self.structure.nothing(1))

    def evaluate(self, job: Job, notes: list[str] | None = None) -> Metrics:
        """Every metric that applies, on the rows of a job."""
        said = [] if notes is None else notes
        served = self.predictive(job.rows, job.offset, notes=said)
        found: Metrics = self.outcome.evaluate(served, job.y, job.weight)
        return found

    def log_likelihood(self, job: Job) -> float | None:
        """Of all rows of a job; for Cox the partial one, None for a loss that is not a likelihood."""
        likelihood, raw = self.posterior.predictive(job.rows, job.offset, notes=[])
        if not likelihood.has_distribution:
            return None
        return -float(likelihood.joint_loss(raw, job.y, job.weight).detach().sum())
