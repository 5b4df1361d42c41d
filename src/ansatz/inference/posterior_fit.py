"""Training for a posterior of a network: the mean loss and its share of minus the log prior."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor, nn

from ansatz.data import Batch
from ansatz.data.batch import UNLABELLED
from ansatz.data.source import Source
from ansatz.errors import UsageError
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Feed
from ansatz.fitting.job import Job
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import build_modules, build_optimizer
from ansatz.inference.weight_prior import WeightPrior
from ansatz.likelihoods import Likelihood
from ansatz.training import Callback, GradientStep, History, Step, Supervised, Trainer

ALL_AT_ONCE = 1_000  # rows up to which a step takes all of them
POLISHED = 10**8  # rows times weights up to which the mode is found by L-BFGS
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)


def posterior_recipe(base: Recipe, facts: Facts) -> Recipe:
    """The structure's recipe without early stopping, averages, decay, dropout and augmentation."""
    few = facts.rows <= ALL_AT_ONCE and facts.spec is not None and not facts.spec.size
    changes: dict[str, Any] = {
        "widths": (50,),
        "activation": "tanh",
        "dropout": 0.0,
        "weight_decay": 0.0,
        "holdout": 0.0,
        "folds": 0,
        "bins": 0,
        "average": None,
        "augment": False,
        "symmetry": None,
        "members": 1,
        "schedule": "cosine",
    }
    if few:
        changes |= {"batch_size": 0, "steps": 2_000, "learning_rate": 1e-2}
    elif facts.spec is not None and not facts.spec.size:
        changes |= {"batch_size": 128, "steps": max(6_000, round(20 * facts.rows / 128))}
    return base.model_copy(update=changes)


class Beginning(NamedTuple):
    """A network before its training, and what the training needs."""

    encoder: Encoder
    network: nn.Module
    objective: Supervised
    prior: WeightPrior
    source: Source
    outcomes: float  # N, the sum of the weights of all outcomes


def begin(plan: TrainingPlan, job: Job, likelihood: Likelihood, name: str) -> Beginning:
    """Builds the network, the objective, the prior and the batches of a fit."""
    refuse_likelihood(plan, likelihood, name)
    encoder = plan.structure.encoder(job.rows, job.weight.numpy(), plan.recipe, plan.options)
    network, objective = build_modules(plan, job, likelihood, encoder, None)
    refuse_layers(network, plan.network_name, name)
    own: Any = objective.likelihood
    if getattr(own, "beta", 0):
        own.beta = 0.0  # the negative log-likelihood itself
    feed = Feed(plan.recipe, plan.seed, True, True, False)
    source = plan.structure.source(job, encoder, feed, plan.options)
    prior = WeightPrior(network, objective, plan.options.get("priors"))
    return Beginning(encoder, network, objective, prior, source, count_outcomes(job, likelihood))


def count_outcomes(job: Job, likelihood: Likelihood) -> float:
    """N, the sum of the weights of all outcomes: pixels of masks, targets of rows."""
    if job.target.axis != "row":
        seen = (job.y != UNLABELLED).double()
        return float((seen * job.weight.reshape(-1, *(1,) * (seen.ndim - 1))).sum())
    targets = 1 if likelihood.event_ndim else math.prod(job.target.shape)
    return float(job.weight.sum()) * targets


def refuse_likelihood(plan: TrainingPlan, likelihood: Likelihood, name: str) -> None:
    """Refuses losses without a density, coupled rows, weighted losses and augmentation."""
    if not likelihood.has_distribution:
        raise UsageError(
            f"inference {name} needs a likelihood, and {likelihood.name} is a loss without a "
            "density. Take another likelihood, or inference ensemble."
        )
    if not likelihood.additive:
        raise UsageError(
            f"inference {name} sums over rows, and the loss of {likelihood.name} couples them. "
            "Take inference point or ensemble."
        )
    if likelihood.options.get("beta"):
        raise UsageError(
            f"inference {name} takes the negative log-likelihood itself: leave beta out, or 0."
        )
    if plan.options.get("class_weight") is not None:
        raise UsageError(
            f"inference {name}: class_weight would count rows that are not there. Leave it out."
        )
    if plan.recipe.augment:
        raise UsageError(
            f"inference {name}: augmented examples are not observations. Leave augment out."
        )


