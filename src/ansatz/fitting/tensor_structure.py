"""A structure whose examples an encoder turns into tensors: all but reading and encoding."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz import inference, outcomes
from ansatz.data import Batch, TensorSource
from ansatz.data.batch import take_rows
from ansatz.data.source import Source
from ansatz.errors import AnsatzError, DataError, ModelError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.exporter import Exporter, TensorExporter
from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.contracts.structure import Facts, Feed, Structure, TableParts
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model, Trained
from ansatz.fitting.problem import Problem, check_known, check_outcomes
from ansatz.fitting.proposal import Proposal, propose
from ansatz.fitting.provenance import provenance_of
from ansatz.fitting.read_again import Notify, ReadAgain
from ansatz.fitting.recipe import Recipe, default_recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import typed
from ansatz.inference.registry import DEFAULT
from ansatz.likelihoods import Likelihood
from ansatz.registry import load
from ansatz.seeds import derive
from ansatz.spec import InputSpec
from ansatz.training import Supervised

CHUNK = 65_536  # rows predicted at once


class Read(NamedTuple):
    """Data as they were read: examples, and the columns beside them."""

    origin: str  # what errors call the data
    rows: Any  # one example for each row of the frame
    frame: pd.DataFrame  # outcomes, weights, groups, by name
    target: str | None = None  # the data's own, where none is named
    notes: tuple[str, ...] = ()
    part: str | None = None  # the column that marks the data's own parts


class ReadRows(ReadAgain):
    """Examples that were read again, with the columns beside them."""

    def take(self, mask: NDArray[np.bool_]) -> Read:
        """Some of the examples."""
        table: Read = self.table
        return table._replace(rows=table.rows[np.flatnonzero(mask)], frame=table.frame[mask])

    def rows(self, estimator: Any, most: int) -> Any:
        """The first examples."""
        return self.table.rows[slice(0, most)]


def read_for(
    structure: "TensorStructure", data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]
) -> Read:
    """Reads data as the outcome does that is asked for, where it has a reader, or the structure."""
    if isinstance(data, Read):
        return data
    own = column_roles.task and outcomes.registry.get(column_roles.task).reader
    found: Read = (load(own) if own else structure.read)(data, column_roles, reader)
    return found


class TensorStructure(Structure):
    """Everything of the contract that follows from ``read``, ``as_rows`` and ``encoder``.

    A structure of one's own names itself, reads data, and encodes its rows:

    - ``read(data, column_roles, reader) -> Read`` for ``ansatz.fit`` and the command line;
    - ``as_rows(X) -> Rows`` for an estimator;
    - ``encoder(rows, weight, recipe, options)`` and ``load_encoder(state)``.

    Each other method may be replaced by a better one.
    """

    name: ClassVar[str] = "tensor"
    unit: ClassVar[tuple[str, str]] = ("example", "examples")
    element: ClassVar[tuple[str, str] | None] = None
    solves: ClassVar[bool] = False

    def leaves_to(self, network: str | nn.Module) -> frozenset[str]:
        return frozenset()

    def network(self, axis: str) -> str:
        return "mlp"

    def linear_network(self, axis: str) -> str:
        return "linear"

    # Reading.

    def read(self, data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
        """Data for ``ansatz.fit``: examples, and the columns beside them."""
        raise UsageError(f"structure {self.name} reads no files: give rows to an estimator.")

    def as_rows(self, X: Any) -> Any:
        """Makes rows of what was given to an estimator as X."""
        return X

    def problem(self, data: Any, column_roles: ColumnRoles, **how: Any) -> Problem:
        reader, gone = how.get("reader") or {}, list(how.get("drop") or ())
        if gone and column_roles.task and outcomes.registry.get(column_roles.task).reader:
            reader, gone = {**reader, "drop": gone}, []  # its rows are made of the columns
        found = read_for(self, data, column_roles, reader)
        if not column_roles.target and column_roles.lower is None and found.target is not None:
            column_roles = column_roles.model_copy(update={"target": [found.target]})
        frame = found.frame.drop(columns=gone)
        column_roles = column_roles.expand(frame)
        column_roles.check(frame, found.origin)
        known, likelihood = column_roles.known(frame), how.get("likelihood")
        if not known.any():
            raise DataError(f"{found.origin}: the target '{column_roles.outcome_name}' is missing.")
        notes, unknown = list(found.notes), int((~known).sum())
        if unknown:
            notes.append(f"{unknown} {self.unit[1]} without a value of the target were left out.")
        frame, rows = frame[known], found.rows[np.flatnonzero(known)]
        proposal = (
            Proposal([likelihood]) if likelihood else propose(found.origin, frame, column_roles)
        )
        options = {**proposal.options, **(how.get("options") or {})}
        check_outcomes(
            found.origin,
            frame,
            column_roles,
            proposal.candidates[0],
            options,
            named=likelihood is not None,
        )
        notes += [proposal.why] if proposal.why else []
        digest = hashlib.sha256(np.ascontiguousarray(rows.content_keys()).tobytes())
        digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
        fingerprint = digest.hexdigest()
        return Problem(
            found.origin,
            frame,
            rows,
            column_roles,
            proposal.candidates,
            options,
            notes,
            fingerprint,
            part=found.part,
        )

    def read_again(
        self, model: Model, data: str, *, outcomes: bool, options: Mapping[str, Any], notify: Notify
    ) -> ReadAgain:
        """All examples at once; those without a target are left out where they are evaluated."""
        column_roles = model.column_roles or ColumnRoles()
        again = {**self.reading_of(model), **options}
        reader = {k: v for k, v in again.items() if k not in ("stream", "memory_limit")}
        found = ReadRows(read_for(self, data, column_roles, reader))
        origin, frame = found.table.origin, found.table.frame
        for note in found.table.notes:
            notify(note)
        if not outcomes:
            return found
        column_roles.outcomes(frame)  # all its columns are there
        known = model.outcome.known(frame, column_roles)
        if not known.any():
            raise DataError(f"{origin}: the target '{column_roles.outcome_name}' is missing.")
        if not known.all():
            notify(f"{self.unit[1]} without the target, left out: {int((~known).sum())}.")
        check_known(model, frame[known], origin)
        return ReadRows(found.take(known))

    def reading_of(self, model: Model) -> dict[str, Any]:
        """The options of a fit with which other data of its kind are read too."""
        asked = provenance_of(model)
        reader = {} if asked is None else asked.asked.reader()
        reader.pop("validation_data", None)  # it stopped the training of the fit
        return reader

    def from_python(
        self, X: Any, *, estimator: Any, reset: bool, roles: Mapping[str, str] | None = None
    ) -> Any:
        if roles:
            raise UsageError(f"{self.unit[1]} have no column '{next(iter(roles))}'.")
        rows = X.rows if isinstance(X, Read) else self.as_rows(X)
        if reset:
            estimator.n_features_in_ = int(rows.describe()["count"])
            estimator.__dict__.pop("feature_names_in_", None)
        return rows

    def from_table(self, model: Model, table: Any, *, outcomes: bool) -> TableParts:
        """Examples, outcomes, weights and offsets, by the column roles of the fit."""
        column_roles = model.column_roles
        assert column_roles is not None
        found = read_for(self, table, column_roles, self.reading_of(model))
        y = column_roles.outcomes(found.frame) if outcomes else None
        weight, offset = column_roles.weight(found.frame), column_roles.offsets(found.frame)
        return TableParts(found.rows, y, weight, offset, column_roles.trial_counts(found.frame))

    # Recipe and encoder.

    def recipe(self, facts: Facts) -> Recipe:
        """Chooses by the number of rows, their coupling and the kind of outcome."""
        return default_recipe(facts)

    def settle(
        self, recipe: Recipe, job: Job, network: str | nn.Module, options: Mapping[str, Any]
    ) -> Recipe:
        return recipe.model_copy(update={"bins": 0})

    def network_options(
        self, network: str | nn.Module, recipe: Recipe, spec: InputSpec | None
    ) -> dict[str, Any]:
        """The shape of a multilayer perceptron; other networks have their own defaults."""
        if network != "mlp":
            return {}
        return {
            "widths": list(recipe.widths),
            "activation": recipe.activation,
            "dropout": recipe.dropout,
        }

    def encoder(
        self, rows: Any, weight: NDArray[np.float64], recipe: Recipe, options: Mapping[str, Any]
    ) -> Any:
        raise UsageError(f"structure {self.name} does not define how its rows are encoded.")

    def load_encoder(self, state: Mapping[str, Any]) -> Any:
        raise ModelError(f"structure {self.name} does not define how its encoder is loaded.")

    # Training.

    def inputs(self, encoder: Any, rows: Any) -> tuple[Tensor, ...]:
        found: tuple[Tensor, ...] = encoder.inputs(rows, notes=[])
        return found

    def batch(self, job: Job, encoder: Any, recipe: Recipe) -> Batch | None:
        inputs = self.inputs(encoder, job.rows)
        batch = Batch(inputs, job.y, job.weight, job.offset, job.index)
        return typed(batch, getattr(torch, recipe.dtype))

    def adapt(self, network: nn.Module, encoder: Any, job: Job, objective: Supervised) -> nn.Module:
        assert objective.shift is not None
        require_outputs(network, self._two_rows(network, encoder, job), objective.shift.numel())
        return network

    def count_outputs(
        self, network: nn.Module, job: Job, recipe: Recipe, options: Mapping[str, Any]
    ) -> int:
        encoder = self.encoder(job.rows, job.weight.numpy(), recipe, options)
        return int(answer_of(network, self._two_rows(network, encoder, job)).shape[-1])

    def _two_rows(self, network: nn.Module, encoder: Any, job: Job) -> tuple[Tensor, ...]:
        dtype = next(network.parameters()).dtype
        found = self.inputs(encoder, job.rows[slice(0, 2)])
        return tuple(t.to(dtype) if t.is_floating_point() else t for t in found)

    def answering(
        self, network: nn.Module, encoder: Any, recipe: Recipe | None
    ) -> tuple[nn.Module, nn.Module]:
        return network, network

    def source(self, job: Job, encoder: Any, feed: Feed, options: Mapping[str, Any]) -> Source:
        rows, recipe = self.batch(job, encoder, feed.recipe), feed.recipe
        assert rows is not None
        if not feed.training:  # rows that are coupled are evaluated together
            return TensorSource(rows, 8_192 if feed.additive else len(rows.index), shuffle=False)
        return TensorSource(
            rows,
            recipe.batch_size or len(rows.index),
            smallest=2 if feed.normalizes else 1,
            seed=derive(feed.seed, "rows"),
            shuffle=recipe.batch_size > 0,
            strata=None if feed.additive else rows.target[:, 1],  # whether it is an event
        )

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
        """Encodes the rows once and asks the networks, 65,536 rows at a time."""
        inputs = encoder.inputs(rows, notes=notes)
        for first in range(0, max(len(rows), 1), CHUNK):
            part = slice(first, first + CHUNK)
            extra = None if offset is None else offset[part]
            yield [network(tuple(t[part] for t in inputs), extra) for network in networks]

    # Linear models.

    def baseline(
        self, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Posterior | None, list[str]]:
        """The linear network of the structure, trained as a network of few steps."""
        network = self.linear_network(job.target.axis)
        if not network:
            return None, []
        facts = Facts(float(job.weight.sum()), job.rows.spec, job.target, not likelihood.additive)
        recipe = self.recipe(facts).model_copy(update={"steps": 500, "bins": 0})
        plan = TrainingPlan(self, network, {}, recipe, seed, {}, {"progress": 0})
        fitted = inference.create(DEFAULT).fit(
            plan, job._replace(valid=None, trainer_options={}), likelihood
        )
        return fitted.posterior, []

    # Export.

    def exporter(self, encoder: Any, names: Sequence[str] | None) -> Exporter | None:
        return TensorExporter(encoder, self.as_rows)


def answer_of(network: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    """Runs a network on a few examples in evaluation mode."""
    was_training = network.training
    try:
        with torch.no_grad():
            answer: Tensor = network.eval()(*inputs)
    except (AnsatzError, torch.OutOfMemoryError):
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        shapes = " and ".join(f"(B, {', '.join(map(str, x.shape[1:]))})" for x in inputs)
        raise UsageError(
            f"the network {type(network).__name__} was given x of shape {shapes} and cannot take "
            f"it: {reason}."
        ) from error
    finally:
        network.train(was_training)
    return answer


def require_outputs(network: nn.Module, inputs: tuple[Tensor, ...], outputs: int) -> None:
    """Refuses a network of another number of outputs than the likelihood has parameters."""
    got = answer_of(network, take_rows(inputs, slice(2)))
    if got.shape[-1] != outputs:
        raise DataError(
            f"the network gives {got.shape[-1]} numbers per row, the likelihood needs {outputs}. "
            "Build it with that many outputs."
        )
