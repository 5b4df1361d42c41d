"""From queries of a knowledge graph to codes of an entity and a relation."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ansatz.data import Column
from ansatz.data.relations.queries import KnownAnswers, Queries, Vocabulary, codes_of
from ansatz.errors import UsageError
from ansatz.spec import InputSpec


class QueryEncoder:
    """Codes ``(N, 2)``: the entity, and the relation, that of a backward query behind all others.

    Args:
        vocabulary: the names of the graph.
        trained: the triples of the training rows, which are not saved.
    """

    dtype = torch.float64

    def __init__(self, vocabulary: Vocabulary, trained: KnownAnswers | None = None) -> None:
        self.vocabulary, self.trained = vocabulary, trained
        self._plain = KnownAnswers(vocabulary, np.empty((0, 3), dtype=np.int64))

    @classmethod
    def fit(cls, rows: Queries) -> "QueryEncoder":
        """The names of the whole graph, and the triples of the training rows."""
        if rows.known is None or rows.answer is None:
            raise UsageError("a model of triples is fitted to triples, not to queries alone.")
        vocabulary = rows.known.vocabulary
        entity, relation = rows.known.codes(rows).T
        answer = codes_of(vocabulary.entities, rows.answer, "entity")
        head = np.where(rows.backwards, answer, entity)
        tail = np.where(rows.backwards, entity, answer)
        plain = relation - rows.backwards * len(vocabulary.relations)
        triples = np.unique(np.column_stack([head, plain, tail]), axis=0)
        return cls(vocabulary, KnownAnswers(vocabulary, triples))

    @property
    def spec(self) -> InputSpec:
        """The numbers of entities and of directed relations."""
        return InputSpec("triples", cardinalities=self.vocabulary.shape)

    @property
    def notes(self) -> list[str]:
        """None."""
        return []

    @property
    def columns(self) -> list[Column]:
        """None: names are not columns."""
        return []

    def inputs(self, rows: Queries, *, notes: list[str] | None = None) -> tuple[Tensor, ...]:
        """The codes of entity and relation; a name that the graph does not have is an error."""
        return (torch.from_numpy(self._plain.codes(rows)),)

    def state(self) -> dict[str, Any]:
        """The names, as JSON."""
        entities, relations = self.vocabulary
        return {"entities": entities.tolist(), "relations": relations.tolist()}


def load_encoder(state: Mapping[str, Any]) -> QueryEncoder:
    """The encoder of a saved model."""
    names = (np.array(state[name], dtype=str) for name in ("entities", "relations"))
    return QueryEncoder(Vocabulary(*names))
