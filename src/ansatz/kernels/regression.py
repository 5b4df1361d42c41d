"""Gaussian processes with normal noise: evidence, its maximum, and predictions."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from ansatz.errors import NumericalError
from ansatz.kernels.kernel import Kernel

JITTERS = (0.0, 1e-10, 1e-8, 1e-6, 1e-4)  # of the mean variance


class Evidence(NamedTuple):
    """The log evidence of a kernel and a noise, and its gradient in their logarithms."""

    value: float
    gradient: Tensor  # (P + 1,), the noise variance last


class Process(NamedTuple):
    r"""A Gaussian process that has seen outcomes.

    .. math:: m(x) = k(x)^\top (K + \sigma^2 I)^{-1} y, \qquad
        v(x) = k(x, x) - k(x)^\top (K + \sigma^2 I)^{-1} k(x)

    Args:
        kernel: k.
        noise: :math:`\sigma^2`, the variance of an outcome around the function.
        x: ``(N, D)`` inputs that were seen.
        factor: ``(N, N)``, the Cholesky factor of :math:`K + \sigma^2 I`.
        solved: ``(N,)``, :math:`(K + \sigma^2 I)^{-1} y`.

    Example:
        >>> import torch
        >>> from ansatz.kernels import RBF, condition
        >>> process = condition(RBF(), 0.1, torch.zeros(1, 1), torch.ones(1))
        >>> process.predict(torch.full((1, 1), 9.0))[1].round(decimals=4)  # far away: the prior's
        tensor([1.], dtype=torch.float64)

    References:
        Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, algorithm 2.1.
    """

    kernel: Kernel
    noise: float
    x: Tensor
    factor: Tensor
    solved: Tensor
    jitter: float = 0.0  # noise that was added to factorise it, relative to the mean variance

    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the function at rows ``(M, D)``, without the noise."""
        between = self.kernel(self.x, x)  # (N, M)
        half = torch.linalg.solve_triangular(self.factor, between, upper=False)
        variance = self.kernel.diagonal(x) - (half**2).sum(0)
        return between.mT @ self.solved, variance.clamp(min=0)


def factorise(matrix: Tensor) -> Tensor:
    """The Cholesky factor of a covariance; a little noise makes equal rows differ."""
    return factorise_with(matrix)[0]


def factorise_with(matrix: Tensor) -> tuple[Tensor, float]:
    """The factor, and the noise that was added, relative to the mean variance."""
    mean = float(matrix.diagonal().mean())
    factor: Tensor
    for jitter in JITTERS:
        own = matrix if not jitter else matrix + jitter * mean * torch.eye(len(matrix)).to(matrix)
        factor, failed = torch.linalg.cholesky_ex(own)
        if not failed and bool(factor.diagonal().isfinite().all()):
            return factor, jitter
    raise NumericalError(
        "a covariance of the kernel is not positive definite, even with a noise of 1e-4 of its "
        "variance: rows are equal, or the kernel is not a covariance. Drop duplicate rows or add "
        "white noise to the kernel."
    )


def condition(kernel: Kernel, noise: float, x: Tensor, y: Tensor) -> Process:
    """The process given outcomes with mean 0.

    Args:
        kernel: k.
        noise: variance of an outcome around the function.
        x: ``(N, D)``.
        y: ``(N,)``.

    Example:
        >>> import torch
        >>> from ansatz.kernels import RBF, condition
        >>> x = torch.tensor([[0.0], [1.0]])
        >>> mean, variance = condition(RBF(), 1e-8, x, torch.tensor([1.0, 2.0])).predict(x)
        >>> mean.round(decimals=4).tolist()
        [1.0, 2.0]
    """
    x, y = x.double(), y.double()
    matrix = kernel(x) + noise * torch.eye(len(x), dtype=torch.float64)
    factor, jitter = factorise_with(matrix)
    solved = torch.cholesky_solve(y.unsqueeze(1), factor).squeeze(1)
    return Process(kernel, noise, x, factor, solved, jitter)


