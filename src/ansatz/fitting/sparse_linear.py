"""A penalised linear model in sparse features: of texts, signals, and of several parts."""

import copy
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from torch import Tensor

from ansatz.data.batch import count_rows
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job
from ansatz.fitting.model import PointPosterior, Trained
from ansatz.fitting.out_of_fold import Folds, choose_folds
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.training import build_network, start_objective
from ansatz.likelihoods import Likelihood
from ansatz.likelihoods.registry import with_dispersion
from ansatz.training import Supervised

FOLDS = 5
PENALTIES = (10.0, 3.0, 1.0, 0.3, 0.1)  # strong ones first
Array = NDArray[np.float64]


def fit_sparse_linear(
    structure: Structure, likelihood: Likelihood, job: Job, seed: int
) -> tuple[PointPosterior | None, list[str]]:
    r"""Fits the linear model in the plainest features z of a structure, its dispersion constant.

    .. math:: \min_{B, b} \sum_i w_i \ell(\text{shift} + \text{scale} (B z_i + b), y_i)
        + \frac{\lambda}{2} \|B\|^2

    with the :math:`\lambda` that has the least out-of-fold loss.
    """
    if not likelihood.additive:
        return None, [f"{likelihood.name} has no linear baseline on {structure.unit[1]}."]
    name = structure.linear_network(job.target.axis)
    encoder: Any = structure.encoder(job.rows, job.weight.numpy(), Recipe(), {})
    objective = start_objective(with_dispersion(likelihood, "constant"), job).double()
    objective.likelihood.relax_shapes()
    assert objective.shift is not None
    network = build_network(
        name,
        {},
        inputs=encoder.spec,
        outputs=objective.shift.numel(),
        dtype=torch.float64,
        seed=seed,
    )
    inputs = encoder.inputs(job.rows, notes=[])
    begin: Any = getattr(network, "begin", None)
    if begin is not None:
        begin(*inputs)
    problem = _Problem(objective, _design(network, inputs), job)
    best = _choose(problem, choose_folds(job, FOLDS, seed))
    with torch.no_grad():
        output: Any = network.output
        output.weight.copy_(torch.from_numpy(best[:-1].T))
        output.bias.copy_(torch.from_numpy(best[-1]))
    trained = Trained(network, objective, name, {}, encoder.dtype)
    return PointPosterior(structure, encoder, trained), []


def _design(network: Any, inputs: Any) -> csr_matrix:
    """The z of each row, and a 1."""
    from scipy.sparse import hstack

    row, number, z = (each.numpy() for each in network.design(*inputs))
    count = count_rows(inputs)
    z_matrix = csr_matrix((z, (row, number)), shape=(count, network.size))
    return csr_matrix(hstack([z_matrix, np.ones((count, 1))]))


class _Problem(NamedTuple):
    """The penalised loss of some of the rows."""

    objective: Supervised
    z: csr_matrix  # (N, G + 1)
    job: Job

    def loss(self, predictor: Tensor, rows: NDArray[np.intp]) -> Tensor:
        job, index = self.job, torch.from_numpy(rows)
        raw = self.objective.attach(predictor, None if job.offset is None else job.offset[index])
        return self.objective.likelihood.joint_loss(raw, job.y[index], job.weight[index]).sum()

    def fit(self, rows: NDArray[np.intp], penalty: float, start: Array | None = None) -> Array:
        """The coefficients, the constant the last of them, ``(G + 1, P)``."""
        assert self.objective.shift is not None
        z, outputs = self.z[rows], self.objective.shift.numel()
        strength = np.full((z.shape[1], 1), penalty)
        strength[-1] = 1e-3

        def function(flat: Array) -> tuple[float, Array]:
            beta = flat.reshape(-1, outputs)
            predictor = torch.from_numpy(z @ beta).requires_grad_()
            loss = self.loss(predictor, rows)
            (slope,) = torch.autograd.grad(loss, predictor)
            total = float(loss.detach()) + 0.5 * float((strength * beta**2).sum())
            return total, (z.T @ slope.numpy() + strength * beta).ravel()

        first = np.zeros(z.shape[1] * outputs) if start is None else start.ravel()
        options = {"maxiter": 200, "ftol": 1e-7}
        found = minimize(function, first, jac=True, method="L-BFGS-B", options=options)
        best: Array = found.x.reshape(-1, outputs)
        return best


def _choose(problem: _Problem, folds: Folds) -> Array:
    """The coefficients with the best penalty; sets the likelihood's own parameters to match."""
    everyone = np.arange(len(problem.job.y))
    if not folds:
        return problem.fit(everyone, 1.0)
    own, likelihood = [], problem.objective.likelihood
    began, starts = copy.deepcopy(likelihood.state_dict()), [None] * len(folds)
    for penalty in PENALTIES:
        fits: Any = [
            problem.fit(learn, penalty, start)
            for (learn, _), start in zip(folds, starts, strict=True)
        ]
        starts = fits
        held_out = [
            (torch.from_numpy(problem.z[rows] @ beta), rows)
            for beta, (_, rows) in zip(fits, folds, strict=True)
        ]
        loss = _settle(problem, held_out)
        own.append((loss if math.isfinite(loss) else math.inf, penalty, likelihood.state_dict()))
        own[-1] = (*own[-1][:2], copy.deepcopy(own[-1][2]))
        likelihood.load_state_dict(began)
        if len(own) > 1 and own[-1][0] > own[-2][0]:
            break
    _, penalty, state = min(own, key=lambda each: each[0])
    best = problem.fit(everyone, penalty)
    likelihood.load_state_dict(state)
    return best


def _settle(problem: _Problem, held_out: list[tuple[Tensor, NDArray[np.intp]]]) -> float:
    """Minimises the out-of-fold loss over the likelihood's own parameters, which it sets."""
    own = [each for each in problem.objective.likelihood.parameters() if each.requires_grad]

    def total() -> Tensor:
        return torch.stack([problem.loss(*each) for each in held_out]).sum()

    if own:
        optimizer = torch.optim.LBFGS(own, max_iter=50, line_search_fn="strong_wolfe")

        def closure() -> float:
            optimizer.zero_grad()
            loss = total()
            loss.backward()
            return float(loss.detach())

        optimizer.step(closure)
    return float(total().detach())
