"""The factor that recalibrates a mixture of members."""

import math

import torch
from torch import Tensor

from ansatz.fitting.job import Job, thinned
from ansatz.fitting.model import PointPosterior
from ansatz.fitting.recalibration import (
    Recalibration,
    find_factor,
    for_dispersion,
    for_mixture,
    kind_of,
    mean_of,
    optimism,
)
from ansatz.inference.combination import Combination
from ansatz.inference.left_out import MemberPredictions


def recalibrate(job: Job, evaluated: MemberPredictions, weight: Tensor) -> Recalibration | None:
    """Finds the factor of the out-of-fold predictive, None where there is nothing to correct."""
    kind = kind_of(evaluated.folds[0].likelihoods[0])
    if kind is None:
        return None

    parts = [(fold, Combination(fold.likelihoods, evaluated.weights)) for fold in evaluated.folds]

    def loss(factor: float) -> Tensor:
        terms = []
        for fold, mixed in parts:
            mixed.recalibrate(factor)
            with torch.no_grad():
                found = mixed.likelihood.loss(mixed.serve(fold.raws), job.y[fold.rows])
            terms.append(found.reshape(len(fold.rows), -1).sum(1))
        return torch.cat(terms)

    factor = find_factor(loss, weight)
    before, after = ({"nll": mean_of(loss(value), weight)} for value in (1.0, factor))
    return Recalibration(kind, factor, before, after)


MOST_ROWS = 2_000  # on which the members' disagreement is measured


def served_factor(
    job: Job,
    models: list[PointPosterior],
    weights: Tensor,
    evaluated: MemberPredictions,
    found: Recalibration,
) -> float:
    """The factor of the mixture of all members, from that of the out-of-fold predictive."""
    if found.kind == "temperature":
        # A mixture is flatter than its members: half of a flattening, all of a sharpening.
        return min(found.value, math.sqrt(found.value))
    some = thinned(job, MOST_ROWS)
    with torch.no_grad():
        raws = [model.predictive(some.rows, some.offset, notes=[]).raw for model in models]
    networks = torch.tensor([model.encoder is models[0].encoder for model in models])
    share, count = float(weights[networks].sum() / weights.sum()), int(networks.sum())
    groups = evaluated.who.shape[1]
    picked = (count - groups) / (groups * (count - 1))  # of B, in a mean of so many members

    mixed = Combination([model.likelihood for model in models], weights)

    def variance(factor: float) -> Tensor:
        mixed.recalibrate(factor)
        with torch.no_grad():
            return mixed.likelihood.distribution(mixed.serve(raws)).variance.flatten()

    removed = share**2 * picked * _between(models, raws, weights * networks).flatten()
    g = optimism(job.mass / count * groups, share)
    if found.kind == "dispersion":
        return for_dispersion(found.value, variance, removed, g)
    ratio = torch.nan_to_num(removed / variance(1.0), nan=0.0, posinf=0.0)
    return for_mixture(found.value, float(ratio.mean()), g)


def _between(models: list[PointPosterior], raws: list[Tensor], weights: Tensor) -> Tensor:
    """The variance between the means of members, ``(N, ...)``."""
    pairs = zip(models, raws, strict=True)
    with torch.no_grad():
        means = torch.stack([m.likelihood.distribution(raw).mean for m, raw in pairs])
    weight = (weights / weights.sum()).reshape(-1, *(1,) * (means.ndim - 1))
    return (weight * (means - (weight * means).sum(0)) ** 2).sum(0)
