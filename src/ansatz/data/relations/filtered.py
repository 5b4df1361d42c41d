"""Queries to evaluate, without their other known answers."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ansatz.data.batch import Batch, take_rows
from ansatz.data.relations.queries import KnownAnswers, Queries

AT_ONCE = 1_024  # queries


class FilteredSource:
    """Queries in their own order; the known answers of each but its own are ruled out.

    A query may have many right answers: that another of them is more probable is not an error.
    A batch's inputs are the codes, and ``(B, E)`` marks of the entities that are ruled out.

    Args:
        rows: codes ``(N, 2)`` as inputs, and the codes of the answers.
        queries: the same, by their names.
        known: the triples that are known.
    """

    def __init__(self, rows: Batch, queries: Queries, known: KnownAnswers) -> None:
        self.rows, self.queries, self.known = rows, queries, known

    def __len__(self) -> int:
        return -(-len(self.rows.index) // AT_ONCE)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches from position ``start`` on, the same in every epoch."""
        for place in range(start, len(self)):
            first = place * AT_ONCE
            part = slice(first, first + AT_ONCE)
            found = take_rows(self.rows, part)
            out = ruled_out(self.queries[part], self.known)
            yield found._replace(inputs=(*found.inputs, out))


def ruled_out(rows: Queries, known: KnownAnswers) -> Tensor:
    """Marks the known answers of queries but for the own one of each row, ``(B, E)`` bool."""
    row, place = known.others(rows).unbind(1)
    out = torch.zeros(len(rows), len(known.vocabulary.entities), dtype=torch.bool)
    out[row, place] = True
    return out
