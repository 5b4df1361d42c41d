"""Fitted models: trained networks, the point posterior, and the model that holds all of it."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data import Column
from ansatz.errors import ConvergenceError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.inference import Composition, Posterior, Predictive
from ansatz.fitting.contracts.outcome import Metrics, OfClasses, OfTimes, Outcome
from ansatz.fitting.contracts.rows import Encoder, Rows
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job
from ansatz.fitting.recalibration import Recalibration
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.task import Task
from ansatz.likelihoods import Likelihood
from ansatz.linear import Estimates, LinearFit
from ansatz.registry import load
from ansatz.training import History, Supervised

if TYPE_CHECKING:
    from ansatz.fitting.summaries import SavedSummary


class Trained:
    """Encoded inputs in, the likelihood's parameters out."""

    def __init__(
        self,
        network: nn.Module,
        objective: Supervised,
        name: str,
        options: dict[str, Any] | None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.network = copy.deepcopy(network).to("cpu", dtype).eval()
        self.objective = copy.deepcopy(objective).to("cpu", torch.float64).eval()
        self.objective.requires_grad_(False)  # a constant dispersion is no longer learned
        self.name, self.options = name, options
        self.answering: nn.Module = self.network  # or a network made of it, averaged over a group

    @property
    def likelihood(self) -> Any:
        """The likelihood whose parameters these are."""
        return self.objective.likelihood

    @property
    def parameters(self) -> int:
        """The number of trained parameters."""
        modules = (self.network, self.objective)
        return sum(p.numel() for module in modules for p in module.parameters())

    def __call__(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        with torch.no_grad():
            return self.objective.raw(self.answering, inputs, offset).double()

    def tensors(self) -> dict[str, Tensor]:
        """Weights and state by name, as they are saved."""
        return {
            **{f"network.{name}": value for name, value in self.network.state_dict().items()},
            **{f"objective.{name}": value for name, value in self.objective.state_dict().items()},
        }


class PointPosterior:
    """All mass on one weight vector."""

    name: ClassVar[str] = "point"
    keeps_rows: ClassVar[bool] = False

    def __init__(
        self,
        structure: Structure,
        encoder: Encoder,
        trained: Trained,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.structure, self.encoder, self.trained = structure, encoder, trained
        self.options = dict(options or {})

    @property
    def likelihood(self) -> Likelihood:
        likelihood: Likelihood = self.trained.likelihood
        return likelihood

    @property
    def parameters(self) -> int:
        return self.trained.parameters

    @property
    def networks(self) -> Sequence[Trained]:
        return [self.trained]

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        chunks = self.structure.raws(
            [self.trained], self.encoder, rows, offset, notes=notes, options=self.options
        )
        return Predictive(self.likelihood, torch.cat([raw for each in chunks for raw in each]))

    def answer(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        return self.trained(inputs, offset)

    def components(self, rows: Any, offset: Tensor | None = None) -> list[tuple[float, Predictive]]:
        return [(1.0, self.predictive(rows, offset))]

    def without_recalibration(self) -> Self:
        return self

    def at_estimate(self) -> "PointPosterior":
        """The posterior without estimation error: the likelihood at the estimated weights."""
        return PointPosterior(self.structure, self.encoder, self.trained, self.options)

    def composition(self, kind: torch.dtype) -> Composition:
        return Composition([(self.encoder, self.trained)])

    def tensors(self) -> dict[str, Tensor]:
        return self.trained.tensors()

    def record(self) -> dict[str, Any]:
        return {}


class Given(NamedTuple):
    """Rows to predict, with what is known beside their features."""

    rows: Rows
    offset: Tensor | None = None
    trials: NDArray[np.float64] | None = None


@dataclass
class Model:
    """A fitted model; one class for every structure, outcome and inference."""

    task: Task
    posterior: Posterior  # of the weights; the encoder is part of it
    features: dict[str, Any]  # names of the features, from :meth:`Rows.describe`
    recipe: Recipe | None = None  # None for a model that was solved
    history: History | None = None
    has_offset: bool = False  # then it needs one to predict
    linear: list[LinearFit] = field(default_factory=list)  # exact fits, one for each target
    estimates: list[Estimates] = field(default_factory=list)  # of them, which are saved
    iterations: int = 0  # of the training or the solver
    out_of_fold: Any = None  # predictions of rows by networks that left them out
    recalibration: Recalibration | None = None
    conformal_scores: Tensor | None = None  # of rows that nothing else has seen
    column_roles: ColumnRoles | None = None
    row_keys: NDArray[np.uint64] | None = None  # hashes of the training rows
    evidence: dict[str, Any] = field(default_factory=dict)  # what ``ansatz.fit`` recorded
    summary: "SavedSummary | None" = None
    optimizer_state: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    allows_unconverged: bool = False  # whether it answers although its draws have failed

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """The verdict on the draws of its posterior; None where there are no chains."""
        found: Mapping[str, Any] | None = getattr(self.posterior, "verdict", None)
        return found

    @property
    def has_failed(self) -> bool:
        """Whether its draws have failed to converge."""
        return self.verdict is not None and self.verdict["status"] == "failed"

    def require_converged(self) -> None:
        """Refuses answers of draws that have failed, unless they were allowed."""
        if self.has_failed and not self.allows_unconverged:
            assert self.verdict is not None
            raise ConvergenceError(
                f"the draws have failed to converge: {' '.join(self.verdict['reasons'])} To use "
                "them all the same: --allow-unconverged, or model.allow_unconverged()."
            )

    @property
    def structure(self) -> Structure:
        """The structure of x."""
        return self.task.structure

    @property
    def outcome(self) -> Outcome:
        """The outcome."""
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
        """The labels of the codes; only where outcomes have codes."""
        assert self.outcome.labels is not None
        return self.outcome.labels

    @property
    def encoder(self) -> Encoder:
        """The map from rows to inputs."""
        return self.posterior.encoder

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of the predictive."""
        return self.posterior.likelihood

    @property
    def likelihood_name(self) -> str:
        """The likelihood by the name that the user gives: a censored Weibull is weibull."""
        likelihood = self.likelihood
        return str(getattr(likelihood, "likelihood", likelihood).name)

    @property
    def network_name(self) -> str:
        """The name of the network, or of what stands in its place; empty where there is none."""
        if not self.posterior.networks:
            return str(getattr(self.posterior, "label", ""))
        return self.posterior.networks[0].name

    @property
    def network(self) -> nn.Module:
        """The trained network; of several, the first."""
        if not self.posterior.networks:
            raise UsageError(f"inference '{self.posterior.name}' has no network.")
        return self.posterior.networks[0].network

    @property
    def parameters(self) -> int:
        """The number of parameters of all networks."""
        return self.posterior.parameters

    @property
    def estimated(self) -> int:
        """The number of estimated parameters: those of a solved model, or the weights."""
        return sum(fit.parameters for fit in self.linear) or self.parameters

    @property
    def several(self) -> bool:
        """Whether there are several targets at once."""
        return bool(getattr(self.outcome, "shape", ())) and not self.likelihood.event_ndim

    @property
    def columns(self) -> list[Column] | None:
        """The roles of the columns of a table; None where there are none."""
        found = self.features.get("columns")
        return None if found is None else [Column.model_validate(each) for each in found]

    @property
    def axis(self) -> str:
        """The axis of the outcomes: an example, or its elements."""
        return str(self.outcome.axis)

    @property
    def has_features(self) -> bool:
        """Whether there was anything to predict from."""
        return bool(self.features.get("count", 1))

    def with_options(self, **options: Any) -> "Model":
        """Returns the model with other options of predictions."""
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
        """Gives the predictive distribution of each row's outcome, as it is served."""
        return self.outcome.serve(self.posterior.predictive(rows, offset, notes=notes))

    def constant(self) -> Predictive:
        """Gives the distribution of any row, for a model without features."""
        return self.predictive(self.structure.nothing(1))

    def evaluate(self, job: Job, notes: list[str] | None = None) -> Metrics:
        """Computes every metric that applies, on the rows of a job."""
        served = self.predictive(job.rows, job.offset, notes=[] if notes is None else notes)
        found: Metrics = self.outcome.evaluate(served, job.y, job.weight)
        return found | self.outcome.measure(self.posterior, job.rows)

    def log_likelihood(self, job: Job) -> float | None:
        """Sums over the rows of a job; partial for Cox, None for a loss without a density.

        Of a linear model at its estimates, as its summary has it.
        """
        posterior = self.posterior
        if isinstance(posterior, PointPosterior):
            posterior = posterior.at_estimate()
        likelihood, raw = posterior.predictive(job.rows, job.offset, notes=[])
        if not likelihood.has_distribution:
            return None
        return -float(likelihood.joint_loss(raw, job.y, job.weight).detach().sum())


def estimator_of(model: Model) -> Any:
    """The estimator of the model's outcome, fitted."""
    kind = load(model.outcome.estimator)
    known = kind._get_param_names()
    given = model.task.settings.arguments
    estimator = kind(**{key: value for key, value in given.items() if key in known})
    estimator.adopt(model)
    return estimator
