"""The maximum-likelihood dispersion and power of a constant Tweedie model."""

import math

import numpy as np
import torch
from torch import Tensor

from ansatz.likelihoods.log_link import soft_cap
from ansatz.likelihoods.tweedie_series import log_series

LEAST, MOST = 1.01, 1.99  # of the power: nearer to 1 or 2 the series has no end


def power_of(r: Tensor) -> Tensor:
    """The power of an unbounded number, 1.5 at 0."""
    return LEAST + (MOST - LEAST) * torch.sigmoid(r)


def unit_deviance(log_y: Tensor, log_mean: Tensor, power: Tensor) -> Tensor:
    r"""2 (y^{2-p} / ((1-p)(2-p)) - y mu^{1-p} / (1-p) + mu^{2-p} / (2-p)) for y > 0.

    With :math:`\delta = \log(\mu/y)` it is twice :math:`y^{2-p}` times the difference of
    :math:`(e^{k\delta} - 1)/k` at k = 2 - p and at k = 1 - p, which keeps its digits around 0. The
    term in :math:`y \mu^{1-p}` continues along a tangent beyond e^60.
    """
    upper, lower = 2 - power, power - 1
    delta = log_mean - log_y
    near = delta.abs() < 1
    small = torch.where(near, delta, 0.0)
    size = (upper * log_y).exp()
    close = size * (torch.expm1(upper * small) / upper + torch.expm1(-lower * small) / lower)
    far = torch.where(near, log_y, log_mean)
    exponent = soft_cap(log_y - lower * far, 60.0)
    wide = exponent.exp() / lower + (upper * far).exp() / upper - size / (upper * lower)
    return 2 * torch.where(near, close, wide)


def log_density(y: Tensor, log_mean: Tensor, dispersion: Tensor, power: Tensor) -> Tensor:
    """The log density at y > 0, the log probability of 0 at y = 0; in double precision."""
    upper = 2 - power
    log_y = torch.where(y > 0, y, 1.0).log()
    log_rate = upper * log_y - upper.log() - dispersion.log()
    value = log_series(log_rate, upper / (power - 1)) - log_y
    value = value - unit_deviance(log_y, log_mean, power) / (2 * dispersion)
    return torch.where(y > 0, value, -(upper * log_mean).exp() / (upper * dispersion))


def fit_tweedie(
    y: Tensor, weight: Tensor, dispersion: float | None, power: float | None, floor: float
) -> tuple[float, float]:
    """Dispersion phi and power p that maximise the likelihood of a constant mean, the sample's.

    Newton's method in log phi and in the number behind p, on distinct values; many of them start
    where some 5,000 of them lead.

    Args:
        y: ``(N,)``, numbers >= 0, not all 0.
        weight: ``(N,)``, frequencies.
        dispersion: the known phi; None to estimate it.
        power: the known p; None to estimate it.
        floor: the least phi.
    """
    values, back = y.double().unique(return_inverse=True)
    share = torch.zeros_like(values).index_add_(0, back, weight.double())
    share = share / share.sum()
    mean = (share * values).sum()
    values = values / mean  # phi is in units of mean^(2 - p) from here
    log_mean, log_unit = torch.zeros((), dtype=torch.float64), float(mean.log())
    if len(values) == 1:
        return floor if dispersion is None else dispersion, 1.5 if power is None else power

    def unpack(theta: Tensor) -> tuple[Tensor, Tensor]:
        p = theta.new_tensor(power) if power is not None else power_of(theta[-1])
        if dispersion is None:
            return theta[0].exp(), p
        return dispersion * ((p - 2) * log_unit).exp(), p

    def fit(values: Tensor, share: Tensor, start: np.ndarray) -> np.ndarray:
        def loss(theta: Tensor) -> Tensor:
            terms = log_density(values, log_mean, *(v.expand_as(values) for v in unpack(theta)))
            return -(share * terms).sum()

        return _newton(loss, start)

    spread = float((share * (values - 1) ** 2).sum())
    start = np.array([math.log(spread)] * (dispersion is None) + [0.0] * (power is None))
    if start.size:
        every = len(values) // 5_000
        if every > 1:
            few = share[::every] / share[::every].sum()
            start = fit(values[::every], few, start)
        start = fit(values, share, start)
    phi, p = (float(v) for v in unpack(torch.as_tensor(start)))
    return max(phi * math.exp((2 - p) * log_unit), floor) if dispersion is None else dispersion, p


def _newton(loss, theta: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Damped Newton on one or two numbers, each step at most 1, derivatives by autograd."""

    def derivatives(at: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        point = torch.as_tensor(at).requires_grad_()
        value = loss(point)
        (gradient,) = torch.autograd.grad(value, point, create_graph=True)
        rows = [torch.autograd.grad(g, point, retain_graph=True)[0] for g in gradient]
        return float(value.detach()), gradient.detach().numpy(), torch.stack(rows).numpy()

    with torch.enable_grad():
        value, gradient, hessian = derivatives(theta)
        for _ in range(60):
            roots, basis = np.linalg.eigh(hessian)
            step = -basis @ ((basis.T @ gradient) / np.maximum(np.abs(roots), 1e-6))
            step = np.clip(step, -1, 1)
            for _ in range(30):
                new = np.clip(theta + step, -30, 30)
                found = derivatives(new)
                if found[0] <= value + 1e-13 * (1 + abs(value)):
                    break
                step = step / 2
            theta, (value, gradient, hessian) = new, found
            if np.abs(step).max() < 1e-12 or np.abs(gradient).max() < 1e-14:
                break
    return theta
