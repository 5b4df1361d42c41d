"""The baseline models of signals, images and volumes: linear and ridge."""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from ansatz.data.grids import GridPreprocessor, Grids
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import PointPosterior, Trained
from ansatz.fitting.out_of_fold import Folds, choose_folds
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import build_network, start_objective, train
from ansatz.likelihoods import Cox, Likelihood
from ansatz.likelihoods.cox import Fold, out_of_fold_log_risks
from ansatz.likelihoods.registry import with_dispersion
from ansatz.networks import LinearGrid
from ansatz.networks.grid_inputs import channels_last
from ansatz.structures.grid.encoder import GridEncoder
from ansatz.structures.grid.recipe import FEW, linear_grid_recipe
from ansatz.training import Supervised

FOLDS = 5  # of the examples: for penalties, and for Cox's baseline hazard


def fit_linear_grid(
    structure: Structure, likelihood: Likelihood, learn: Job, seed: int
) -> PointPosterior:
    """Fits the linear model in the pixels of a grid; of a mask, in the pixels around each.

    It is trained like a network: there are as many coefficients as pixels, and held-out examples
    decide where to stop. Of fewer than 50 examples with one outcome each it is penalised
    instead, by a penalty that is chosen out of fold, with a dispersion that does not vary. Cox's
    has a baseline hazard too, from risks of examples that models of the other folds left out.
    """
    model = _fit(structure, likelihood, learn, seed)
    fitted = model.likelihood
    if isinstance(fitted, Cox):
        own = model.predictive(learn.rows, learn.offset).raw[:, 0]
        others = _others(structure, likelihood, learn, seed)
        fitted.set_baseline(out_of_fold_log_risks(own, others), learn.y, learn.weight)
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
    plan = TrainingPlan(structure, network, {}, recipe, seed, {}, {"progress": 0})
    done = train(plan, learn._replace(valid=None, trainer_options={}), likelihood)
    return PointPosterior(structure, done.encoder, done.trained)


PENALTIES = tuple(4.0**k for k in range(3, -7, -1))  # strong ones first
WORSE = 2  # weaker penalties in turn that are no better end the search
UNEVALUATED = 1.0  # the penalty where examples cannot be split: x explains as much as it does not


def fit_ridge_grid(likelihood: Likelihood, job: Job, seed: int) -> tuple[GridEncoder, Trained]:
    r"""Fits the penalised linear model in the pixels of a grid, with a constant dispersion.

    .. math:: \min_{B, b} \sum_i w_i \ell(\text{shift} + \text{scale} (B z_i + b), y_i)
        + \frac{\lambda}{2} \|B\|^2 + \frac{1}{2} \|b\|^2

    with z the centred pixels, in the unit that makes :math:`\|z\|^2` 1 in the mean. So a priori the
    predictor of a typical example has the variance :math:`1 / \lambda`, in the unit of the
    outcomes. There are more pixels than examples, but the best B is a combination of examples: as
    many coefficients as examples are sought. :math:`\lambda` has the least out-of-fold loss. The
    dispersion is estimated from out-of-fold predictors too: residuals of training examples are
    too small.

    References:
        Hastie, Tibshirani and Friedman (2009), The Elements of Statistical Learning, 18.3.5.
    """
    grids: Grids = job.rows  # type: ignore[assignment]
    preprocessor = GridPreprocessor.fit(grids, job.weight.numpy())
    objective = start_objective(with_dispersion(likelihood, "constant"), job).double()
    objective.likelihood.relax_shapes()
    assert objective.shift is not None
    network = build_network(
        "linear_grid",
        {},
        inputs=preprocessor.spec,
        outputs=objective.shift.numel(),
        dtype=torch.float32,
        seed=seed,
    )
    assert isinstance(network, LinearGrid)
    (x,) = preprocessor.transform(grids)
    basis = _Basis.of(network.pool(x).flatten(1).double(), job.weight)
    problem = _Problem(objective, basis.z, job)
    _set(network, basis, _choose(problem, choose_folds(job, FOLDS, seed)))
    encoder = GridEncoder(preprocessor)
    trained = Trained(network, objective.float(), "linear_grid", {}, encoder.dtype)
    trained.network = trained.answering = channels_last(trained.network)
    return encoder, trained


class _Basis(NamedTuple):
    """Examples by as many numbers as there are examples, with the same distances."""

    z: Tensor  # (N, R)
    centre: Tensor  # (D,)
    directions: Tensor  # (D, R): z = (x - centre) @ directions

    @classmethod
    def of(cls, x: Tensor, weight: Tensor) -> "_Basis":
        share = weight / weight.sum()
        centre = share @ x
        centred = x - centre
        size = float((share @ centred.square().sum(1)).sqrt()) or 1.0
        _, _, vh = torch.linalg.svd(centred, full_matrices=False)
        directions = vh.T / size
        return cls(centred @ directions, centre, directions)


