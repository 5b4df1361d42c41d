"""Queries of a knowledge graph: which entity completes (head, relation, ?)."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.keys import mix, text_keys
from ansatz.errors import DataError
from ansatz.seeds import derive

Names = NDArray[Any]
Codes = NDArray[np.int64]


class Vocabulary(NamedTuple):
    """The names of the entities and relations of a knowledge graph, in order."""

    entities: Names  # (E,)
    relations: Names  # (R,)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of entities and of directed relations, those read backwards included."""
        return len(self.entities), 2 * len(self.relations)


def codes_of(names: Names, values: Names, what: str) -> Codes:
    """The places of values among sorted names; one that is not there is an error."""
    if not len(names):
        raise DataError(f"there are no {what}.")
    found = np.searchsorted(names, values).clip(max=len(names) - 1)
    odd = np.flatnonzero(names[found] != values)
    if len(odd):
        raise DataError(f"row {odd[0] + 1}: the {what} {str(values[odd[0]])[:60]!r} is unknown.")
    return found.astype(np.int64)


class KnownAnswers:
    """All triples of a graph, by the queries that they answer.

    Args:
        vocabulary: the names of the graph.
        triples: ``(M, 3)`` codes of head, relation and tail.
    """

    def __init__(self, vocabulary: Vocabulary, triples: Codes) -> None:
        self.vocabulary, self.triples = vocabulary, triples
        head, relation, tail = triples.T
        count = len(vocabulary.relations)
        keys = np.concatenate([self._key(head, relation), self._key(tail, relation + count)])
        order = np.argsort(keys, kind="stable")
        self._keys, self._answers = keys[order], np.concatenate([tail, head])[order]

    def _key(self, entity: Codes, relation: Codes) -> Codes:
        found: Codes = relation * len(self.vocabulary.entities) + entity
        return found

    def joined(self, other: "KnownAnswers") -> "KnownAnswers":
        """These triples and those of another graph over the same names."""
        if other is self:
            return self
        entities, relations = (
            codes_of(own, names, what)
            for own, names, what in zip(
                self.vocabulary, other.vocabulary, ("entity", "relation"), strict=True
            )
        )
        head, relation, tail = other.triples.T
        added = np.column_stack([entities[head], relations[relation], entities[tail]])
        both = np.unique(np.concatenate([self.triples, added]), axis=0)
        return self if len(both) == len(self.triples) else KnownAnswers(self.vocabulary, both)

    def of(self, rows: "Queries") -> Tensor:
        """The known answers of queries: ``(M, 2)`` rows, in order, and codes of entities."""
        entity, relation = self.codes(rows).T
        keys = self._key(entity, relation)
        first = np.searchsorted(self._keys, keys, "left")
        counts = np.searchsorted(self._keys, keys, "right") - first
        row = np.repeat(np.arange(len(rows)), counts)
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        answers = self._answers[np.repeat(first, counts) + within]
        return torch.from_numpy(np.column_stack([row, answers]))

    def others(self, rows: "Queries") -> Tensor:
        """The known answers of queries but for the one that each row holds."""
        assert rows.answer is not None
        found = self.of(rows)
        own = torch.from_numpy(codes_of(self.vocabulary.entities, rows.answer, "entity"))
        return found[found[:, 1] != own[found[:, 0]]]

    def codes(self, rows: "Queries") -> Codes:
        """The codes ``(N, 2)`` of queries: the entity, and the relation.

        That of a backward query stands behind all others.
        """
        entity = codes_of(self.vocabulary.entities, rows.entity, "entity")
        relation = codes_of(self.vocabulary.relations, rows.relation, "relation")
        return np.column_stack([entity, relation + rows.backwards * len(self.vocabulary.relations)])


class Queries:
    """N queries (entity, relation, ?), each perhaps with its answer.

    A triple (head, relation, tail) answers two of them: (head, relation, ?), and backwards
    (tail, relation, ?), whose answer is the head. Rows stay with all triples of their graph.

    Args:
        entity: ``(N,)`` names of what is given.
        relation: ``(N,)`` names.
        backwards: ``(N,)`` whether the answer is the head of the triple.
        answer: ``(N,)`` names; None where they are not known.
        known: all triples of the graph; None for queries alone.

    Example:
        >>> from ansatz.data.relations.queries import Queries
        >>> rows = Queries.of([("Jena", "in", "Thuringia")])
        >>> rows.entity.tolist(), rows.answer.tolist()
        (['Jena', 'Thuringia'], ['Thuringia', 'Jena'])
    """

    spec, has_features = None, True

    def __init__(
        self,
        entity: Names,
        relation: Names,
        backwards: NDArray[np.bool_],
        answer: Names | None = None,
        known: KnownAnswers | None = None,
    ) -> None:
        self.entity, self.relation, self.backwards = entity, relation, backwards
        self.answer, self.known = answer, known

    @classmethod
    def of(cls, triples: Any) -> "Queries":
        """Both queries of each triple: first all (head, relation, ?), then all backwards."""
        table = as_names(triples, 3)
        head, relation, tail = table.T
        entities, relations = np.unique(np.concatenate([head, tail])), np.unique(relation)
        codes = np.column_stack(
            [
                codes_of(entities, head, "entity"),
                codes_of(relations, relation, "relation"),
                codes_of(entities, tail, "entity"),
            ]
        )
        return cls(
            np.concatenate([head, tail]),
            np.concatenate([relation, relation]),
            np.arange(2 * len(table)) >= len(table),
            np.concatenate([tail, head]),
            KnownAnswers(Vocabulary(entities, relations), codes),
        )

    @classmethod
    def ask(cls, pairs: Any) -> "Queries":
        """Queries without answers, from (entity, relation) pairs."""
        table = as_names(pairs, 2)
        return cls(table[:, 0], table[:, 1], np.zeros(len(table), dtype=bool))

    def beside(self, known: KnownAnswers) -> "Queries":
        """These queries with the triples of another graph beside those of their own."""
        both = known if self.known is None else known.joined(self.known)
        return Queries(self.entity, self.relation, self.backwards, self.answer, both)

    def __len__(self) -> int:
        return len(self.entity)

    def __getitem__(self, index: Any) -> "Queries":
        return Queries(
            self.entity[index],
            self.relation[index],
            self.backwards[index],
            None if self.answer is None else self.answer[index],
            self.known,
        )

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of each triple, the same for both of its queries; of a query without an answer."""
        answer = np.full(len(self), "") if self.answer is None else self.answer
        head = np.where(self.backwards, answer, self.entity)
        tail = np.where(self.backwards, self.entity, answer)
        total = np.zeros(len(self), dtype=np.uint64)
        for place, names in enumerate((head, self.relation, tail)):
            unique, codes = np.unique(names.astype(str), return_inverse=True)
            salt = np.uint64(derive(seed, "triple", place))
            total += mix(text_keys(unique.tolist())[codes] ^ salt)
        return mix(total)

    def describe(self) -> dict[str, Any]:
        """Two features: entity and relation."""
        return {"names": None, "count": 2, "columns": None}


def as_names(rows: Any, width: int) -> Names:
    """Rows of names, ``(N, width)``."""
    table = np.asarray(rows, dtype=object)
    if table.ndim != 2 or table.shape[1] != width:
        named = "(head, relation, tail)" if width == 3 else "(entity, relation)"
        raise DataError(f"expected rows {named}, got an array of shape {table.shape}.")
    return table.astype(str)
