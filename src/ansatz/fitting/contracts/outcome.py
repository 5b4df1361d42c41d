"""The second axis beside the likelihood: what is predicted."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.errors import ModelError
from ansatz.fitting.contracts.inference import (
    Build,
    Fitted,
    Inference,
    Posterior,
    Predictive,
)
from ansatz.fitting.contracts.rows import Encoder
from ansatz.likelihoods import Distribution, Likelihood
from ansatz.likelihoods.registry import Dispersion, varies, with_dispersion
from ansatz.spec import TargetSpec

if TYPE_CHECKING:
    import pandas as pd

    from ansatz.fitting.column_roles import ColumnRoles
    from ansatz.fitting.contracts.structure import LinearBaseline, Structure
    from ansatz.fitting.job import Job
    from ansatz.fitting.model import Given, Model
    from ansatz.fitting.split import Parts
    from ansatz.fitting.task import Settings, Task, TrainingPlan
    from ansatz.training import Penalty

Metrics = dict[str, float | None]
PROBABILITIES = (
    "P(class | x) in the order of 'classes'; of rankings, P(item is first | x)"  # of an output
)
NO_INTERVAL = "classes and items have no interval: 'probabilities' shows how sure the model is."


_DISPERSIONS: tuple[Dispersion, ...] = ("predicted", "constant")


class Outcome(Protocol):
    """An outcome: it reads y, makes its likelihood, evaluates and writes predictions.

    An outcome remembers what it read (names, classes); a fit works on a copy of its own.

    Attributes:
        name: as the registry spells it.
        estimator: of such outcomes, ``"module:Class"``, imported when it is asked for.
        report: what such outcomes add to reports and comparisons, likewise.
        reader: reads data whose outcomes are not columns of a table, ``"module:function"``: from
            (data, column roles, options of reading) it makes a
            :class:`~ansatz.fitting.tensor_structure.Read`, whose frame holds the outcomes.
        names: of the target columns.
        labels: what codes stand for: classes or items; None for numbers.
    """

    name: ClassVar[str]
    estimator: ClassVar[str]
    candidates: ClassVar[
        tuple[str, ...]
    ] = ()  # proposed where none is named; () for any by its values
    report: ClassVar[str] = "ansatz.report.outcome_report:OutcomeReport"
    reader: ClassVar[str] = ""
    unit: ClassVar[tuple[str, str] | None] = None  # an example, where the outcome makes it
    plural: ClassVar[str] = "numbers"  # what outcomes are called
    labels_are: ClassVar[str] = "classes"  # what labels are called
    is_censored: ClassVar[bool] = False  # whether an outcome may be known in part
    test_share: ClassVar[float] = 0.2  # of the rows, where nothing else is asked for
    solved: ClassVar[frozenset[str]] = frozenset()  # networks that ``solve`` fits itself
    axis: ClassVar[str] = "row"  # where it sits: on an example, or on its elements
    is_x: ClassVar[bool] = False  # whether x itself is modelled: columns named as targets are given
    has_columns: ClassVar[bool] = True  # whether each target column is a quantity of its own
    is_quantity: ClassVar[bool] = True  # whether outcomes are numbers that vary
    settings: ClassVar[frozenset[str]] = frozenset()  # options of outcomes that it reads
    outputs: ClassVar[Mapping[str, str]] = {  # of ``answers``, in words
        "prediction": "what predict gives, in the unit of the target"
    }
    intervals: ClassVar[Mapping[str, str]] = {}  # how to make one of an output, in words
    frame_options: ClassVar[frozenset[str]] = frozenset()  # of ``frame`` that few outcomes take
    no_interval: ClassVar[str] = "such outcomes have no interval."  # why ``frame`` has no bounds
    names: list[str]
    labels: NDArray[Any] | None

    # Reading.

    @classmethod
    def arrange(cls, given: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a request; ``own`` are those that a named data set brings."""
        return {**own, **given}

    @classmethod
    def known(cls, frame: "pd.DataFrame", column_roles: "ColumnRoles") -> NDArray[np.bool_]:
        """Which rows of a table have an outcome."""
        return column_roles.known(frame)

    @classmethod
    def check_columns(
        cls,
        frame: "pd.DataFrame",
        column_roles: "ColumnRoles",
        likelihood: str,
        options: dict[str, Any],
        *,
        named: bool,
    ) -> None:
        """Rejects columns that the likelihood, perhaps ``named`` by the user, cannot produce."""

    def encode(
        self, y: Any, settings: "Settings", *, reset: bool
    ) -> tuple[NDArray[Any], TargetSpec]:
        """Outcomes as numbers, and what they look like; what they show is kept if ``reset``."""
        ...

    def reweight(
        self, codes: NDArray[Any], weight: NDArray[Any], settings: "Settings"
    ) -> NDArray[Any]:
        """The weights that a fit uses."""
        return weight

    def weighted(self, codes: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
        """The weights of other rows, by the class weights of the fit."""
        return weight

    def choose(self, settings: "Settings") -> None:
        """Takes the settings of predictions; rejects what cannot be done."""

    def content(self, y: Tensor, settings: "Settings") -> NDArray[Any]:
        """Gives outcomes in one form, so that all likelihoods have the same test rows."""
        found: NDArray[Any] = y.numpy()
        return found

    def plain(self, job: "Job") -> "Job":
        """The job without class weights, which are not rows: for evaluation and baselines."""
        return job

    def beside(self, y: Any, rows: Any) -> Any:
        """Outcomes in the form that rows of such a size have them."""
        return y

    def read(self, job: "Job") -> "Job":
        """A job with its outcomes checked against its rows."""
        return job

    def split(self, job: "Job", task: "Task", test: float) -> "Parts | None":
        """A split of its own, where that by rows, groups and time does not do."""
        return None

    # Fitting.

    def likelihood(self, settings: "Settings", target: TargetSpec, *, few: bool) -> Likelihood:
        """The likelihood of such outcomes; with a constant dispersion where rows are few."""
        ...

    def variants(self, likelihood: Likelihood, settings: "Settings") -> list[Likelihood]:
        """The likelihoods among which a network given as a module chooses by its outputs.

        A dispersion that nobody has set is predicted from x or constant, as the module has it.
        """
        made = settings.likelihood
        given = made.options if isinstance(made, Likelihood) else settings.likelihood_options
        inner = getattr(made, "likelihood", None)  # what is censored or truncated
        given = {**given, **getattr(inner, "options", {})}
        if "dispersion" in given or not varies(likelihood):
            return [likelihood]
        return [with_dispersion(likelihood, kind) for kind in _DISPERSIONS]

    def solve(
        self,
        structure: "Structure",
        likelihood: Likelihood,
        job: "Job",
        penalty: "Penalty | None" = None,
    ) -> "LinearBaseline":
        """The exact linear model of the outcomes, penalised if that is asked for."""
        names = None if self.labels is None else [str(name) for name in self.labels]
        if names is None and likelihood.name in ("dirichlet", "multivariate_normal"):
            names = list(self.names)  # of a vector's numbers
        found = structure.linear(likelihood, job, class_names=names, null=True, penalty=penalty)
        assert found is not None
        return found

    @classmethod
    def network(cls, structure: "Structure") -> str:
        """The default network of a structure for such outcomes."""
        return structure.network(cls.axis)

    @classmethod
    def network_options(cls, network: "str | nn.Module") -> dict[str, Any]:
        """Options of a network's factory that follow from the outcome."""
        return {}

    def infer(
        self,
        inference: "Inference",
        plan: "TrainingPlan",
        job: "Job",
        likelihood: Likelihood,
        previous: Posterior | None,
    ) -> "Fitted":
        """Trains by the inference of the fit; a model of x itself has its own way."""
        return inference.fit(plan, job, likelihood, previous)

    def rebuild(
        self,
        inference: "Inference",
        structure: "Structure",
        encoder: "Encoder",
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: "Build",
    ) -> Posterior:
        """The posterior of a saved model, by its inference."""
        return inference.rebuild(structure, encoder, record, tensors, build)

    def baseline(
        self, structure: "Structure", likelihood: Likelihood, job: "Job", seed: int
    ) -> "tuple[Posterior | None, list[str]]":
        """The linear model to stand beside a network, and notes on its fit; None for none."""
        return structure.baseline(likelihood, job, seed)

    def baselines(
        self, structure: "Structure", likelihood: Likelihood, job: "Job", seed: int
    ) -> "tuple[Mapping[str, Posterior], list[str]]":
        """Further simple models to stand beside a network by name, and notes on them."""
        return structure.baselines(likelihood, job, seed)

    def constant(
        self, model: "Model", likelihood: Likelihood, learn: "Job", test: "Job"
    ) -> Predictive | None:
        """The constant model of ``learn`` at the rows of ``test``; None for the likelihood's."""
        return None

    def begin(self, likelihood: Likelihood, job: "Job") -> None:
        """Takes note of the training outcomes before a fit."""

    def finish(self, model: "Model", job: "Job") -> None:
        """Estimates what a fit leaves open, from predictions of rows that were left out."""

    def tested(self, model: "Model", test: "Job") -> None:
        """Takes note of rows that were held out of a fit, before it is saved."""

    def second_opinion(self, model: "Model", learn: "Job", test: "Job") -> list[str]:
        """Notes on a simpler model that does better than the likelihood chosen automatically."""
        return []

    # Predictions.

    def serve(self, predictive: Predictive) -> Predictive:
        """The predictive as users see it: class weights are taken out."""
        return predictive

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        """Every metric that applies; None where undefined."""
        ...

    def measure(self, posterior: "Posterior", rows: Any) -> Metrics:
        """Further metrics, of answers that a predictive does not hold: texts that are written."""
        return {}

    def point(self, predictive: Predictive) -> NDArray[Any]:
        """One answer for each row, as ``predict`` gives it; ``predictive`` as the model has it."""
        ...

    def answers(self, likelihood: Likelihood, raw: Tensor) -> dict[str, Tensor]:
        """Predictions as operations that can be traced, by the names in ``outputs``.

        Labels are codes; ``raw`` is what the posterior gives, class weights not taken out.
        """
        return {"prediction": likelihood.point(raw)}

    def distribution(self, predictive: Predictive, y: Tensor) -> tuple[Distribution | None, Tensor]:
        """The distributions that outcomes are evaluated by, and the outcomes as these take them.

        None in place of the distributions where a loss predicts a point alone.
        """
        likelihood, raw = predictive
        if not likelihood.has_distribution:
            return None, y
        with torch.no_grad():
            return likelihood.given(raw, y)

    def row_losses(self, predictive: Predictive, y: Tensor) -> Tensor:
        """The loss of each row, ``(N,)``, the mean over its targets.

        For a likelihood its negative log-likelihood as served; a partial likelihood gives each
        row's share.
        """
        likelihood, raw = predictive
        with torch.no_grad():
            if likelihood.additive:
                losses = likelihood.loss(raw, y)
            else:
                losses = likelihood.joint_loss(raw, y, torch.ones(len(raw), dtype=raw.dtype))
            return losses.double().reshape(len(raw), -1).mean(1)

    def estimate(self, predictive: Predictive, y: Tensor) -> Tensor:
        """Point predictions in the unit that outcomes are evaluated in; classes as codes."""
        likelihood, raw = predictive
        distribution, value = self.distribution(predictive, y)
        with torch.no_grad():
            if distribution is not None and value is not y:  # successes, not their share
                return distribution.mean
            if (
                distribution is not None
                and likelihood.event_ndim
                and hasattr(likelihood, "likelihood")
            ):
                return distribution.median  # a censored likelihood
            found: Tensor = likelihood.point(raw)
            return found

    def frame(self, model: "Model", rows: "Given", **options: Any) -> "Mapping[str, Any]":
        """The columns of the table that ``ansatz predict`` writes."""
        return {"prediction": self.point(model.posterior.predictive(rows.rows, rows.offset))}

    def has_interval(self, likelihood: Likelihood) -> bool:
        """Tests whether predictions by such a likelihood have bounds."""
        return False

    def summary(self, model: "Model") -> Any:
        """A summary of its own, in place of that of any model; None where there is none."""
        return None

    def unseen(self, learn: "Job", test: "Job") -> list[str]:
        """Sentences about what only the test rows show."""
        return []

    def notes(self, model: "Model") -> list[str]:
        """Sentences about reading and fitting."""
        return []

    # On disk.

    def target(self, likelihood: Likelihood) -> TargetSpec:
        """The shape of one example's outcomes, without the size of its elements."""
        ...

    def state(self) -> dict[str, Any]:
        """The state estimated from y, as JSON."""
        ...

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Takes in what :meth:`state` and :meth:`tensors` gave."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """The tensors estimated from y."""
        return {}


class OfClasses(Outcome, Protocol):
    """Outcomes whose labels have probabilities: classes of rows, or of their elements."""

    def probabilities(self, predictive: Predictive) -> Tensor:
        """P(class | x), classes last."""
        ...

    def disagreement(self, posterior: Any, rows: Any) -> Tensor:
        """The disagreement of the components of a posterior about the class, in nats."""
        ...


class OfTimes(Outcome, Protocol):
    """Outcomes that are times until an event."""

    followed: Any  # how long the rows of the fit were followed

    def gather(self, y: Any, **known: Any) -> NDArray[np.float64]:
        """Times with events, entries and upper ends, ``(N, 4)``."""
        ...

    def log_survival(self, predictive: Predictive, times: Any) -> NDArray[np.float64]:
        """log P(T > t | x), ``(N, len(times))``."""
        ...

    def hazard(self, predictive: Predictive, times: Any) -> NDArray[np.float64]:
        """The rate of events at t among those still free of one, ``(N, len(times))``."""
        ...

    def restricted_mean(self, predictive: Predictive, horizon: float | None) -> NDArray[np.float64]:
        """E[min(T, horizon) | x], ``(N,)``."""
        ...

    def survival(self, predictive: Predictive, times: Any) -> NDArray[np.float64]:
        """P(T > t | x), ``(N, len(times))``."""
        ...

    def risk(self, predictive: Predictive) -> NDArray[np.float64]:
        """A number that orders rows, higher for earlier events."""
        ...

    def incidence(self, predictive: Predictive, times: Any, cause: int = 1) -> NDArray[np.float64]:
        """P(T <= t and the event is of this cause | x), ``(N, len(times))``."""
        ...


def plain_labels(labels: NDArray[Any] | None) -> dict[str, Any]:
    """Labels and their kind as JSON."""
    if labels is None:
        return {"classes": None, "class_kind": None}
    return {"classes": labels.tolist(), "class_kind": labels.dtype.kind}


_LABELS = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64, "U": np.str_, "O": object}


def labels_of(state: Mapping[str, Any]) -> NDArray[Any] | None:
    """The labels that :func:`plain_labels` described."""
    if state.get("classes") is None or state.get("class_kind") is None:
        return None
    found: NDArray[Any] = np.array(state["classes"], dtype=_LABELS[state["class_kind"]])
    if found.ndim != 1 or len(found) < 2:
        raise ModelError("outcome.state.classes: expected a list of two or more classes")
    return found