def evidence(kernel: Kernel, noise: float, x: Tensor, y: Tensor) -> Evidence:
    r"""The log density of outcomes with the function integrated out, and its gradient.

    .. math:: \log p(y) = -\tfrac12 y^\top C^{-1} y - \tfrac12 \log|C| - \tfrac N2 \log 2\pi,
        \qquad \frac{\partial}{\partial \phi} = \tfrac12 \mathrm{tr}\Big(
        (\alpha \alpha^\top - C^{-1}) \frac{\partial C}{\partial \phi}\Big)

    with :math:`C = K + \sigma^2 I` and :math:`\alpha = C^{-1} y`.

    Args:
        kernel: k.
        noise: :math:`\sigma^2`.
        x: ``(N, D)``.
        y: ``(N,)`` with mean 0.

    Example:
        >>> import torch
        >>> from ansatz.kernels import RBF, evidence
        >>> x = torch.linspace(0, 1, 5)[:, None]
        >>> evidence(RBF(), 0.1, x, torch.zeros(5)).gradient.shape
        torch.Size([2])

    References:
        Rasmussen and Williams (2006), eq. 5.8 and 5.9.
    """
    process = condition(kernel, noise, x, y)
    alpha = process.solved
    value = -0.5 * float(y.double() @ alpha) - float(process.factor.diagonal().log().sum())
    value -= 0.5 * len(y) * math.log(2 * math.pi)
    weight = 0.5 * (torch.outer(alpha, alpha) - torch.cholesky_inverse(process.factor))
    in_noise = noise * weight.trace()
    gradient = torch.cat([kernel.gradient(process.x, weight), in_noise.reshape(1)])
    return Evidence(value, gradient)


def maximise_evidence(
    kernel: Kernel,
    x: Tensor,
    y: Tensor,
    *,
    noise: float = 0.1,
    restarts: int = 3,
    steps: int = 100,
    seed: int = 0,
) -> tuple[Kernel, float, float]:
    """The parameters with the largest evidence: L-BFGS from the given ones and from random ones.

    Args:
        kernel: where to begin.
        x: ``(N, D)``.
        y: ``(N,)`` with mean 0, in units of about its standard deviation.
        noise: where the variance of the noise begins.
        restarts: beginnings, the given one among them; the others are e^N(0, 1) times as large.
        steps: of L-BFGS, at most.
        seed: of the beginnings.

    Returns:
        The kernel, the noise, and the log evidence.

    Example:
        >>> import torch
        >>> from ansatz.kernels import RBF, maximise_evidence
        >>> x = torch.linspace(0, 6, 30)[:, None]
        >>> kernel, noise, value = maximise_evidence(1.0 * RBF(), x, x[:, 0].sin(), restarts=1)
        >>> noise < 1e-3
        True
    """
    begin = torch.cat([kernel.vector, torch.tensor([math.log(noise)], dtype=torch.float64)])

    def function(at: Tensor) -> Evidence:
        return evidence(kernel.with_vector(at[:-1]), math.exp(float(at[-1])), x, y)

    limits = (math.log(1e-8), math.log(1e4))
    best, value = search(function, begin, restarts=restarts, steps=steps, seed=seed, last=limits)
    return kernel.with_vector(best[:-1]), math.exp(float(best[-1])), value


def search(
    function: Callable[[Tensor], Evidence],
    begin: Tensor,
    *,
    restarts: int,
    steps: int,
    seed: int,
    last: tuple[float, float] | None = None,
) -> tuple[Tensor, float]:
    """The argument with the largest evidence, by L-BFGS from ``begin`` and from places near it."""
    draw = np.random.default_rng(seed)
    start = begin.numpy()
    bounds = [(each - 14.0, each + 14.0) for each in start]
    if last is not None:
        bounds[-1] = last

    def value(vector: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            found = function(torch.from_numpy(vector.copy()))
        except NumericalError:
            return 1e100, np.zeros_like(vector)
        return -found.value, -found.gradient.numpy()

    best: tuple[float, np.ndarray] = (math.inf, start)
    low, high = np.array(bounds).T
    for number in range(max(1, restarts)):
        at = np.clip(start + (draw.normal(size=len(start)) if number else 0.0), low, high)
        options = {"maxiter": steps}
        done = minimize(value, at, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        if done.fun < best[0]:
            best = float(done.fun), done.x
    if not math.isfinite(best[0]) or best[0] >= 1e100:
        raise NumericalError("no parameters of the kernel give a positive definite covariance.")
    return torch.from_numpy(best[1]), -best[0]
