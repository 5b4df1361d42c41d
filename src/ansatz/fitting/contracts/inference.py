"""The third axis: how sure do you need to be?"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.fitting.contracts.rows import Encoder
from ansatz.likelihoods import Distribution, Likelihood

if TYPE_CHECKING:
    from ansatz.fitting.contracts.structure import Facts, Structure
    from ansatz.fitting.job import Job
    from ansatz.fitting.model import Trained
    from ansatz.fitting.recipe import Recipe
    from ansatz.fitting.task import TrainingPlan
    from ansatz.training import History, Step


class Predictive(NamedTuple):
    """The prediction for some rows: a likelihood, and the raw numbers of each row."""

    likelihood: Likelihood
    raw: Tensor  # (N, ...), what ``likelihood`` takes

    @property
    def distribution(self) -> Distribution:
        """The predictive distribution of each row."""
        return self.likelihood.distribution(self.raw)


class Composition(NamedTuple):
    """The function that a posterior computes from its networks, in tensor operations."""

    members: "list[tuple[Encoder, Trained]]"  # each with the encoder of its inputs
    likelihood: Likelihood | None = None  # of the combination; None for the only member's own
    combine: Callable[[list[Tensor]], Tensor] | None = None  # the members' raw numbers
    words: Mapping[str, Any] = {}  # about the combination, for the file's metadata


class Posterior(Protocol):
    """The posterior of the weights, as every consumer of a fitted model sees it."""

    @property
    def name(self) -> str:
        """The inference that rebuilds it from a record."""
        ...

    keeps_rows: ClassVar[bool] = False  # whether training rows are part of the model
    options: dict[str, Any]  # of the fit; the structure may have some about predictions

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of the predictive."""
        ...

    @property
    def encoder(self) -> Encoder:
        """The map from rows to inputs."""
        ...

    @property
    def parameters(self) -> int:
        """The number of estimated parameters."""
        ...

    @property
    def networks(self) -> "Sequence[Trained]":
        """The trained networks, the one to explain first; empty where there is none."""
        ...

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        """Gives the predictive distribution of each row's outcome."""
        ...

    def answer(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        """The numbers that the likelihood takes, at inputs that are encoded."""
        ...

    def components(self, rows: Any, offset: Tensor | None = None) -> list[tuple[float, Predictive]]:
        """The components of the predictive with their weights; one where it is not a mixture."""
        ...

    def without_recalibration(self) -> Self:
        """Returns the posterior with the predictive that it had before recalibration."""
        ...

    def composition(self, kind: torch.dtype) -> Composition | None:
        """The function of an exported graph, in this type; None where there is no graph."""
        return None

    def tensors(self) -> dict[str, Tensor]:
        """All numbers by name, as they are saved."""
        ...

    def record(self) -> dict[str, Any]:
        """The state that is not a tensor, as JSON."""
        ...


class Fitted(NamedTuple):
    """A posterior, the history of its training, and its out-of-fold predictions."""

    posterior: Posterior
    history: "History | None" = None
    out_of_fold: "OutOfFoldPredictions | None" = None
    recalibration: Any = None  # a Recalibration
    step: "Step | None" = None  # that can go on, for partial_fit
    notes: tuple[str, ...] = ()


class OutOfFoldPredictions(Protocol):
    """Predictives of training rows by networks that were not trained on them."""

    def served(self) -> "Iterator[tuple[Tensor, Likelihood, Tensor]]":
        """Yields rows, the likelihood of their out-of-fold predictive, and its raw numbers."""
        ...


class Inference(Protocol):
    """The inference of the weights of a network from training rows."""

    name: ClassVar[str]
    averages: ClassVar[
        bool
    ]  # whether several networks are averaged: each may then fit more closely
    words: ClassVar[str]  # what was fitted, for prose: "a network", "an ensemble of networks"
    few: ClassVar[
        float
    ]  # rows below which a dispersion that varies with x costs more than it explains
    settings: ClassVar[frozenset[str]] = frozenset()  # options of inferences that it reads
    likelihoods: ClassVar[
        tuple[str, ...]
    ] = ()  # that it prefers where y allows several; () for any
    infers_linear: ClassVar[bool] = False  # whether it infers a linear model's coefficients itself
    trains: ClassVar[bool] = True  # whether it trains networks, and takes options of that
    reads_network: ClassVar[bool] = False  # whether it takes a network that it does not train

    def recipe(self, base: "Recipe", facts: "Facts", options: Mapping[str, Any]) -> "Recipe":
        """The structure's recipe, changed as this inference needs it."""
        ...

    def fit(
        self,
        plan: "TrainingPlan",
        job: "Job",
        likelihood: Likelihood,
        previous: Posterior | None = None,
    ) -> Fitted:
        """Infers the weights from the rows of a job."""
        ...

    def update(
        self,
        plan: "TrainingPlan",
        job: "Job",
        likelihood: Likelihood,
        previous: Posterior | None,
        state: dict[str, Any] | None,
    ) -> Fitted:
        """Goes on for one pass over the rows, from a posterior and its optimizer's state."""
        raise UsageError("partial_fit goes on with one network: inference='point'.")

    def rebuild(
        self,
        structure: "Structure",
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: "Build",
    ) -> Posterior:
        """The posterior of a saved model; ``build`` makes a network from its tensors."""
        ...


class Build(Protocol):
    """Makes one trained network of a saved model from its tensors."""

    def __call__(self, tensors: Mapping[str, Tensor]) -> "Trained": ...
