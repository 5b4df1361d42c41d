"""Pairs of something to read, of any structure, and the text that is written after it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz import structures
from ansatz.data.batch import Batch, pad
from ansatz.data.sequences.pairs import Pairs, PairSource
from ansatz.data.sequences.sequences import Texts
from ansatz.data.source import Source
from ansatz.errors import UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.exporter import Exporter
from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.contracts.structure import Facts, Feed
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model, Trained
from ansatz.fitting.problem import Problem, structure_of_rows
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.request import settings_of
from ansatz.fitting.tensor_structure import Read, TensorStructure
from ansatz.fitting.training import typed
from ansatz.likelihoods import Likelihood
from ansatz.networks import Summary, summary
from ansatz.seeds import derive
from ansatz.structures.pairs.encoder import PairEncoder, fit_encoder, load_encoder
from ansatz.structures.pairs.reading import PART, read_pairs, require_target
from ansatz.structures.pairs.recipe import choose_pair_recipe
from ansatz.training import Supervised

AT_ONCE = 128  # pairs whose probabilities are computed at once


class PairStructure(TensorStructure):
    """A source and its text: inputs are those of the source, then codes and mask of the text.

    The structure of the source, which the rows show, encodes it.
    """

    name: ClassVar[str] = "pairs"
    unit: ClassVar[tuple[str, str]] = ("pair", "pairs")

    def leaves_to(self, network: str | nn.Module) -> frozenset[str]:
        """The shape and dropout of networks, which have defaults of their own."""
        return settings_of("network")

    def network(self, axis: str) -> str:
        """A transformer that reads the source and writes the text."""
        return "encoder_decoder"

    def linear_network(self, axis: str) -> str:
        """None."""
        return ""

    def read(self, data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
        """Two columns, two files, or a named data set."""
        return read_pairs(data, column_roles, reader)

    def problem(self, data: Any, column_roles: ColumnRoles, **how: Any) -> Problem:
        """Reads pairs; a column ``part`` marks those for training, validation and test."""
        found = self.read(data, column_roles, how.get("reader") or {})
        require_target(found)
        made = super().problem(found, column_roles, **how)
        return made._replace(part=PART if PART in made.frame.columns else None)

    def reading_of(self, model: Model) -> dict[str, Any]:
        """Those of the fit but the file of its translations."""
        found = super().reading_of(model)
        found.pop("translation", None)
        return found

    def as_rows(self, X: Any) -> Pairs:
        """Sources of any structure, without their texts."""
        if isinstance(X, Pairs):
            return X
        inner = structures.create(structure_of_rows(X))
        return Pairs(inner.from_python(X, estimator=SimpleNamespace(), reset=True))

    def summary(self, model: Model) -> Summary | str:
        """The number of weights."""
        return summary(model.posterior.networks[0].network, model.encoder.spec)

    def recipe(self, facts: Facts) -> Recipe:
        """By the number of pairs."""
        return choose_pair_recipe(facts)

    def encoder(
        self, rows: Pairs, weight: NDArray[np.float64], recipe: Recipe, options: Mapping[str, Any]
    ) -> PairEncoder:
        """Tokens of the training pairs, and the encoder of their sources."""
        return fit_encoder(rows, weight, recipe, options)

    def load_encoder(self, state: Mapping[str, Any]) -> PairEncoder:
        """The encoder of a saved model."""
        return load_encoder(state)

    # Training.

    def batch(self, job: Job, encoder: PairEncoder, recipe: Recipe) -> Batch | None:
        """None: pairs are filled up batch by batch."""
        return None

    def adapt(self, network: nn.Module, encoder: Any, job: Job, objective: Supervised) -> nn.Module:
        """Asks the network once."""
        if not hasattr(network, "remember"):
            raise UsageError(
                f"{type(network).__name__} writes no text: take encoder_decoder or seq2seq."
            )
        begin: Any = getattr(network, "begin_at", None)
        if begin is not None:
            begin(encoder.frequencies(job.rows))
        return super().adapt(network, encoder, job, objective)

    def source(
        self, job: Job, encoder: PairEncoder, feed: Feed, options: Mapping[str, Any]
    ) -> Source:
        """Batches of similar lengths in a new order each epoch."""
        recipe, rows = feed.recipe, job.rows
        assert isinstance(rows, Pairs)
        dtype = getattr(torch, recipe.dtype)
        plain = Batch((), job.y, job.weight, job.offset, job.index)
        targets, source = encoder.codes(rows), rows.source
        codes = encoder.source.ragged(source) if isinstance(source, Texts) else None

        def encoded(part: Tensor) -> tuple[Tensor, ...]:
            if codes is not None:
                read: tuple[Tensor, ...] = pad(codes.take_rows(part))
            else:
                read = encoder.read(Pairs(source[part.numpy()]))
            found = (*read, *pad(targets.take_rows(part)))
            return tuple(t.to(dtype) if t.is_floating_point() else t for t in found)

        tokens = targets.offsets.diff() + 1
        steps = tokens if codes is None else codes.offsets.diff() + 1
        size = recipe.batch_size or len(job.y)
        return PairSource(
            encoded,
            torch.stack([steps, tokens], 1),
            typed(plain, dtype),
            size if feed.training else min(size, AT_ONCE),
            seed=derive(feed.seed, "rows"),
            shuffle=feed.training and recipe.batch_size > 0,
        )

    # Predictions.

    def raws(
        self,
        networks: Sequence[Trained],
        encoder: PairEncoder,
        rows: Pairs,
        offset: Tensor | None,
        *,
        notes: list[str] | None,
        options: Mapping[str, Any],
    ) -> Iterator[Iterable[Tensor]]:
        """The scores of the texts, 128 at a time."""
        for first in range(0, max(len(rows), 1), AT_ONCE):
            inputs = encoder.inputs(rows[slice(first, first + AT_ONCE)], notes=notes)
            yield [network(inputs) for network in networks]

    def baseline(
        self, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Posterior | None, list[str]]:
        """None: no linear model writes a text."""
        return None, []

    def exporter(self, encoder: Any, names: Sequence[str] | None) -> Exporter | None:
        """None: a search is not a graph."""
        return None
