"""Sets of elements whose order carries no meaning; a row is a set, or an element of one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data.sets.batch import ElementBatch, chunks, flat_rows
from ansatz.data.sets.sets import Elements, Sets
from ansatz.data.sets.source import CutSource
from ansatz.data.source import Source
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.contracts.structure import Facts, Feed, Moving
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model, Trained
from ansatz.fitting.problem import Problem
from ansatz.fitting.read_again import Notify, ReadAgain
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.request import settings_of
from ansatz.fitting.tensor_structure import Read, ReadRows, TensorStructure
from ansatz.fitting.training import begin_with_rows
from ansatz.layers.ragged import Ragged
from ansatz.likelihoods import Likelihood
from ansatz.networks import Summary, summary
from ansatz.seeds import derive
from ansatz.spec import InputSpec
from ansatz.structures.set.encoder import SetEncoder, load_encoder
from ansatz.structures.set.reading import GROUP, as_sets, read_sets
from ansatz.structures.set.recipe import choose_set_recipe
from ansatz.structures.set.summaries import fit_summaries
from ansatz.symmetry import Group, Permutation
from ansatz.training import Supervised


class SetStructure(TensorStructure):
    """Elements of sets, one set behind the other.

    A network's inputs are ``(values, offsets, codes, beside)``: ``(E, D)``, ``(B + 1,)``,
    ``(E, C)`` and ``(B, U)``; where elements are rows, ``chosen (R,)`` says which.
    """

    name: ClassVar[str] = "set"
    unit: ClassVar[tuple[str, str]] = ("set", "sets")
    rows_of: ClassVar[type[Sets]] = Sets
    elements_at_once: ClassVar[int] = 2**17  # elements that are predicted at once

    def leaves_to(self, network: str | nn.Module) -> frozenset[str]:
        """The shape and dropout of networks, which have defaults of their own."""
        return settings_of("network")

    def network(self, axis: str) -> str:
        """Deep Sets."""
        return "deepsets"

    def linear_network(self, axis: str) -> str:
        """A linear map of the mean and the log size."""
        return "linear_set"

    def network_options(
        self, network: str | nn.Module, recipe: Recipe, spec: InputSpec | None
    ) -> dict[str, Any]:
        """None: networks have their own defaults."""
        return {}

    # Reading.

    def read(self, data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
        """A long table, or arrays with offsets."""
        return read_sets(data, column_roles, reader, self.rows_of)

    def problem(self, data: Any, column_roles: ColumnRoles, **how: Any) -> Problem:
        """Reads sets; rows of one identifier stay on one side of every split."""
        how["reader"] = {**(how.get("reader") or {}), "drop": list(how.pop("drop", None) or ())}
        found = data if isinstance(data, Read) else self.read(data, column_roles, how["reader"])
        group = column_roles.group or column_roles.identifier
        if group is None and GROUP in found.frame.columns and isinstance(found.rows, Elements):
            group = GROUP
        roles = column_roles.model_copy(update={"group": group})
        return super().problem(found, roles, **how)

    def read_again(
        self, model: Model, data: str, *, outcomes: bool, options: Mapping[str, Any], notify: Notify
    ) -> ReadAgain:
        """Reads sets as the fit did; predictions are named by their identifiers."""
        made = super().read_again(model, data, outcomes=outcomes, options=options, notify=notify)
        return NamedSets(made.table, model.column_roles)

    def from_python(
        self, X: Any, *, estimator: Any, reset: bool, roles: Mapping[str, str] | None = None
    ) -> Any:
        """Sets as they are given; a long table as the fit read one, once there was a fit."""
        fitted = None if reset else estimator.model_
        known = None if fitted is None else fitted.column_roles
        if fitted is not None and known is not None and known.identifier and hasattr(X, "columns"):
            return self.read(X, known, self.reading_of(fitted)).rows
        return super().from_python(X, estimator=estimator, reset=reset, roles=roles)

    def as_rows(self, X: Any) -> Any:
        """Lists of arrays ``(n_i, D)``, arrays ``(N, n, D)``, or sets."""
        return X if isinstance(X, Elements) else as_sets(X, self.rows_of)

    def summary(self, model: Model) -> Summary | str:
        """The size of the network."""
        return summary(model.posterior.networks[0].network, model.encoder.spec)

    # Recipe and encoder.

    def recipe(self, facts: Facts) -> Recipe:
        """By the number of rows."""
        return choose_set_recipe(facts)

    def encoder(
        self, rows: Any, weight: NDArray[np.float64], recipe: Recipe, options: Mapping[str, Any]
    ) -> Any:
        """The preprocessing of tables, of elements and of sets."""
        return SetEncoder.fit(rows, weight, options)

    def load_encoder(self, state: Mapping[str, Any]) -> Any:
        """The encoder of a saved model."""
        return load_encoder(state)

    # Training.

    def inputs(self, encoder: Any, rows: Any) -> Any:
        """Values, offsets, codes and numbers of the sets."""
        return encoder.inputs(rows, notes=[])

    def _two_rows(self, network: nn.Module, encoder: Any, job: Job) -> Any:
        dtype = next(network.parameters()).dtype
        found = self.inputs(encoder, job.rows[slice(0, 2)])
        return type(found)(*(t.to(dtype) if t.is_floating_point() else t for t in found))

    def adapt(self, network: nn.Module, encoder: Any, job: Job, objective: Supervised) -> nn.Module:
        """Shows the training rows to a network that begins with them."""
        begin_with_rows(network, encoder, job, objective)
        return super().adapt(network, encoder, job, objective)

    def source(self, job: Job, encoder: Any, feed: Feed, options: Mapping[str, Any]) -> Source:
        """Batches of whole sets in a new order each epoch."""
        rows, count = self.batch(job, encoder, feed.recipe), len(job.y)
        assert rows is not None
        groups = None
        if isinstance(job.rows, Elements):
            owners = torch.from_numpy(job.rows.owners)
            groups = owners.unique(return_inverse=True)[1]
        if not feed.training:
            return CutSource(rows, 8_192 if feed.additive else count, shuffle=False)
        return CutSource(
            rows,
            feed.recipe.batch_size or count,
            smallest=2 if feed.normalizes else 1,
            seed=derive(feed.seed, "rows"),
            shuffle=feed.recipe.batch_size > 0,
            groups=groups if feed.recipe.batch_size > 0 else None,
            change=self.change(encoder, feed),
        )

    def change(self, encoder: Any, feed: Feed) -> Any:
        """What changes the examples of a training batch; None for nothing."""
        return None

    # Predictions.

    def raws(
        self,
        networks: Sequence[Trained],
        encoder: Any,
        rows: Any,
        offset: Tensor | None,
        *,
        notes: list[str] | None,
        options: Mapping[str, Any],
    ) -> Iterator[Iterable[Tensor]]:
        """Encodes the rows once and asks the networks, whole sets at a time."""
        inputs = encoder.inputs(rows, notes=notes)
        for part in chunks(inputs, self.elements_at_once):
            some, extra = inputs.take_rows(part), None if offset is None else offset[part]
            yield [network(some, extra) for network in networks]

    # Symmetries.

    def groups(self, spec: InputSpec) -> list[Group]:
        """Every order of the elements."""
        return [Permutation()]

    def moving(self, inputs: Any) -> Moving:
        """The elements with their codes; where they are rows, all of them are asked for."""
        numbers, codes = flat_rows(inputs)
        each = isinstance(inputs, ElementBatch)
        chosen = (torch.arange(len(inputs.values)),) if each else ()

        def together(moved: Ragged, kinds: Ragged) -> Any:
            return type(inputs)(*moved, kinds.values, inputs.beside, *chosen)

        return Moving((numbers, codes), together, each)

    # Linear models.

    def baseline(
        self, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Posterior | None, list[str]]:
        """The linear model in features that are computed once."""
        return fit_summaries(self, likelihood, job, seed)


class NamedSets(ReadRows):
    """Sets that were read again; predictions carry their identifiers."""

    def __init__(self, table: Any, column_roles: ColumnRoles | None) -> None:
        super().__init__(table)
        self.column_roles = column_roles

    @property
    def names(self) -> dict[str, Any]:
        """The identifier of each row, where the data have one."""
        roles, frame = self.column_roles, self.table.frame
        for name in (None if roles is None else roles.identifier, GROUP):
            if name is not None and name in frame.columns:
                return {name: frame[name].tolist()}
        return {}
