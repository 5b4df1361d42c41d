"""The maximum-likelihood constant of Student's t, which no closed form gives."""

import math

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from ansatz.likelihoods.student_tail import log_density

LEAST, MOST = 2.0, 1000.0  # of a nu that is estimated


def fit_student(
    z: Tensor, weight: Tensor, scale: Tensor | None, floor: float, nu: float | None
) -> tuple[Tensor, Tensor, float]:
    """Location, scale and nu that minimise the weighted loss, by a trust-region Newton method.

    In (location, log(scale - floor), log(nu - 2)). Many rows start where some 10,000 of their
    order statistics lead, and need a few steps from there.

    Args:
        z: ``(N,)`` outcomes, centred and scaled to a spread near 1.
        weight: ``(N,)``, adding up to 1.
        scale: the known scale; None to estimate it.
        floor: the least scale.
        nu: the known degrees of freedom; None to estimate them, at most 1000.
    """
    free_nu = nu is None

    def unpack(theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        s = theta[1].exp() + floor if scale is None else scale
        n = theta[-1].exp() + LEAST if free_nu else torch.as_tensor(nu).to(theta)
        return theta[0], s, n

    def loss(theta: Tensor) -> Tensor:
        m, s, n = unpack(theta)
        return (weight * (s.log() - log_density((z - m) / s, n))).sum()

    if bool((z == z[0]).all()):  # the likelihood rises all the way to a spike: stay at the floor
        return z[0], z.new_tensor(floor) if scale is None else scale, MOST if nu is None else nu
    start = [0.0] + [0.0] * (scale is None) + [math.log(6.0)] * free_nu
    if len(z) > 20_000:
        z, order = z.sort()
        weight, every = weight[order], len(z) // 10_000
        near = fit_student(z[::every], weight[::every], scale, floor, nu)
        start[0] = float(near[0])
        if scale is None:
            start[1] = math.log(max(float(near[1]) - floor, 1e-9))
        if free_nu:
            start[-1] = math.log(min(near[2], 0.8 * MOST) - LEAST)
    theta = _newton(loss, start, z)
    m, s, n = unpack(theta)
    if free_nu and not float(n) < 0.9 * MOST:  # it rises all the way to the normal distribution
        return fit_student(z, weight, scale, floor, MOST)
    return m, s, float(n)


def _newton(loss, start: list[float], like: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
    """Trust-region Newton on a handful of numbers, derivatives by autograd."""

    def value_and_gradient(theta: np.ndarray) -> tuple[float, np.ndarray]:
        point = torch.as_tensor(theta).to(like).requires_grad_()
        value = loss(point)
        (gradient,) = torch.autograd.grad(value, point)
        return float(value.detach()), gradient.cpu().numpy()

    def hessian(theta: np.ndarray) -> np.ndarray:
        point = torch.as_tensor(theta).to(like)
        return torch.autograd.functional.hessian(loss, point).cpu().numpy()

    def halt(theta: np.ndarray) -> None:
        # On its way to infinity: a nu above its cap, a scale at its floor.
        if theta[1:].max(initial=0.0) > math.log(MOST) or theta[1:].min(initial=0.0) < -25:
            raise StopIteration

    with torch.enable_grad():
        found = minimize(
            value_and_gradient,
            np.array(start),
            jac=True,
            hess=hessian,
            method="trust-exact",
            callback=halt,
            options={"gtol": 1e-9, "maxiter": 200},
        ).x
        for _ in range(2):  # the values are flat to rounding there, the gradient is not
            gradient, curvature = value_and_gradient(found)[1], hessian(found)
            if np.linalg.eigvalsh(curvature).min() > 1e-8:
                found = found - np.linalg.solve(curvature, gradient)
    return torch.as_tensor(found).to(like)
