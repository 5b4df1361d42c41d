"""Predictions of training rows by the members of an ensemble that left them out."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.batch import UNLABELLED
from ansatz.fitting.job import Job
from ansatz.fitting.model import PointPosterior
from ansatz.fitting.out_of_fold import choose_folds
from ansatz.fitting.recipe import Recipe
from ansatz.inference.combination import Combination
from ansatz.inference.member_training import MemberRows
from ansatz.likelihoods import Likelihood
from ansatz.likelihoods.cox import log_mean_risk
from ansatz.seeds import derive, generator

FOLDS = 10  # a member trains on nine tenths of the rows; five folds cost 0.05 nats on concrete


class Fold(NamedTuple):
    """Rows that the same members left out, and what these members predict for them."""

    rows: Tensor
    likelihoods: list[Likelihood]
    raws: list[Tensor]


class MemberPredictions(NamedTuple):
    """Predictions of rows by members that were not trained on them.

    Args:
        who: ``(N, G)``, for each row one member of each repeat that left it out; -1 for none.
        folds: the rows that the same members left out.
        weights: ``(G,)`` of the repeats, and of the linear model where it takes part.
        factor: of recalibration.
    """

    who: Tensor
    folds: list[Fold]
    weights: Tensor
    factor: float = 1.0

    def served(self) -> Iterator[tuple[Tensor, Likelihood, Tensor]]:
        """Rows, the likelihood of their out-of-fold predictive, and what it takes, fold by fold."""
        for fold in self.folds:
            mixed = Combination(fold.likelihoods, self.weights, self.factor)
            yield fold.rows, mixed.likelihood, mixed.serve(fold.raws)

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


def plan_members(job: Job, recipe: Recipe, seed: int, *, mixed: bool = False) -> list[MemberRows]:
    """The rows that each member trains on and stops by.

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
        found.append(MemberRows(torch.from_numpy(train), torch.from_numpy(valid), dropout))
    return found


def _shared_valid(job: Job, recipe: Recipe, seed: int) -> NDArray[np.intp] | None:
    if job.valid is not None and len(job.valid):
        return job.valid
    if job.time is None and not recipe.holdout:
        return None
    return job.split(seed=seed, valid=recipe.holdout or 0.1).valid


def left_out(members: list[MemberRows], count: int) -> Tensor:
    """For each row the members that were not trained on it, -1 where all did: ``(N, G)``.

    Where folds split the rows, one for each repeat; where all members share what they leave out,
    all of them.
    """
    folds = folds_of(members)
    groups = len(members) // folds
    who = torch.full((count, groups), -1, dtype=torch.int64)
    for number, member in enumerate(members):
        who[member.valid, number // folds] = number
    return who


def folds_of(members: list[MemberRows]) -> int:
    """Members per repeat of the folds; 1 where all leave out the same rows."""
    if len(members) > 1 and torch.equal(members[0].valid, members[1].valid):
        return 1
    return FOLDS if len(members) % FOLDS == 0 else len(members)


PIXELS = 100_000  # that weights and the temperature are found on: neighbours are nearly alike


class PixelSample(NamedTuple):
    """Labelled pixels, drawn at random, at most as many of one example as of another.

    Args:
        example: ``(M,)``, which example each is of, in ascending order.
        place: ``(M,)``, its position among the pixels of its example.
        weight: ``(M,)``, the labelled pixels that it stands for.
    """

    example: Tensor
    place: Tensor
    weight: Tensor


def draw_pixels(y: Tensor, seed: int, most: int = PIXELS) -> PixelSample:
    """Draws a sample of the labelled pixels: all of them where they are no more than ``most``.

    Args:
        y: ``(N, *size)`` codes, -1 where there is no label.
        seed: of the draw.
        most: pixels of all examples together, though at least one of each.
    """
    source, each = generator(seed, "cells"), max(1, most // max(len(y), 1))
    parts = []
    for number, mask in enumerate(y):
        known = (mask.flatten() != UNLABELLED).nonzero().squeeze(1)
        kept = known
        if len(known) > each:
            kept = known[torch.randperm(len(known), generator=source)[:each]]
        stands = torch.full((len(kept),), len(known) / max(len(kept), 1), dtype=torch.float64)
        parts.append(PixelSample(torch.full_like(kept, number), kept, stands))
    return PixelSample(*(torch.cat(column) for column in zip(*parts, strict=True)))


def evaluate_elements(
    job: Job, members: list[MemberRows], models: list[PointPosterior], seed: int
) -> tuple[Job, MemberPredictions]:
    """Takes pixels as rows, each predicted by the members that left out its example.

    Only the numbers of drawn pixels are kept, never those of all pixels by all members. A loss
    that is not a likelihood has nothing to be evaluated by: then there are no folds.

    Returns:
        A job with the drawn pixels in the place of the examples' outcomes, and their predictions.
    """
    who = left_out(members, len(job.y))  # (N, G)
    groups = who.shape[1]
    equal = torch.full((groups,), 1 / groups, dtype=torch.float64)
    if not models[0].likelihood.has_distribution:
        return job, MemberPredictions(who, [], equal)
    pixels = draw_pixels(job.y, seed)
    folds = []
    for group in who[(who >= 0).all(1)].unique(dim=0):
        mine = (who == group).all(1)[pixels.example].nonzero().squeeze(1)
        if len(mine):
            chosen = [models[member] for member in group.tolist()]
            candidates = [model.likelihood for model in chosen]
            folds.append(
                Fold(mine, candidates, [_at(job, model, pixels, mine) for model in chosen])
            )
    drawn = job._replace(
        y=job.y.flatten(1)[pixels.example, pixels.place],
        weight=job.weight[pixels.example] * pixels.weight,
        offset=None,
        index=pixels.example,
    )
    return drawn, MemberPredictions(who[pixels.example], folds, equal)


def _at(job: Job, model: PointPosterior, pixels: PixelSample, mine: Tensor) -> Tensor:
    """Predicts some of the pixels by a member, ``(M, P)``, few examples at a time."""
    examples, counts = pixels.example[mine].unique_consecutive(return_counts=True)
    places = iter(pixels.place[mine].split(counts.tolist()))
    chunks = model.structure.raws(
        [model.trained],
        model.encoder,
        job.rows[examples.numpy()],
        None,
        notes=[],
        options=model.options,
    )
    raws = (raw.flatten(1, -2) for each in chunks for raw in each)  # (n, pixels, P)
    return torch.cat([one[next(places)] for raw in raws for one in raw])
