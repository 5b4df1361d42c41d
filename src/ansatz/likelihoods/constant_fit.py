"""The maximum-likelihood constant model of a likelihood without a closed form."""

import copy
from typing import Any

import numpy as np
import torch
from scipy import optimize
from torch import Tensor

from ansatz.likelihoods.likelihood import Likelihood, expand_weight


def fit_constant(
    likelihood: Likelihood, y: Tensor, weight: Tensor, shift: Tensor, scale: Tensor
) -> Tensor:
    r"""Finds the raw numbers and parameters that minimise the mean loss of the constant model.

    .. math:: \min_{r, \theta} \sum_i w_i\, \mathrm{loss}_\theta(r, y_i) / \sum_i w_i

    Quasi-Newton steps from a good start, then Newton's with a Hessian from differences of the
    gradient, as the tails of some likelihoods have first derivatives only; in double precision. The
    parameters of the likelihood are moved in place. Where the minimum lies at infinity, a point far
    on the way is returned.
    """
    wide = copy.deepcopy(likelihood).double().cpu().requires_grad_(True)
    problem = _Problem(wide, y, weight, shift.double().cpu(), scale.double().cpu())
    with np.errstate(all="ignore"):  # a line search may look where the loss is infinite
        best = _polish(problem, _descend(problem, problem.zero, 1e-4))
    raw = problem.place(best).detach()
    with torch.no_grad():
        for mine, found in zip(likelihood.parameters(), wide.parameters(), strict=True):
            mine.copy_(found)
    return raw.to(shift)


class _Problem:
    """Mean loss and gradient as a function of one vector, in units of each raw number."""

    def __init__(
        self, likelihood: Likelihood, y: Tensor, weight: Tensor, shift: Tensor, scale: Tensor
    ) -> None:
        self.likelihood, self.shift, self.scale = likelihood, shift, scale
        present = weight > 0  # an unobserved row may hold nan, whose gradient no mask would hide
        self.y, self.weight = (v.detach()[present].cpu().double() for v in (y, weight))
        self.parameters = list(likelihood.parameters())
        self.origin = [p.detach().clone() for p in self.parameters]
        self.zero = np.zeros(shift.numel() + sum(p.numel() for p in self.parameters))

    def place(self, theta: Any) -> Tensor:
        """Moves the parameters to theta; the raw numbers as a leaf."""
        parts = torch.as_tensor(theta).split(
            [self.shift.numel(), *(p.numel() for p in self.parameters)]
        )
        with torch.no_grad():
            for parameter, origin, part in zip(
                self.parameters, self.origin, parts[1:], strict=True
            ):
                parameter.copy_(origin + part.reshape(origin.shape))
        raw = self.shift + self.scale * parts[0].reshape(self.shift.shape)
        return raw.requires_grad_()

    @torch.enable_grad()
    def __call__(self, theta: Any) -> tuple[float, Any]:
        raw = self.place(theta)
        terms = self.likelihood.loss(raw.expand(len(self.y), *raw.shape), self.y)
        weight = expand_weight(self.weight, terms)
        loss = (weight * terms).sum() / self.weight.sum()
        leaves = [raw, *self.parameters]
        gradients = torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
        flat = torch.cat(
            [gradients[0].mul(self.scale).flatten(), *map(torch.flatten, gradients[1:])]
        )
        return float(loss.detach()), flat.detach().numpy()


def _descend(problem: _Problem, theta: Any, tolerance: float) -> Any:
    options = {"gtol": tolerance, "maxiter": 500}
    return optimize.minimize(problem, theta, jac=True, method="BFGS", options=options).x


def _polish(problem: _Problem, theta: Any) -> Any:
    loss, gradient = problem(theta)
    for _ in range(6):
        if abs(gradient).max() < 1e-12:
            break
        hessian, step = np.zeros((len(theta), len(theta))), 1e-4
        for i in range(len(theta)):
            e = np.zeros(len(theta))
            e[i] = step
            hessian[i] = (problem(theta + e)[1] - problem(theta - e)[1]) / (2 * step)
        values, vectors = np.linalg.eigh(np.nan_to_num((hessian + hessian.T) / 2))
        if values.min() <= 1e-10 * max(values.max(), 1e-300):
            break  # no minimum to polish: flat, or a kink
        move = vectors @ ((vectors.T @ gradient) / values)
        new_loss, new_gradient = problem(theta - move)
        if not (
            new_loss <= loss + 1e-13 * abs(loss) and abs(new_gradient).max() <= abs(gradient).max()
        ):
            break
        theta, loss, gradient = theta - move, new_loss, new_gradient
    if abs(gradient).max() > 1e-6:  # flat: the minimum may lie at infinity, or far away
        theta = _descend(problem, theta, 1e-9)
        loss, gradient = problem(theta)
    if abs(gradient).max() > 1e-4 and len(theta) <= 8:  # a kink, as the median of laplace has
        options = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000}
        found = optimize.minimize(
            lambda t: problem(t)[0], theta, method="Nelder-Mead", options=options
        )
        theta = found.x if found.fun <= loss else theta
    return theta
