"""The two models that a network on grids must beat: linear in the cells, and constant."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ansatz.fitting.baselines import Judge, Metrics
from ansatz.structures.grid.fitting import fit_grid_model, grid_objective
from ansatz.structures.grid.model import GridModel
from ansatz.structures.grid.recipe import FEW, linear_grid_recipe
from ansatz.structures.grid.ridge import fit_ridge_grid
from ansatz.fitting.job import Job, has_masks, take
from ansatz.likelihoods.log_risk import Fold, fair_log_risks
from ansatz.fitting.out_of_fold import choose_folds
from ansatz.fitting.plan import Plan
from ansatz.likelihoods import Cox, Likelihood
from ansatz.structures import Grid

FOLDS = 5  # of the examples, for Cox's baseline hazard


def fit_linear_grid(law: Likelihood, learn: Job, seed: int) -> GridModel:
    """The linear model of a law in the cells of a grid; of a mask, in the cells around each.

    It is trained like a network: there are as many coefficients as cells, and where to stop is
    told by examples held out. Of fewer than 50 examples with one outcome each it is penalised
    instead, by a penalty that is chosen out of fold, with a dispersion that does not vary. Cox's
    has a baseline hazard too, from risks of examples that models of the other folds left out.

    Example:
        >>> import inspect
        >>> from ansatz.structures.grid.baselines import fit_linear_grid
        >>> list(inspect.signature(fit_linear_grid).parameters)
        ['law', 'learn', 'seed']
    """
    model = _fit(law, learn, seed)
    fitted = model.objective.likelihood
    if isinstance(fitted, Cox):
        own = model.raw(learn.rows, learn.offset)[:, 0]
        fitted.set_baseline(fair_log_risks(own, _others(law, learn, seed)), learn.y, learn.weight)
    return model


def _others(law: Likelihood, learn: Job, seed: int) -> Iterator[Fold]:
    for inside, outside in choose_folds(learn, FOLDS, seed):
        model = _fit(law, take(learn, inside), seed)
        risks = model.raw(learn.rows, learn.offset)[:, 0]
        yield torch.from_numpy(inside), torch.from_numpy(outside), risks


def _fit(law: Likelihood, learn: Job, seed: int) -> GridModel:
    count = float(learn.weight.sum())
    if count < FEW and not has_masks(learn):
        return fit_ridge_grid(law, learn, seed)
    network = Grid(masks=has_masks(learn)).linear_network
    recipe = linear_grid_recipe(count, masks=has_masks(learn))
    plan = Plan(network, {}, recipe, seed, {"progress": 0})
    return fit_grid_model(plan, learn._replace(valid=None, trainer_options={}), law)[0]


def judge_linear_grid(
    law: Likelihood, learn: Job, test: Job, judge: Judge, seed: int
) -> tuple[Metrics, list[str]]:
    """Metrics of the linear model of the same law on ``test``.

    Example:
        >>> import inspect
        >>> from ansatz.structures.grid.baselines import judge_linear_grid
        >>> list(inspect.signature(judge_linear_grid).parameters)[:3]
        ['law', 'learn', 'test']
    """
    model = fit_linear_grid(law, learn, seed)
    raw = model.raw(test.rows, test.offset)
    return judge(model.objective.likelihood, raw, test.y, test.weight), []


def judge_constant_masks(law: Likelihood, learn: Job, test: Job, judge: Judge) -> Metrics:
    """Metrics of the model that gives every cell the shares of the labels in ``learn``.

    Example:
        >>> import inspect
        >>> from ansatz.structures.grid.baselines import judge_constant_masks
        >>> list(inspect.signature(judge_constant_masks).parameters)[:3]
        ['law', 'learn', 'test']
    """
    fitted, raw = constant_masks(law, learn, test)
    return judge(fitted, raw, test.y, test.weight)


def constant_masks(law: Likelihood, learn: Job, test: Job) -> tuple[Likelihood, Tensor]:
    """The law, and at every cell of ``test`` the raw numbers of the shares of labels in ``learn``.

    Example:
        >>> import inspect
        >>> from ansatz.structures.grid.baselines import constant_masks
        >>> list(inspect.signature(constant_masks).parameters)
        ['law', 'learn', 'test']
    """
    objective = grid_objective(law, learn)
    return objective.likelihood, _everywhere(objective.shift, test.y)


def _everywhere(shift: Tensor | None, y: Tensor) -> Tensor:
    assert shift is not None
    return shift.double().expand(*y.shape, shift.numel()).clone().detach().to(torch.float64)
