"""What members of an ensemble say about training rows that they left out."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import split_rows
from ansatz.fitting.job import Job
from ansatz.fitting.out_of_fold import choose_folds
from ansatz.fitting.recipe import Recipe
from ansatz.inference.combination import Combination
from ansatz.inference.training import Rows
from ansatz.likelihoods import Likelihood
from ansatz.likelihoods.cox import log_mean_risk
from ansatz.seeds import derive

FOLDS = 10  # a member learns from nine tenths of the rows; five folds cost 0.05 nats on concrete


class Piece(NamedTuple):
    """Rows that the same members left out: the likelihoods of these members and their raw numbers."""

    rows: Tensor
    likelihoods: list[Likelihood]
    raws: list[Tensor]


class OutOfFold(NamedTuple):
    """What members that did not learn from a row say about it.

    Args:
        who: ``(N, G)``, for each row one member of each repeat that left it out; -1 for none.
        pieces: the rows that the same members left out.
        weights: ``(G,)`` of the repeats, and of the linear model where it takes part.
        factor: of recalibration.
    """

    who: Tensor
    pieces: list[Piece]
    weights: Tensor
    factor: float = 1.0

    def served(self) -> Iterator[tuple[Tensor, Likelihood, Tensor]]:
        """Rows, the likelihood of their out-of-fold predictive, and what it takes, piece by piece."""
        for piece in self.pieces:
            mixed = Combination(piece.likelihoods, self.weights, self.factor)
            yield piece.rows, mixed.likelihood, mixed.serve(piece.raws)

    def log_risks(self, model: Any, job: Job, served: Tensor) -> Tensor:
        """Each row's log-risk by the members that left it out, on the level of the ensemble."""
        parts = model.posterior.components(job.rows, job.offset)
        raws = torch.stack([predictive.raw[:, 0] for _, predictive in parts], 1)
        levels = torch.stack([log_mean_risk(column) for column in raws.unbind(1)])
        raws = raws - levels + log_mean_risk(served)
        seen = (self.who >= 0).all(1)
        weights = self.weights[: self.who.shape[1]]
        fair = served.clone()
        fair[seen] = raws.gather(1, self.who.clamp(min=0))[seen] @ (weights / weights.sum())
        return fair


def plan_members(job: Job, recipe: Recipe, seed: int, *, mixed: bool = False) -> list[Rows]:
    """The rows that each member learns from and stops by.

    With rows held out for all (``job.valid``), or in order of time, all members share them; else
    member k leaves out fold k mod 10 of repeat k div 10; fewer members than ten have as many folds.
    """
    shared = _shared_valid(job, recipe, seed)
    everyone = np.arange(len(job.y))
    found = []
    count = FOLDS if recipe.members % FOLDS == 0 else recipe.members
    for member in range(recipe.members):
        repeat, fold = divmod(member, count)
        if shared is not None:
            train, valid = np.setdiff1d(everyone, shared), shared
        else:
            folds = choose_folds(job, count, derive(seed, "repeat", repeat))
            train, valid = folds[fold % len(folds)] if folds else (everyone, everyone[:0])
        plain = mixed and member < recipe.members // 2
        dropout = 0.0 if plain else recipe.dropout
        found.append(Rows(torch.from_numpy(train), torch.from_numpy(valid), dropout))
    return found


def _shared_valid(job: Job, recipe: Recipe, seed: int) -> NDArray[np.intp] | None:
    if job.valid is not None and len(job.valid):
        return job.valid
    if job.time is None and not recipe.holdout:
        return None
    keys = job.keys(seed)
    share = recipe.holdout or 0.1
    return split_rows(
        keys,
        seed=seed,
        test=0.0,
        valid=share,
        group=job.group,
        time=job.time,
        weight=job.weight.numpy(),
    ).valid


def left_out(members: list[Rows], count: int) -> Tensor:
    """For each row the members that did not learn from it, -1 where all did: ``(N, G)``.

    Where folds part the rows, one for each repeat; where all members share what they leave out,
    all of them.
    """
    folds = folds_of(members)
    groups = len(members) // folds
    who = torch.full((count, groups), -1, dtype=torch.int64)
    for number, member in enumerate(members):
        who[member.valid, number // folds] = number
    return who


def folds_of(members: list[Rows]) -> int:
    """Members per repeat of the folds; 1 where all leave out the same rows."""
    if len(members) > 1 and torch.equal(members[0].valid, members[1].valid):
        return 1
    return FOLDS if len(members) % FOLDS == 0 else len(members)
