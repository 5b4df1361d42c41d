"""Documents as passages: what precedes each token is x."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data.sequences.documents import read_documents, split_documents
from ansatz.data.sequences.passage_source import PassageSource
from ansatz.data.sequences.passages import Passages, passages
from ansatz.data.sequences.tokens import Kind, Tokens
from ansatz.data.source import Source
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.contracts.structure import Facts, Feed, TableParts
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model, Trained
from ansatz.fitting.problem import Problem
from ansatz.fitting.read_again import Notify, ReadAgain
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.request import Request
from ansatz.fitting.tensor_structure import Read, ReadRows
from ansatz.likelihoods import Likelihood
from ansatz.seeds import derive
from ansatz.spec import InputSpec
from ansatz.structures.sequence.passage.encoder import PassageEncoder, load_encoder
from ansatz.structures.sequence.passage.recipe import (
    choose_passage_recipe,
    network_rate,
    network_shape,
)
from ansatz.structures.sequence.structure import SequenceStructure

SMALL = 10_000_000  # characters below which they are the tokens
VOCABULARY = 4_096
CONTEXT = 128
NUMBERS = 2**25  # raw numbers that a network gives at once
TARGET = "token"


class PassageStructure(SequenceStructure):
    """The tokens before each token of a document, at most ``length`` of them."""

    name: ClassVar[str] = "passage"
    kind: ClassVar[type[Passages]] = Passages
    marks: ClassVar[tuple[str, ...]] = ()  # further codes, at the end
    unit: ClassVar[tuple[str, str]] = ("passage", "passages")

    def network(self, axis: str) -> str:
        """Gated recurrence by a scan."""
        return "mingru"

    def linear_network(self, axis: str) -> str:
        """None."""
        return ""

    # Reading.

    def reader(self, request: Request) -> dict[str, Any]:
        """Tokens are built from the training part, so reading needs to know the split."""
        if request.options["folds"] is not None:
            raise UsageError("--folds does not go with language models: the test is the last part.")
        settings = request.settings()
        own = {name: settings.get(name) for name in ("tokens", "vocabulary", "length", "holdout")}
        own |= {"test": request.options["test"], "seed": request.options["seed"]}
        return {**request.reader(), "passages": own}

    def problem(self, data: Any, column_roles: ColumnRoles, **how: Any) -> Problem:
        """Cuts documents into passages by tokens of the training part."""
        reader = dict(how.get("reader") or {})
        own = reader.pop("passages", None) or {}
        origin, documents, notes = read_documents(data, reader.pop("text_column", None), **reader)
        rows = self._learn(origin, documents, **own)
        frame = pd.DataFrame({TARGET: rows.places[:, 1].numpy()})
        roles = column_roles.model_copy(update={"target": [TARGET]})
        digest = hashlib.sha256(rows.codes.numpy().tobytes() + rows.places.numpy().tobytes())
        return Problem(
            origin,
            frame,
            rows,
            roles,
            [how.get("likelihood") or "categorical"],
            dict(how.get("options") or {}),
            notes,
            digest.hexdigest(),
            given=rows,
            task=column_roles.task,
        )

    def read_again(
        self, model: Model, data: str, *, outcomes: bool, options: Mapping[str, Any], notify: Notify
    ) -> ReadAgain:
        """Other documents, all of them test."""
        names = ("text_column", "encoding")
        found = self._read(model, data, **{n: options[n] for n in names if n in options})
        for note in found.notes:
            notify(note)
        return ReadRows(found)

    def _read(
        self, model: Model, data: Any, text_column: str | None = None, **options: Any
    ) -> Read:
        origin, documents, notes = read_documents(data, text_column, **options)
        encoder: Any = model.encoder
        rows = passages(
            [[(text, 2)] for text in documents], encoder.tokens, encoder.context, self.kind
        )
        unknown = int((rows.codes == 1).sum())
        if unknown:
            notes = [*notes, f"tokens that the training text does not have: {unknown}."]
        frame = pd.DataFrame({TARGET: rows.places[:, 1].numpy()})
        return Read(origin, rows, frame, TARGET, tuple(notes))

    def from_table(self, model: Model, table: Any, *, outcomes: bool) -> TableParts:
        """Passages, which are their own outcomes."""
        rows = table.rows if isinstance(table, Read) else table
        if not isinstance(rows, Passages):
            rows = self._read(model, table).rows
        return TableParts(rows, rows if outcomes else None, None, None, None)

    def from_python(
        self, X: Any, *, estimator: Any, reset: bool, roles: Mapping[str, str] | None = None
    ) -> Any:
        """Passages of texts; a fit learns tokens from those that train."""
        if roles:
            raise UsageError(f"{self.unit[1]} have no column '{next(iter(roles))}'.")
        rows = X.rows if isinstance(X, Read) else X
        if isinstance(rows, Passages):
            return rows
        if not reset:
            return self._read(estimator.model_, rows).rows
        origin, documents, _ = read_documents(rows)
        names = ("tokens", "vocabulary", "length", "holdout")
        own = {name: getattr(estimator, name) for name in names}
        made = self._learn(origin, documents, test=0.0, seed=estimator.random_state or 0, **own)
        estimator.n_features_in_ = 1
        return made

    def _learn(
        self,
        origin: str,
        documents: list[str],
        *,
        tokens: Kind | None = None,
        vocabulary: int | None = None,
        length: int | None = None,
        test: float | None = None,
        holdout: float | None = None,
        seed: int = 0,
    ) -> Passages:
        """Splits documents and cuts them into passages by tokens of their training part."""
        test = 0.1 if test is None else test
        valid = (1 - test) * (0.1 if holdout is None else holdout)
        parts = split_documents(documents, test, valid, seed)
        training = [text for each in parts for text, part in each if part == 0]
        size = sum(map(len, documents))
        kind: Kind = tokens or ("char" if size < SMALL else "bpe")
        context = length or CONTEXT
        if sum(map(len, training)) < 100:
            raise DataError(
                f"{origin} is too short for a language model: {size} characters, of which "
                f"{sum(map(len, training))} train; at least 100 are needed."
            )
        made = Tokens.learn(training, kind=kind, vocabulary=vocabulary or VOCABULARY)
        if self.marks:
            made.tokenizer.add_special_tokens(list(self.marks))
        return passages(parts, made, context, self.kind)

    # Recipe and encoder.

    def recipe(self, facts: Facts) -> Recipe:
        """By the number of tokens."""
        return choose_passage_recipe(facts)

    def settle(
        self, recipe: Recipe, job: Job, network: str | nn.Module, options: Mapping[str, Any]
    ) -> Recipe:
        """The learning rate that suits the network."""
        return recipe.model_copy(update={"bins": 0, "learning_rate": network_rate(network)})

    def network_options(
        self, network: str | nn.Module, recipe: Recipe, spec: InputSpec | None
    ) -> dict[str, Any]:
        """Width, depth and dropout."""
        return dict(network_shape(network, spec))

    def encoder(
        self, rows: Any, weight: NDArray[np.float64], recipe: Recipe, options: Mapping[str, Any]
    ) -> Any:
        """The tokens that cut the rows."""
        return PassageEncoder(rows.tokens, rows.context)

    def load_encoder(self, state: Mapping[str, Any]) -> Any:
        """The encoder of a saved model."""
        return load_encoder(state)

    # Training and predictions.

    def source(self, job: Job, encoder: Any, feed: Feed, options: Mapping[str, Any]) -> Source:
        """Windows at random places; to stop the training, one after the other."""
        rows: Any = job.rows
        return PassageSource(
            rows,
            feed.recipe.batch_size or len(rows),
            seed=derive(feed.seed, "rows"),
            shuffle=feed.training,
            dtype=getattr(torch, feed.recipe.dtype),
        )

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
        """The raw numbers of the tokens of each passage, given those before it."""
        encoder.check(rows)
        size = max(1, NUMBERS // (encoder.context * encoder.tokens.size))
        for first in range(0, max(len(rows), 1), size):
            inputs, answers = rows[first : first + size].inputs()
            row = torch.arange(len(answers)).unsqueeze(1)
            yield [network(inputs)[row, answers] for network in networks]

    def baseline(
        self, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Posterior | None, list[str]]:
        """No linear model."""
        return None, []
