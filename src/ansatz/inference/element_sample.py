"""What members say of cells of examples that they left out, on a sample of the labelled cells."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.data.batch import UNLABELLED
from ansatz.fitting.job import Job
from ansatz.fitting.trained import PointPosterior
from ansatz.inference.left_out import OutOfFold, Piece, left_out
from ansatz.inference.training import Rows
from ansatz.seeds import generator

CELLS = 100_000  # that weights and the temperature are found on: neighbours tell nearly the same


class Cells(NamedTuple):
    """Labelled cells, drawn at random, at most as many of one example as of another.

    Args:
        example: ``(M,)``, which example each is of, in ascending order.
        place: ``(M,)``, its position among the cells of its example.
        weight: ``(M,)``, the labelled cells that it stands for.
    """

    example: Tensor
    place: Tensor
    weight: Tensor


def draw_cells(y: Tensor, seed: int, most: int = CELLS) -> Cells:
    """A sample of the labelled cells: all of them where they are no more than ``most``.

    Args:
        y: ``(N, *size)`` codes, -1 where there is no label.
        seed: of the draw.
        most: cells of all examples together, though at least one of each.
    """
    source, each = generator(seed, "cells"), max(1, most // max(len(y), 1))
    parts = []
    for number, mask in enumerate(y):
        known = (mask.flatten() != UNLABELLED).nonzero().squeeze(1)
        kept = known
        if len(known) > each:
            kept = known[torch.randperm(len(known), generator=source)[:each]]
        stands = torch.full((len(kept),), len(known) / max(len(kept), 1), dtype=torch.float64)
        parts.append(Cells(torch.full_like(kept, number), kept, stands))
    return Cells(*(torch.cat(column) for column in zip(*parts, strict=True)))


def evaluate_elements(
    job: Job, members: list[Rows], models: list[PointPosterior], seed: int
) -> tuple[Job, OutOfFold]:
    """Cells as rows of their own, each with what those members say that left out its example.

    Only the numbers of drawn cells are kept, never those of all cells by all members. A loss that
    is no likelihood has nothing to be evaluated by: then there are no pieces.

    Args:
        job: the examples.
        members: which examples each learned from and left out.
        models: the fitted members.
        seed: of the draw.

    Returns:
        A job with the drawn cells in the place of the examples' outcomes, and their judgement.
    """
    who = left_out(members, len(job.y))  # (N, G)
    groups = who.shape[1]
    equal = torch.full((groups,), 1 / groups, dtype=torch.float64)
    if not models[0].likelihood.has_distribution:
        return job, OutOfFold(who, [], equal)
    cells = draw_cells(job.y, seed)
    pieces = []
    for group in who[(who >= 0).all(1)].unique(dim=0):
        mine = (who == group).all(1)[cells.example].nonzero().squeeze(1)
        if len(mine):
            chosen = [models[member] for member in group.tolist()]
            candidates = [model.likelihood for model in chosen]
            pieces.append(
                Piece(mine, candidates, [_at(job, model, cells, mine) for model in chosen])
            )
    drawn = job._replace(
        y=job.y.flatten(1)[cells.example, cells.place],
        weight=job.weight[cells.example] * cells.weight,
        offset=None,
        index=cells.example,
    )
    return drawn, OutOfFold(who[cells.example], pieces, equal)


def _at(job: Job, model: PointPosterior, cells: Cells, mine: Tensor) -> Tensor:
    """What a member says of some of the cells, ``(M, P)``, few examples at a time."""
    examples, counts = cells.example[mine].unique_consecutive(return_counts=True)
    places = iter(cells.place[mine].split(counts.tolist()))
    chunks = model.structure.raws(
        [model.trained],
        model.encoder,
        job.rows[examples.numpy()],
        None,
        notes=[],
        options=model.options,
    )
    raws = (raw.flatten(1, -2) for each in chunks for raw in each)  # (n, cells, P)
    return torch.cat([one[next(places)] for raw in raws for one in raw])
