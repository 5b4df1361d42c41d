"""Texts and signals of any length: steps in an order, whose number varies."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz import outcomes, structures
from ansatz.data import Batch
from ansatz.data.batch import Ragged, pad
from ansatz.data.columns import is_free_text
from ansatz.data.sequences.reading import CLASS, read_texts
from ansatz.data.sequences.sequences import Texts, sequences_of
from ansatz.data.sequences.source import SequenceSource
from ansatz.data.source import Source
from ansatz.data.validation_table import PART, frame_of_pair
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles, near_columns
from ansatz.fitting.contracts.exporter import Exporter
from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.contracts.structure import Beginning, Facts, Feed
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model, Trained
from ansatz.fitting.problem import Problem
from ansatz.fitting.read_again import Notify, ReadAgain
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.request import settings_of
from ansatz.fitting.sparse_linear import fit_sparse_linear
from ansatz.fitting.tensor_structure import (
    Read,
    ReadRows,
    TensorStructure,
    answer_of,
)
from ansatz.fitting.training import begin_with_rows, typed
from ansatz.likelihoods import Likelihood
from ansatz.networks import Summary, summary
from ansatz.seeds import derive
from ansatz.spec import InputSpec
from ansatz.structures.registry import SEVERAL
from ansatz.structures.sequence.encoder import fit_encoder, load_encoder
from ansatz.structures.sequence.long_table import read_long, roles_of_long
from ansatz.structures.sequence.pretrained import pretrained_texts
from ansatz.structures.sequence.recipe import choose_sequence_recipe
from ansatz.training import Supervised

AT_ONCE = 512  # sequences that are predicted at once
TOGETHER = 64  # of them that are filled up to the same length


class SequenceStructure(TensorStructure):
    """Token codes or D numbers at every step of a sequence.

    A network's inputs are ``(values, mask)``: values ``(B, T)`` or ``(B, T, D)`` and mask
    ``(B, T)``, True where a step is there.
    """

    name: ClassVar[str] = "sequence"
    unit: ClassVar[tuple[str, str]] = ("text", "texts")
    element: ClassVar[tuple[str, str] | None] = ("token", "tokens")
    report: ClassVar[str] = "ansatz.structures.sequence.report.contribution:SequenceReport"

    def leaves_to(self, network: str | nn.Module) -> frozenset[str]:
        """The shape and dropout of networks, which have defaults of their own."""
        return settings_of("network")

    def network(self, axis: str) -> str:
        """A bag of words and pairs of words; of steps with outcomes a bidirectional LSTM."""
        return "bag" if axis == "row" else "lstm"

    def linear_network(self, axis: str) -> str:
        """A linear map of tf-idf weights; of signals, of their summaries."""
        return "linear_text"

    # Reading.

    def read(self, data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
        """A table, JSON lines, a folder of text files or a named data set."""
        reader = dict(reader)
        if column_roles.identifier is not None:
            return read_long(data, column_roles, reader)
        text = reader.pop("text_column", None)
        reader["validation_data"] = frame_of_pair(
            reader.get("validation_data"), column_roles.target
        )
        origin, frame, notes = read_texts(data, text, **reader)
        if not len(frame):
            raise DataError(f"{origin} holds no texts.")
        name = text or _text_column(frame, column_roles, origin)
        if name not in frame.columns:
            raise UsageError(f"{origin}: no column '{name}'. {near_columns(name, frame)}")
        try:
            rows = Texts(frame[name])
        except DataError as error:
            raise DataError(f"{origin}, column '{name}': {error}") from None
        beside = frame.drop(columns=name)
        target = CLASS if CLASS in beside.columns else None
        part = PART if PART in beside.columns else None
        return Read(origin, rows, beside, target, tuple(notes), part)

    def problem(self, data: Any, column_roles: ColumnRoles, **how: Any) -> Problem:
        """Reads texts and decides what is predicted; other columns become parts beside them."""
        if column_roles.identifier is not None:
            return super().problem(data, roles_of_long(column_roles), **how)
        reader = how.get("reader") or {}
        if len((reader.get("text_column") or "").split(",")) > 1:
            return _several().problem(data, column_roles, **how)
        made = super().problem(data, column_roles, **how)
        own = outcomes.registry.get(made.kind).reader
        features = made.column_roles.features(made.frame).columns
        others = [] if own else [name for name in features if name != PART]
        return _several().problem(data, column_roles, **how) if others else made

    def read_again(
        self, model: Model, data: str, *, outcomes: bool, options: Mapping[str, Any], notify: Notify
    ) -> ReadAgain:
        """Reads the column that the fit read."""
        made = super().read_again(model, data, outcomes=outcomes, options=options, notify=notify)
        identifier = model.column_roles and model.column_roles.identifier
        return LongRows(made.table, identifier) if identifier else made

    def as_rows(self, X: Any) -> Any:
        """Lists of texts, arrays ``(N, T, D)``, lists of arrays ``(T_i, D)``."""
        return sequences_of(X)

    def of_columns(
        self, frame: Any, names: list[str], place: tuple[str, Any], spec: InputSpec | None
    ) -> Texts:
        """The texts of one column of a table."""
        try:
            return Texts(frame[names[0]])
        except DataError as error:
            raise DataError(f"{place[0]}, column '{names[0]}': {error}") from None

    def summary(self, model: Model) -> Summary | str:
        """The size of the network."""
        return summary(model.posterior.networks[0].network, model.encoder.spec)

    # Recipe and encoder.

    def recipe(self, facts: Facts) -> Recipe:
        """By the number of sequences."""
        return choose_sequence_recipe(facts)

    def encoder(
        self, rows: Any, weight: NDArray[np.float64], recipe: Recipe, options: Mapping[str, Any]
    ) -> Any:
        """Tokens of the training texts; mean and standard deviation of signals."""
        begin = pretrained_texts(options)
        return fit_encoder(rows, options) if begin is None else begin.encoder(rows)

    def beginning(self, options: Mapping[str, Any]) -> Beginning | None:
        """The network of a Hugging Face folder."""
        return pretrained_texts(options)

    def load_encoder(self, state: Mapping[str, Any]) -> Any:
        """The encoder of a saved model."""
        return load_encoder(state)

    # Training.

    def batch(self, job: Job, encoder: Any, recipe: Recipe) -> Batch | None:
        """All sequences, filled up to the longest; None where outcomes are of their steps."""
        if job.target.axis != "row":
            return None
        return self._rows(job, recipe)._replace(inputs=self.inputs(encoder, job.rows))

    def _rows(self, job: Job, recipe: Recipe) -> Batch:
        rows = Batch((), job.y, job.weight, job.offset, job.index)
        return typed(rows, getattr(torch, recipe.dtype))

    def inputs(self, encoder: Any, rows: Any) -> Any:
        return encoder.inputs(rows, notes=[])

    def adapt(self, network: nn.Module, encoder: Any, job: Job, objective: Supervised) -> nn.Module:
        """Shows the training rows to a network that begins with them, and asks it once."""
        begin_with_rows(network, encoder, job, objective)
        if objective.axis == 1:
            return self._adapted_to_steps(network, encoder, job, objective)
        return super().adapt(network, encoder, job, objective)

    def _adapted_to_steps(
        self, network: nn.Module, encoder: Any, job: Job, objective: Supervised
    ) -> nn.Module:
        """Refuses a network that does not answer at every step."""
        assert objective.shift is not None
        inputs = self._two_rows(network, encoder, job)
        got, steps = answer_of(network, inputs), inputs[1].shape[1]
        if tuple(got.shape[1:]) != (objective.shift.numel(), steps):
            raise UsageError(
                f"the network answers {tuple(got.shape[1:])} to a sequence of {steps} steps, the "
                f"outcome needs {(objective.shift.numel(), steps)}: one answer for each step "
                "(each=True)."
            )
        return network

    def source(self, job: Job, encoder: Any, feed: Feed, options: Mapping[str, Any]) -> Source:
        """Batches of similar lengths in a new order each epoch."""
        recipe, count = feed.recipe, len(job.y)
        rows, dtype = self._rows(job, recipe), getattr(torch, recipe.dtype)
        each = job.target.axis == "element"
        found = encoder.ragged(job.rows)
        if found.values.is_floating_point():
            found = found._replace(values=found.values.to(dtype))
        if not feed.training:
            size = AT_ONCE if feed.additive else count
            return SequenceSource(found, rows, size, shuffle=False, each=each)
        return SequenceSource(
            found,
            rows,
            recipe.batch_size or count,
            smallest=2 if feed.normalizes else 1,
            seed=derive(feed.seed, "rows"),
            shuffle=recipe.batch_size > 0,
            each=each,
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
        """512 sequences at a time; answers of steps are filled up to the longest sequence."""
        found = encoder.ragged(rows, [] if notes is None else notes)
        longest = max(1, int(found.offsets.diff().max())) if len(rows) else 1
        for first in range(0, max(len(rows), 1), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            some, extra = found.take_rows(part), None if offset is None else offset[part]
            yield [_answers(network, some, extra, longest) for network in networks]

    # Linear models.

    def baseline(
        self, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Posterior | None, list[str]]:
        """The linear model in tf-idf weights, with a penalty that folds choose."""
        return fit_sparse_linear(self, likelihood, job, seed)

    def export_folder(self, model: Model, folder: str, *, merged: bool) -> list[str]:
        """The network with its tokenizer, or its adapter."""
        from ansatz.structures.sequence.hugging_face_folder import export_folder

        return export_folder(model, folder, merged=merged)

    def exporter(self, encoder: Any, names: Sequence[str] | None) -> Exporter | None:
        """Codes of tokens, or numbers, with a mask: tokens are made outside a graph."""
        from ansatz.structures.sequence.export import SequenceExporter

        return SequenceExporter(encoder)


class LongRows(ReadRows):
    """Sequences of a long table; predictions are named by their identifiers."""

    def __init__(self, table: Any, identifier: str) -> None:
        super().__init__(table)
        self.identifier = identifier

    @property
    def names(self) -> dict[str, Any]:
        """The identifier of each sequence."""
        return {self.identifier: self.table.frame[self.identifier].tolist()}


def _answers(network: Trained, rows: Ragged, offset: Tensor | None, longest: int) -> Tensor:
    """The raw numbers of some sequences, those of similar lengths together."""
    order = rows.offsets.diff().argsort(stable=True)
    parts = order.split(TOGETHER) or (order,)
    raws = [
        _filled(network(pad(rows.take_rows(k)), None if offset is None else offset[k]), longest)
        for k in parts
    ]
    return torch.cat(raws)[order.argsort()]


def _filled(raw: Tensor, longest: int) -> Tensor:
    """Raw numbers of steps, ``(B, T, P)``, with zeros up to the longest sequence of all."""
    if raw.ndim < 3:
        return raw
    return torch.nn.functional.pad(raw, (0, 0, 0, longest - raw.shape[1]))


def _several() -> TensorStructure:
    """The structure of columns of several kinds."""
    found: TensorStructure = structures.create(SEVERAL)
    return found


def _text_column(frame: Any, column_roles: ColumnRoles, origin: str) -> str:
    """The one feature that holds strings."""
    named = set(column_roles.outcome_columns) if column_roles.target else {CLASS}
    words = [n for n in frame.columns if n not in named and _holds_text(frame[n])]
    free = [name for name in words if is_free_text(frame[name])]
    if len(words) == 1 or len(free) == 1:  # the others are categories
        return str((free or words)[0])
    if not words:
        raise UsageError(f"{origin}: no column holds text.")
    listed = ", ".join(map(str, words))
    raise UsageError(
        f"{origin}: several columns hold text: {listed}. Name them: --text "
        f"{','.join(map(str, words))} reads each by itself; --drop leaves out."
    )


def _holds_text(column: Any) -> bool:
    values = column.dropna()
    return len(values) > 0 and isinstance(values.iloc[0], str)