class _Problem(NamedTuple):
    """The penalised loss of some of the examples."""

    objective: Supervised
    z: Tensor  # (N, R)
    job: Job

    def predictor(self, coefficients: Tensor, rows: Tensor) -> Tensor:
        """B z + b, ``(N, P)``."""
        return self.z[rows] @ coefficients[:-1] + coefficients[-1]

    def loss(self, predictor: Tensor, rows: Tensor) -> Tensor:
        """The total of the examples ``rows``."""
        job = self.job
        raw = self.objective.attach(predictor, None if job.offset is None else job.offset[rows])
        return self.objective.likelihood.joint_loss(raw, job.y[rows], job.weight[rows]).sum()

    def path(self, rows: Tensor, penalties: Sequence[float]) -> Iterator[Tensor]:
        """The coefficients at each penalty, b the last of them, ``(R + 1, P)``.

        The penalties fall: each fit begins where the one before ended.
        """
        assert self.objective.shift is not None
        size = self.z.shape[1] + 1, self.objective.shift.numel()
        coefficients = self.z.new_zeros(size).requires_grad_()
        for penalty in penalties:
            strength = self.z.new_full((size[0], 1), penalty)
            strength[-1] = 1.0  # a class that a fold has not seen keeps about the share it has

            def total(strength: Tensor = strength) -> Tensor:
                loss = self.loss(self.predictor(coefficients, rows), rows)
                return loss + (strength * coefficients.square()).sum() / 2

            _minimise(total, [coefficients])
            yield coefficients.detach().clone()


def _choose(problem: _Problem, folds: Folds) -> Tensor:
    """Chooses the penalty out of fold; sets the likelihood's own parameters to match it."""
    everyone = torch.arange(len(problem.z))
    if not folds:
        return next(problem.path(everyone, [UNEVALUATED]))
    parts = [(torch.from_numpy(learn), torch.from_numpy(evaluated)) for learn, evaluated in folds]
    paths = [problem.path(learn, PENALTIES) for learn, _ in parts]
    likelihood = problem.objective.likelihood
    began, found = copy.deepcopy(likelihood.state_dict()), []
    for place, coefficients in enumerate(zip(*paths, strict=True)):
        evaluated = [
            (problem.predictor(each, rows), rows)
            for each, (_, rows) in zip(coefficients, parts, strict=True)
        ]
        loss = _out_of_fold(problem, evaluated)
        found.append(
            (
                loss if math.isfinite(loss) else math.inf,
                place,
                copy.deepcopy(likelihood.state_dict()),
            )
        )
        likelihood.load_state_dict(began)
        if place - min(found, key=lambda each: each[:2])[1] >= WORSE:
            break
    _, best, own = min(found, key=lambda each: each[:2])
    *_, chosen = problem.path(everyone, PENALTIES[: best + 1])
    likelihood.load_state_dict(own)
    return chosen


def _out_of_fold(problem: _Problem, evaluated: list[tuple[Tensor, Tensor]]) -> float:
    """Minimises the out-of-fold loss over the likelihood's own parameters, which it sets."""

    def total() -> Tensor:
        return torch.stack([problem.loss(predictor, rows) for predictor, rows in evaluated]).sum()

    _minimise(
        total, [own for own in problem.objective.likelihood.parameters() if own.requires_grad]
    )
    return float(total().detach())


def _minimise(total: Callable[[], Tensor], parameters: list[Tensor]) -> None:
    """Minimises by L-BFGS, in place, to a thousandth of a nat: folds resolve far less."""
    if not parameters:
        return
    ends = np.cumsum([each.numel() for each in parameters])[:-1]

    def put(values: NDArray[np.float64]) -> None:
        with torch.no_grad():
            for each, part in zip(parameters, np.split(values, ends), strict=True):
                each.copy_(torch.from_numpy(part).reshape(each.shape))

    def function(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        put(values)
        loss = total()
        slopes = torch.autograd.grad(loss, parameters, materialize_grads=True)
        return float(loss.detach()), torch.cat([slope.ravel() for slope in slopes]).numpy()

    start = torch.cat([each.detach().ravel() for each in parameters]).numpy()
    found = minimize(
        function, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-5, "gtol": 1e-3}
    )
    put(found.x if math.isfinite(found.fun) else start)


def _set(network: LinearGrid, basis: _Basis, coefficients: Tensor) -> None:
    weight = (basis.directions @ coefficients[:-1]).T  # (P, D)
    with torch.no_grad():
        network.output.weight.copy_(weight)
        network.output.bias.copy_(coefficients[-1] - weight @ basis.centre)
