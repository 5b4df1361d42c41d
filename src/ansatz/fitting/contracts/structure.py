"""The first axis: what does x look like?"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data import Batch
from ansatz.data.source import Source
from ansatz.errors import ModelError, UsageError
from ansatz.fitting.contracts.exporter import Exporter
from ansatz.fitting.contracts.rows import Encoder, Rows
from ansatz.fitting.space import Space, network_space, training_space
from ansatz.likelihoods import Likelihood
from ansatz.spec import InputSpec, TargetSpec
from ansatz.training import Penalty, Supervised

if TYPE_CHECKING:
    import pandas as pd

    from ansatz.fitting.column_roles import ColumnRoles
    from ansatz.fitting.contracts.inference import Posterior
    from ansatz.fitting.job import Job
    from ansatz.fitting.model import Model, Trained
    from ansatz.fitting.problem import Problem
    from ansatz.fitting.read_again import Notify, ReadAgain
    from ansatz.fitting.recipe import Recipe
    from ansatz.fitting.request import Request
    from ansatz.fitting.split import SplitJob
    from ansatz.fitting.task import Task
    from ansatz.linear import LinearFit
    from ansatz.symmetry import Group


class Facts(NamedTuple):
    """The facts that a default recipe may depend on: counts and types, never values."""

    rows: float  # the sum of the weights
    spec: InputSpec | None  # of one example, where it is known before rows are encoded
    target: TargetSpec
    coupled: bool = False  # whether the likelihood compares rows with each other
    averaged: bool = False  # whether several networks will be averaged


class Feed(NamedTuple):
    """The options of drawing batches from the rows of a job."""

    recipe: "Recipe"
    seed: int
    training: bool
    additive: bool = True  # whether the loss of a batch is the sum of its rows' losses
    normalizes: bool = False  # whether the network normalizes within a batch


class Moving(NamedTuple):
    """The inputs of a network as a group moves them.

    Args:
        parts: that move.
        inputs: makes a network's inputs of moved parts.
        each: whether there is an answer for each element, which should move with it.
    """

    parts: tuple[Any, ...]
    inputs: Callable[..., Any]
    each: bool


class LinearBaseline(NamedTuple):
    """A maximum-likelihood linear model in the plainest features of a structure."""

    posterior: "Posterior"
    fits: "list[LinearFit]"  # with standard errors, one for each target; empty where trained


class LinearDesign(NamedTuple):
    """The columns of a linear model of some rows."""

    encoder: Encoder  # whose inputs are x alone
    x: Tensor  # (N, D), float64
    names: tuple[str, ...]  # of the D columns


class TableParts(NamedTuple):
    """Rows of a table, taken apart by the column roles of a fit."""

    X: Any
    y: Any
    weight: NDArray[np.float64] | None
    offset: NDArray[np.float64] | None
    trials: NDArray[np.float64] | None


class Beginning(Protocol):
    """Given weights that decide the network of a fit.

    ``network`` is its name, ``options`` are those of its factory, and ``rate_factor`` is the ratio
    of the learning rates of a group of layers and the one before it. ``last_map`` says that only
    the last map is trained, and that the states before it are the same at every step.
    """

    network: str
    rate_factor: float

    @property
    def last_map(self) -> bool: ...

    @property
    def options(self) -> dict[str, Any]: ...

    def load(self, network: nn.Module) -> object:
        """Gives a fresh network its weights; ``str()`` of the answer is a sentence."""
        ...

    def recipe(self, base: "Recipe", rows: float) -> "Recipe":
        """The default recipe of such a fit, for rows of this sum of weights."""
        ...


class LikelihoodScores(Protocol):
    """The comparison of likelihoods of y on some rows."""

    count: int  # of folds
    models: str  # that are compared: "linear models", "small networks"

    def begin(self, folds: Any) -> None:
        """Trains what all likelihoods have in common."""
        ...

    def scores(self, likelihood: Likelihood, step: Tensor | float) -> Tensor:
        """Out-of-fold log scores of a likelihood, ``(N,)``; nan for rows that no fold holds out."""
        ...


class Structure(Protocol):
    """One answer on the first axis, and the only place that knows it.

    ``unit`` names an example in the singular and plural; ``element`` what an outcome may sit on
    inside it, or None. ``report`` is what it adds to reports, ``"module:Class"``, imported when it
    is asked for.
    """

    name: ClassVar[str]
    unit: ClassVar[tuple[str, str]]
    element: ClassVar[tuple[str, str] | None]
    report: ClassVar[str] = "ansatz.report.evidence:Contribution"
    solves: ClassVar[bool]  # whether its linear model is solved exactly, not trained

    def leaves_to(self, network: str | nn.Module) -> frozenset[str]:
        """Options of the default network that are this network's own business."""
        ...

    def network(self, axis: str) -> str:
        """The default network for outcomes on this axis of an example."""
        ...

    def linear_network(self, axis: str) -> str:
        """The linear network for outcomes on this axis; empty where none makes sense."""
        ...

    def problem(self, data: Any, column_roles: "ColumnRoles", **how: Any) -> "Problem":
        """Reads data and decides what is predicted."""
        ...

    def reader(self, request: "Request") -> dict[str, Any]:
        """The options of a request that its data are read with."""
        return request.reader()

    def reading(
        self, request: "Request", how: Mapping[str, Any]
    ) -> "AbstractContextManager[Problem]":
        """The problem of a request; rows that stay on disk are there as long as it lasts."""
        return nullcontext(self.problem(request.data, request.column_roles(), **how))

    def split(self, problem: "Problem", task: "Task", job: "Job", test: float) -> "SplitJob | None":
        """A split of its own, where that by rows, groups and time does not do."""
        return None

    def read_again(
        self,
        model: "Model",
        data: str,
        *,
        outcomes: bool,
        options: Mapping[str, Any],
        notify: "Notify",
    ) -> "ReadAgain":
        """Reads data for a fitted model as those of its fit were.

        Args:
            model: fitted.
            data: where they are.
            outcomes: whether they are evaluated: those without a target are left out.
            options: of :class:`~ansatz.fitting.options.commands.ReadingOutcomes`, validated.
            notify: takes notes.
        """
        ...

    def new_data(self, model: "Model", source: str) -> str:
        """Example words behind ``ansatz predict MODEL``, for examples like those of ``source``."""
        return "NEW-DATA"

    def groups(self, spec: InputSpec) -> "list[Group]":
        """The symmetries of such examples to certify first."""
        raise UsageError(
            f"{self.unit[1]} have no symmetry to certify; in Python ansatz.certify takes any "
            "network and any group."
        )

    def group(self, spec: InputSpec, name: str) -> "Group":
        """The symmetry of this name, which acts on such examples."""
        known = {each.name: each for each in self.groups(spec)}
        if name not in known:
            listed = ", ".join(known)
            raise UsageError(f"{name} does not act on {self.unit[1]}. Take one of: {listed}.")
        return known[name]

    def moving(self, inputs: Any) -> "Moving":
        """What a group moves of a network's inputs, and how they are put together again."""
        x, *others = inputs
        return Moving((x.contiguous(),), lambda moved: (moved, *others), False)

    def from_python(
        self, X: Any, *, estimator: Any, reset: bool, roles: Mapping[str, str] | None = None
    ) -> Rows:
        """Reads what a user gave to an estimator as X, with the roles of some of its columns."""
        ...

    def from_table(self, model: "Model", table: Any, *, outcomes: bool) -> TableParts:
        """Features, outcomes, weights and offsets of a table, by the column roles of the fit."""
        ...

    def cuts(self, model: "Model", table: Any) -> "Iterator[tuple[int, Any]]":
        """The parts that the fit would have cut examples into, each with its example's number."""
        return iter(())

    def summary(self, model: "Model") -> Any:
        """A summary in place of a network's effects; None where columns have effects."""
        return None

    def more_examples(self, axis: str) -> str:
        """Advice, as the end of a sentence, where examples are too few to be split."""
        return ""

    def recipe(self, facts: Facts) -> "Recipe":
        """The default recipe."""
        ...

    def settle(
        self, recipe: "Recipe", job: "Job", network: str | nn.Module, options: Mapping[str, Any]
    ) -> "Recipe":
        """The recipe with what the rows themselves decide."""
        ...

    def beginning(self, options: Mapping[str, Any]) -> Beginning | None:
        """The given weights that decide the network; None where it is named as ever."""
        return None

    def alternative(
        self, recipe: "Recipe", job: "Job", network: str | nn.Module, options: Mapping[str, Any]
    ) -> "Recipe | None":
        """Another recipe for such rows, to be compared with the default out of fold."""
        return None

    def limit(self, recipe: "Recipe", job: "Job", options: Mapping[str, Any]) -> "Recipe":
        """The recipe, whoever set it, within what such rows allow."""
        return recipe

    def network_options(
        self, network: str | nn.Module, recipe: "Recipe", spec: InputSpec | None
    ) -> dict[str, Any]:
        """Options of a network's factory that follow from the recipe."""
        ...

    def encoder(
        self, rows: Any, weight: NDArray[np.float64], recipe: "Recipe", options: Mapping[str, Any]
    ) -> Encoder:
        """Fits an encoder to the training rows."""
        ...

    def load_encoder(self, state: Mapping[str, Any]) -> Encoder:
        """The encoder that an encoder's ``state`` describes."""
        ...

    def adapt(
        self, network: nn.Module, encoder: Any, job: "Job", objective: Supervised
    ) -> nn.Module:
        """The network ready to train on such rows; one that cannot is refused in a line."""
        ...

    def count_outputs(
        self, network: nn.Module, job: "Job", recipe: "Recipe", options: Mapping[str, Any]
    ) -> int:
        """The raw numbers that a network of the user's own gives for each outcome or example."""
        ...

    def answering(
        self, network: nn.Module, encoder: Any, recipe: "Recipe | None"
    ) -> tuple[nn.Module, nn.Module]:
        """The network in its memory layout, and what predicts: itself, or one made of it."""
        ...

    def batch(self, job: "Job", encoder: Any, recipe: "Recipe") -> Batch | None:
        """All rows as one batch in the recipe's type; None where they are not held as tensors."""
        ...

    def source(self, job: "Job", encoder: Any, feed: Feed, options: Mapping[str, Any]) -> Source:
        """Batches of the rows, a pure function of (seed, epoch, position)."""
        ...

    def raws(
        self,
        networks: "Sequence[Trained]",
        encoder: Any,
        rows: Any,
        offset: Tensor | None,
        *,
        notes: list[str] | None,
        options: Mapping[str, Any],
    ) -> Iterator[Iterable[Tensor]]:
        """The likelihood's parameters by each network, chunk by chunk of consecutive rows."""
        ...

    def jobs(self, job: "Job") -> "Iterator[Job] | None":
        """All the rows of a job, chunk by chunk, where those held are a sample; else None."""
        return None

    def likelihood_scores(
        self, job: "Job", total: float, *, linear: bool, seed: int
    ) -> LikelihoodScores | None:
        """Compares likelihoods; None where the first that the values allow is taken."""
        return None

    def shared(self, rows: Sequence[Rows]) -> Rows:
        """The first of several views of the same examples, by the features that all have."""
        return rows[0]

    def nothing(self, count: int) -> Rows:
        """Rows of which nothing is known."""
        raise UsageError(f"{self.unit[1]} are never without features.")

    def constant(self, objective: Supervised, job: "Job") -> "Posterior":
        """The model that answers ``objective.shift`` whatever x is."""
        raise UsageError(f"{self.unit[1]} are never without features.")

    def linear(
        self,
        likelihood: Likelihood,
        job: "Job",
        *,
        class_names: list[str] | None = None,
        null: bool = False,
        penalty: Penalty | None = None,
    ) -> LinearBaseline | None:
        """The exact linear model of a likelihood; None where there is none that is solved."""
        return None

    def penalty(self, likelihood: Likelihood, job: "Job", seed: int) -> Penalty | None:
        """The penalty with which a linear model is better out of fold; None for none."""
        return None

    def linear_design(self, job: "Job") -> "LinearDesign":
        """The columns of a linear model, for inferences of its coefficients."""
        raise UsageError(
            f"the coefficients of a linear model of {self.unit[1]} have no posterior here: take "
            "network='auto', or inference='point'."
        )

    def load_linear(self, record: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "Posterior":
        """The exact linear model that was saved among the members of a mixture."""
        raise ModelError(f"structure {self.name} has no linear model to load.")

    def baseline(
        self, likelihood: Likelihood, job: "Job", seed: int
    ) -> "tuple[Posterior | None, list[str]]":
        """The linear model to stand beside a network, and notes on its fit; None for none."""
        ...

    def baselines(
        self, likelihood: Likelihood, job: "Job", seed: int
    ) -> "tuple[Mapping[str, Posterior], list[str]]":
        """Further simple models to stand beside a network by name, and notes on them."""
        return {}, []

    def at_once(self, request: "Request") -> "Request":
        """A request whose rows are all read at once; options against that are refused."""
        return request

    def search_space(
        self, recipe: "Recipe", facts: Facts, *, network: str | None, takes: Collection[str]
    ) -> Space:
        """The default space of a search."""
        return network_space(network, training_space(recipe, facts.rows))

    def require_answers(self, network: nn.Module, name: str, inputs: InputSpec, axis: str) -> None:
        """Asks a new network once, and refuses one that does not answer where outcomes are."""

    def recommend(
        self, model: "Model", source: str, *, relation: str | None, top: int
    ) -> "pd.DataFrame":
        """Lists the best partners of one thing that are not known to be its partners yet."""
        raise UsageError(f"{self.unit[1]} are not links: there is nothing to recommend.")

    def export_folder(self, model: "Model", folder: str, *, merged: bool) -> list[str]:
        """Writes a folder that Hugging Face's libraries load; gives notes on it."""
        raise UsageError(f"Hugging Face's folders are for texts, not for {self.unit[1]}.")

    def contents(self, rows: Any) -> Any:
        """The examples themselves, for models of x: a frame, or a tensor ``(N, C, *size)``."""
        raise UsageError(
            f"{self.unit[1]} have no model of x itself: tables, signals, images and volumes have."
        )

    def of_contents(self, contents: Any, rows: Any) -> Any:
        """Examples that were drawn, as users of this structure have them."""
        return contents

    def exporter(self, encoder: Any, names: Sequence[str] | None) -> Exporter | None:
        """The preprocessing of an exported graph; None where there is no such graph."""
        return None