def refuse_layers(network: nn.Module, network_name: str, name: str) -> None:
    """Refuses batch normalisation and dropout, by which weights alone decide nothing."""
    for part in network.modules():
        if isinstance(part, _BATCH_NORMS):
            raise UsageError(
                f"inference {name}: {network_name} normalises by batch, so that its weights alone "
                "do not define a function. Take a network without (lenet5, mlp), or inference "
                "ensemble."
            )
        if isinstance(part, _DROPOUTS) and getattr(part, "p", 0) > 0:
            raise UsageError(
                f"inference {name}: dropout is an approximation of its own. Take dropout=0, or "
                "inference dropout."
            )


class PriorPenalty:
    r"""Minus the log prior of the weights for each outcome, :math:`-\log p(\theta) / N`."""

    def __init__(self, prior: WeightPrior, outcomes: float) -> None:
        self.prior, self.outcomes = prior, outcomes

    def __call__(self, network: nn.Module) -> Tensor:
        prior = self.prior
        total = prior.log_prob(list(network.parameters())) + prior.log_prob_of_likelihood()
        return -total / self.outcomes


def gradient_step(
    plan: TrainingPlan, start: Beginning, penalty: Callable[[nn.Module], Tensor], schedule: Any
) -> GradientStep:
    """The step that minimises the mean loss plus the penalty."""
    recipe = plan.recipe
    return GradientStep(
        start.network,
        start.objective,
        build_optimizer(start.network, start.objective, recipe, None),
        schedule=schedule,
        clip=recipe.clip or None,
        penalty=penalty,
    )


def run(
    plan: TrainingPlan, job: Job, step: Step, source: Source, callbacks: Sequence[Callback] = ()
) -> History:
    """Repeats the step for the budget of the recipe, without early stopping."""
    trainer = Trainer(
        callbacks=(*callbacks, *(plan.options.get("callbacks") or ())),
        steps=plan.recipe.steps,
        seed=plan.seed,
        **{**plan.trainer_options, **job.trainer_options},
    )
    return trainer.fit(step, source, None)


def fit_mode(plan: TrainingPlan, job: Job, start: Beginning) -> tuple[History, float | None]:
    """Trains to a mode of the posterior; with few rows L-BFGS ends it. Gives the gradient's norm.

    The norm is of the gradient of minus the log posterior divided by N; None where rows are not in
    memory.
    """
    penalty = PriorPenalty(start.prior, start.outcomes)
    step = gradient_step(plan, start, penalty, plan.recipe.make_schedule())
    history = run(plan, job, step, start.source)
    rows = plan.structure.batch(job, start.encoder, plan.recipe)
    if rows is None:
        return history, None
    return history, polish(start, rows, penalty)


def polish(start: Beginning, rows: Batch, penalty: PriorPenalty) -> float:
    """Goes on by L-BFGS in float64 from where a training ended; gives the gradient's norm there."""
    network, objective = start.network.double().eval(), start.objective.double()
    start.prior.double()
    parameters = [*network.parameters(), *objective.parameters()]
    parameters = [p for p in parameters if p.requires_grad]
    rows = _double(rows)
    sizes = [p.numel() for p in parameters]

    def value(vector: np.ndarray) -> tuple[float, np.ndarray]:
        with torch.no_grad():
            for parameter, part in zip(
                parameters, torch.from_numpy(vector).split(sizes), strict=True
            ):
                parameter.copy_(part.view_as(parameter))
        total, count = objective(network, rows)
        loss = total / count + penalty(network)
        gradient = torch.autograd.grad(loss, parameters, allow_unused=True)
        flat = [
            torch.zeros_like(p) if g is None else g
            for p, g in zip(parameters, gradient, strict=True)
        ]
        return float(loss.detach()), torch.cat([g.reshape(-1) for g in flat]).numpy()

    vector = torch.cat([p.detach().reshape(-1) for p in parameters]).numpy().copy()
    if len(rows.index) * len(vector) <= POLISHED:
        found = minimize(
            value,
            vector,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 500, "maxcor": 30, "gtol": 1e-8, "ftol": 1e-14},
        )
        vector = found.x
    return float(np.linalg.norm(value(vector)[1]))


def _double(rows: Batch) -> Batch:
    from ansatz.fitting.training import typed

    return typed(rows, torch.float64)


def priors_note(prior: WeightPrior) -> str:
    """The prior in one line."""
    words: Mapping[str, str] = prior.words()
    return "prior: " + ", ".join(f"{name} {law}" for name, law in words.items()) + "."


def mode_note(norm: float | None) -> str:
    """How close to a mode the training ended."""
    if norm is None:
        return "the mode was found by minibatches: there is no norm of its gradient."
    return f"norm of the gradient of the mean loss at the mode: {norm:.2g}."
