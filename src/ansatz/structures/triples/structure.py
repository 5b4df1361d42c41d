"""Knowledge graphs: queries (entity, relation, ?) that triples answer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data.relations.filtered import AT_ONCE, FilteredSource, ruled_out
from ansatz.data.relations.queries import Queries
from ansatz.data.relations.triple_files import COLUMNS, PART, read_triples
from ansatz.data.source import Source
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.exporter import Exporter
from ansatz.fitting.contracts.structure import Facts, Feed
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model, Trained
from ansatz.fitting.problem import Problem
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.request import settings_of
from ansatz.fitting.split import Parts, SplitJob, split
from ansatz.fitting.task import Task
from ansatz.fitting.tensor_structure import Read, ReadRows, TensorStructure
from ansatz.networks import Summary, summary
from ansatz.structures.triples.encoder import QueryEncoder, load_encoder

SCORES = 50_000_000  # of the test queries that are held at once
PASSES = 60  # over the training queries at most
LARGE = 20_000  # training queries from which on batches are larger


class TripleStructure(TensorStructure):
    """Queries of a knowledge graph; a network's input is the codes of entity and relation."""

    name: ClassVar[str] = "triples"
    unit: ClassVar[tuple[str, str]] = ("query", "queries")

    def leaves_to(self, network: str | nn.Module) -> frozenset[str]:
        """The shape and dropout of networks, which have defaults of their own."""
        return settings_of("network")

    def network(self, axis: str) -> str:
        """Complex embeddings."""
        return "complex"

    def linear_network(self, axis: str) -> str:
        """The frequencies of the tails of each relation."""
        return "tail_frequencies"

    def network_options(
        self, network: str | nn.Module, recipe: Recipe, spec: Any
    ) -> dict[str, Any]:
        """None: networks have their own defaults."""
        return {}

    # Reading.

    def read(self, data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
        """Both queries of each triple."""
        found = read_triples(data, reader)
        if not found.has_tails:
            raise DataError(f"{found.origin}: triples of two columns have no tail to predict.")
        table = found.frame
        rows = Queries.of(table[list(COLUMNS)].to_numpy(object))
        frame = pd.DataFrame({"entity": rows.entity, "relation": rows.relation})
        frame["backwards"], frame["tail"] = rows.backwards, rows.answer
        parts = PART in table
        if parts:
            frame[PART] = np.tile(table[PART].to_numpy(), 2)
        return Read(found.origin, rows, frame, "tail", found.notes, PART if parts else None)

    def read_again(
        self, model: Model, data: str, *, outcomes: bool, options: Mapping[str, Any], notify: Any
    ) -> Any:
        """Both queries of each triple to evaluate; to predict, its forward query."""
        outcome: Any = model.outcome
        if outcomes:
            again = super().read_again(
                model, data, outcomes=outcomes, options=options, notify=notify
            )
            rows = again.table.rows.beside(outcome.known_answers)
            return ReadRows(again.table._replace(rows=rows))
        found = read_triples(data, {**self.reading_of(model), **options})
        for note in found.notes:
            notify(note)
        rows = Queries.ask(found.frame[list(COLUMNS[:2])].to_numpy(object))
        return ReadRows(Read(found.origin, rows, found.frame))

    def from_python(
        self, X: Any, *, estimator: Any, reset: bool, roles: Mapping[str, str] | None = None
    ) -> Queries:
        """Queries; those of a fitted model beside the triples that it knows."""
        rows: Queries = super().from_python(X, estimator=estimator, reset=reset, roles=roles)
        return rows if reset else rows.beside(estimator.model_.outcome.known_answers)

    def as_rows(self, X: Any) -> Queries:
        """Queries, triples with their answers, or pairs of entity and relation."""
        if isinstance(X, Queries):
            return X
        table = np.asarray(X, dtype=object)
        if table.ndim == 2 and table.shape[1] == 3:
            return Queries.of(table)
        if table.ndim == 2 and table.shape[1] == 2:
            return Queries.ask(table)
        raise UsageError("a knowledge graph is given as triples (head, relation, tail).")

    def split(self, problem: Problem, task: Task, job: Job, test: float) -> SplitJob | None:
        """The general split, and of many scores a sample of the test queries."""
        own = problem.has_own_test and test == task.outcome.test_share
        parts = split(job, task, test, task.settings.seed, given=own)
        most = max(2, SCORES // max(1, len(task.outcome.labels)))  # type: ignore[arg-type]
        if len(parts.test) <= most:
            return SplitJob.of(job, parts)
        chosen = np.linspace(0, len(parts.test) - 1, most).astype(int)
        note = f"the test holds {most:,} of {len(parts.test):,} queries, evenly spaced."
        kept = Parts(parts.learn, parts.valid, parts.test[chosen])
        return SplitJob.of(job, kept)._replace(notes=(note,))

    def summary(self, model: Model) -> Summary | str:
        """The size of the network."""
        return summary(model.posterior.networks[0].network, model.encoder.spec)

    # Recipe and encoder.

    def recipe(self, facts: Facts) -> Recipe:
        """A hundred passes at most, in batches by the number of queries."""
        size = 128 if facts.rows < LARGE else 512
        return Recipe(
            batch_size=size,
            steps=max(300, round(PASSES * facts.rows / size)),
            learning_rate=1e-2,
            weight_decay=0.0,
            holdout=0.1,
            evaluations=50,
            patience=10,
            min_improvement=0.0,
        )

    def settle(
        self, recipe: Recipe, job: Job, network: str | nn.Module, options: Mapping[str, Any]
    ) -> Recipe:
        return recipe

    def encoder(
        self, rows: Queries, weight: NDArray[np.float64], recipe: Recipe, options: Mapping[str, Any]
    ) -> QueryEncoder:
        """The names of the whole graph."""
        return QueryEncoder.fit(rows)

    def load_encoder(self, state: Mapping[str, Any]) -> QueryEncoder:
        """The encoder of a saved model."""
        return load_encoder(state)

    def source(
        self, job: Job, encoder: QueryEncoder, feed: Feed, options: Mapping[str, Any]
    ) -> Source:
        """Queries in a new order each epoch; to stop the training, without other known answers."""
        if feed.training or encoder.trained is None:
            return super().source(job, encoder, feed, options)
        rows, queries = self.batch(job, encoder, feed.recipe), job.rows
        assert rows is not None and isinstance(queries, Queries)
        return FilteredSource(rows, queries, encoder.trained)

    def raws(
        self,
        networks: Sequence[Trained],
        encoder: QueryEncoder,
        rows: Queries,
        offset: Tensor | None,
        *,
        notes: list[str] | None,
        options: Mapping[str, Any],
    ) -> Iterator[Iterable[Tensor]]:
        """Scores of all entities; rows with an answer rule out the other known answers."""
        for first in range(0, max(len(rows), 1), AT_ONCE):
            part = rows[first : first + AT_ONCE]
            inputs = encoder.inputs(part, notes=notes)
            if part.answer is not None and part.known is not None:
                inputs = (*inputs, ruled_out(part, part.known))
            yield [network(inputs) for network in networks]

    def recommend(
        self, model: Model, source: str, *, relation: str | None, top: int
    ) -> pd.DataFrame:
        """The most probable answers of a query, without those that the graph holds."""
        if relation is None:
            known = ", ".join(model.encoder.vocabulary.relations[:10])  # type: ignore[attr-defined]
            raise UsageError(f"a triple needs a relation: --relation, one of {known}.")
        backwards = np.array([relation.startswith("^")])
        rows = Queries(np.array([source]), np.array([relation.removeprefix("^")]), backwards)
        outcome: Any = model.outcome
        likelihood, raw = model.predictive(rows)
        chance = likelihood.probs(raw)[0]  # type: ignore[operator]  # of classes
        chance[outcome.known_answers.of(rows)[:, 1]] = -1.0
        best, code = chance.topk(min(top, len(chance)))
        kept = best >= 0
        names = outcome.labels[code[kept].numpy()]
        return pd.DataFrame({"entity": names, "probability": best[kept].numpy()})

    def exporter(self, encoder: Any, names: Sequence[str] | None) -> Exporter | None:
        """None: names are looked up outside a graph."""
        return None
