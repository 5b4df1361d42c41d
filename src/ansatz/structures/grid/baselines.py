"""The linear model in the cells of grids, which a network must beat."""

from collections.abc import Iterator

import torch

from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import PointPosterior
from ansatz.fitting.out_of_fold import choose_folds
from ansatz.fitting.task import Plan
from ansatz.fitting.training import train
from ansatz.likelihoods import Cox, Likelihood
from ansatz.likelihoods.cox import Fold, fair_log_risks
from ansatz.structures.grid.recipe import FEW, linear_grid_recipe
from ansatz.structures.grid.ridge import fit_ridge_grid

FOLDS = 5  # of the examples, for Cox's baseline hazard


def fit_linear_grid(
    structure: Structure, likelihood: Likelihood, learn: Job, seed: int
) -> PointPosterior:
    """Fits the linear model of a likelihood in the cells of a grid; of a mask, in the cells around each.

    It is trained like a network: there are as many coefficients as cells, and examples held out
    decide where to stop. Of fewer than 50 examples with one outcome each it is penalised
    instead, by a penalty that is chosen out of fold, with a dispersion that does not vary. Cox's
    has a baseline hazard too, from risks of examples that models of the other folds left out.

    Args:
        structure: the grid.
        likelihood: of the outcomes.
        learn: the training examples.
        seed: of folds, order and initial weights.
    """
    model = _fit(structure, likelihood, learn, seed)
    fitted = model.likelihood
    if isinstance(fitted, Cox):
        own = model.predictive(learn.rows, learn.offset).raw[:, 0]
        others = _others(structure, likelihood, learn, seed)
        fitted.set_baseline(fair_log_risks(own, others), learn.y, learn.weight)
    return model


def _others(structure: Structure, likelihood: Likelihood, learn: Job, seed: int) -> Iterator[Fold]:
    for inside, outside in choose_folds(learn, FOLDS, seed):
        model = _fit(structure, likelihood, take(learn, inside), seed)
        risks = model.predictive(learn.rows, learn.offset).raw[:, 0]
        yield torch.from_numpy(inside), torch.from_numpy(outside), risks


def _fit(structure: Structure, likelihood: Likelihood, learn: Job, seed: int) -> PointPosterior:
    count, masks = float(learn.weight.sum()), learn.target.axis == "element"
    if count < FEW and not masks:
        encoder, trained = fit_ridge_grid(likelihood, learn, seed)
        return PointPosterior(structure, encoder, trained)
    network = structure.linear_network(learn.target.axis)
    recipe = linear_grid_recipe(count, masks=masks)
    plan = Plan(structure, network, {}, recipe, seed, {}, {"progress": 0})
    done = train(plan, learn._replace(valid=None, trainer_options={}), likelihood)
    return PointPosterior(structure, done.encoder, done.trained)
