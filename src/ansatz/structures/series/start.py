"""Where training on windows of series starts, and its recipe."""

import copy

import torch
from torch import Tensor, nn

from ansatz.fitting.job import Job, thinned
from ansatz.fitting.recipe import Recipe
from ansatz.networks import WindowLevel
from ansatz.structures.series.encoder import WindowEncoder
from ansatz.training import Supervised

STARTING = 4_096  # windows that settle where training starts


def window_recipe(recipe: Recipe, job: Job) -> Recipe:
    """Some twenty passes over the origins, stopped by those before the test."""
    count = len(job.y)
    size = 32 if count < 2_000 else 64 if count < 20_000 else 256
    return recipe.model_copy(
        update={
            "batch_size": size,
            "steps": max(300, min(20_000, round(20 * count / size))),
            "learning_rate": 1e-3,
            "weight_decay": 0.1,
            "average": "ema",
            "holdout": recipe.holdout or 0.1,
            "folds": 0,
            "evaluations": 40,
            "patience": 10,
            "bins": 0,
            "dtype": "float32",
        }
    )


def settle_level(network: nn.Module, encoder: WindowEncoder, job: Job, start: Supervised) -> None:
    r"""Starts at the best constant beside the level of each window.

    For an identity link the likelihood starts at the residuals y - ell; for others the shift
    minimises the mean loss with the level in its place.
    """
    level = getattr(network, "level", None)
    if not isinstance(level, WindowLevel):
        return
    assert start.shift is not None and start.scale is not None
    job, learned = thinned(job, STARTING), encoder.learned
    found = encoder.inputs(job.rows).level  # type: ignore[arg-type]
    kind = start.shift.dtype
    if learned.link == "identity":
        residual = job.y - found[:, :1] * learned.scale
        beside = copy.deepcopy(start.likelihood).double()
        shift, scale = beside.start(residual, job.weight)
        start.likelihood.load_state_dict(beside.state_dict())
        start.shift.copy_(shift.to(kind))
        start.scale.copy_(scale.to(kind))
    scale = start.scale.to(level.unit.dtype)
    # Distances between quantiles are all dispersions; of a distribution the second number is.
    wide = 1 if start.likelihood.has_distribution else scale.shape[1]
    level.settle(learned.link, scale, learned.scale, wide)
    if learned.link == "log":
        start.shift.copy_(_best_shift(start, level, found, job).to(kind))


def _best_shift(start: Supervised, level: WindowLevel, found: Tensor, job: Job) -> Tensor:
    """The shift that minimises the mean loss of a network that answers 0."""
    assert start.shift is not None
    own, brought = copy.deepcopy(start).double(), copy.deepcopy(level).double()
    assert own.shift is not None and own.scale is not None
    zero = torch.zeros(len(job.y), own.shift.numel(), dtype=torch.float64)
    base = own.scale * brought(zero, found).reshape(len(job.y), *own.shift.shape)
    free = own.shift.clone().requires_grad_()
    weights = [p for p in own.likelihood.parameters() if p.requires_grad]
    optimizer = torch.optim.LBFGS([free, *weights], max_iter=60, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        terms = own.likelihood.loss(base + free, job.y)
        weight = job.weight.reshape(job.weight.shape + (1,) * (terms.ndim - job.weight.ndim))
        loss = (terms * weight).sum() / weight.expand_as(terms).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    if not bool(free.isfinite().all()):
        return own.shift
    start.likelihood.load_state_dict(own.likelihood.state_dict())
    return free.detach()
