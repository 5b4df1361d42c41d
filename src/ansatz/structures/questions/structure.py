"""Questions about texts that hold the answer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad as pad_with

from ansatz.data.batch import Batch, pad
from ansatz.data.sequences.pairs import PairSource
from ansatz.data.sequences.questions import Questions
from ansatz.data.source import Source
from ansatz.errors import UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.exporter import Exporter
from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.contracts.structure import Facts, Feed
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model, Trained
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.request import settings_of
from ansatz.fitting.tensor_structure import Read, TensorStructure
from ansatz.fitting.training import typed
from ansatz.likelihoods import Likelihood
from ansatz.networks import Summary, summary
from ansatz.seeds import derive
from ansatz.structures.questions.encoder import QuestionEncoder, load_encoder
from ansatz.structures.questions.reading import read_questions

AT_ONCE = 64  # questions that are answered at once
_NOWHERE = -1e4  # the score behind the last word of a context


class QuestionStructure(TensorStructure):
    """[CLS] question [SEP] context; inputs are ``(codes, mask, marks of the context)``."""

    name: ClassVar[str] = "questions"
    unit: ClassVar[tuple[str, str]] = ("question", "questions")
    element: ClassVar[tuple[str, str] | None] = ("word", "words")

    def leaves_to(self, network: str | nn.Module) -> frozenset[str]:
        """The shape and dropout of networks, which have defaults of their own."""
        return settings_of("network")

    def network(self, axis: str) -> str:
        """A network that points to words of the context."""
        return "pointer"

    def linear_network(self, axis: str) -> str:
        """None."""
        return ""

    def read(self, data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
        """SQuAD's JSON."""
        return read_questions(data, column_roles, reader)

    def as_rows(self, X: Any) -> Questions:
        """Questions, or (contexts, questions)."""
        if isinstance(X, Questions):
            return X
        if not isinstance(X, tuple) or len(X) != 2:
            raise UsageError("questions are given as (contexts, questions).")
        return Questions(*X)

    def summary(self, model: Model) -> Summary | str:
        """The number of weights."""
        return summary(model.posterior.networks[0].network, model.encoder.spec)

    def recipe(self, facts: Facts) -> Recipe:
        """Some 15 passes over the questions, more where they are few, in batches of 16 or 32."""
        size = 16 if facts.rows < 5_000 else 32
        passes = max(15.0, min(60.0, 30_000 / max(1.0, facts.rows)))
        return Recipe(
            batch_size=size,
            steps=max(300, round(passes * facts.rows / size)),
            learning_rate=3e-3,
            weight_decay=0.01,
            clip=1.0,
            average="ema",
            evaluations=30,
            patience=10,
        )

    def encoder(
        self,
        rows: Questions,
        weight: NDArray[np.float64],
        recipe: Recipe,
        options: Mapping[str, Any],
    ) -> QuestionEncoder:
        """The words of the training rows."""
        return QuestionEncoder.fit(rows, options.get("vocabulary"))

    def load_encoder(self, state: Mapping[str, Any]) -> QuestionEncoder:
        """The encoder of a saved model."""
        return load_encoder(state)

    def batch(self, job: Job, encoder: Any, recipe: Recipe) -> Batch | None:
        """None: questions are filled up batch by batch."""
        return None

    def source(
        self, job: Job, encoder: QuestionEncoder, feed: Feed, options: Mapping[str, Any]
    ) -> Source:
        """Batches of similar lengths in a new order each epoch."""
        recipe, dtype = feed.recipe, getattr(torch, feed.recipe.dtype)
        codes, context = encoder.ragged(job.rows)  # type: ignore[arg-type]
        plain = Batch((), job.y, job.weight, job.offset, job.index)

        def encoded(part: Tensor) -> tuple[Tensor, ...]:
            return (*pad(codes.take_rows(part)), pad(context.take_rows(part)).values)

        lengths = codes.offsets.diff()
        size = recipe.batch_size or len(job.y)
        return PairSource(
            encoded,
            torch.stack([lengths, torch.ones_like(lengths)], 1),
            typed(plain, dtype),
            size if feed.training else min(size, AT_ONCE),
            seed=derive(feed.seed, "rows"),
            shuffle=feed.training and recipe.batch_size > 0,
        )

    def raws(
        self,
        networks: Sequence[Trained],
        encoder: QuestionEncoder,
        rows: Questions,
        offset: Tensor | None,
        *,
        notes: list[str] | None,
        options: Mapping[str, Any],
    ) -> Iterator[Iterable[Tensor]]:
        """The scores of each word, 64 questions at a time, up to the longest context of all."""
        marks = encoder.ragged(rows)[1]
        row = torch.arange(len(rows)).repeat_interleave(marks.offsets.diff())
        counts = torch.zeros(len(rows)).long().index_add(0, row, marks.values.long())
        longest = int(counts.max()) if len(rows) else 1
        for first in range(0, max(len(rows), 1), AT_ONCE):
            inputs = encoder.inputs(rows[slice(first, first + AT_ONCE)], notes=notes)
            found = [network(inputs) for network in networks]
            yield [
                pad_with(raw, (0, 0, 0, longest - raw.shape[1]), value=_NOWHERE) for raw in found
            ]

    def baseline(
        self, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Posterior | None, list[str]]:
        """None: no linear model points."""
        return None, []

    def exporter(self, encoder: Any, names: Sequence[str] | None) -> Exporter | None:
        """None: words are found outside a graph."""
        return None
